// SPDX-License-Identifier: Apache-2.0
// Command line of sluicec. A value whose capability does not exist yet is refused with a message that says so.
#include "passes/kernels/HostKernels.h"
#include "passes/plan/Budget.h"
#include "passes/planner/Words.h"
#include "passes/strategies/Registry.h"
#include "tools/Driver.h"
#include "tools/Failure.h"

#include "llvm/ADT/StringExtras.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
#include <limits>
#include <regex>
#include <sstream>
#include <thread>

using namespace sluice;

namespace {

/// The words of the flags, before they become a DriverOptions.
struct Words {
  std::string emit = "binary", loss = "softmax-cross-entropy", optimizer = "sgd", init = "keep", batchNorm = "train",
              dropout = "keep";
  std::string target = factsOf(Target::Host).name, precision = "fp32", hostBudget, workspaceLimit, allowLossy;
  std::vector<std::string> dims, limits;
  std::string batch, threads;
};

void declare(CLI::App &app, DriverOptions &o, Words &w) {
  app.add_option("model", o.model, "ONNX file")->required();
  app.add_option("--emit", w.emit,
                 "forward|training|linearized|planned|scheduled|placed|source|project|binary|report (default binary)");
  app.add_option("-o", o.output, "output file; a directory for project");
  app.add_flag("--force", o.force, "write over files that sluicec did not write");
  app.add_option("--target", w.target, "host|cuda (default host)");
  app.add_option("--cpu", o.cpu,
                 "native|x86-64-v2|v3|v4: what a host program and its runtime are built for (default native: "
                 "processors like this one)");
  app.add_option("--batch", w.batch, "batch size where the model leaves it open");
  app.add_option("--dim", w.dims, "NAME=N: fixes a dynamic dimension")->allow_extra_args(false);
  app.add_option("--limit", w.limits, "NAME=N: how large a model and what is made of it may be, of " + describeLimits())
      ->allow_extra_args(false);
  app.add_option(
      "--loss", w.loss,
      "softmax-cross-entropy (classes are dimension 1)|token-cross-entropy (classes are the last dimension)|mse|"
      "bce-with-logits|none, attached to the first output");
  app.add_option("--ignore-index", o.spec.ignoreIndex,
                 "N: targets of a cross-entropy that are N do not count; N is no class");
  app.add_option("--optimizer", w.optimizer, "sgd|adam|adamw|adagrad|rmsprop|lamb|lion");
  app.add_flag("--clip-norm", o.spec.clipNorm,
               "the program may clip gradients by the norm of all of them, which live until the end of the step");
  app.add_flag("--accumulate", o.spec.accumulate, "a step of the program may have several batches");
  app.add_flag("--ema", o.spec.average,
               "the program has a running average of the weights, and evaluates and exports it");
  app.add_option("--init", w.init, "keep|kaiming|xavier; keep: values from the model file");
  app.add_option("--freeze", o.spec.freeze, "regular expression: parameters that are not trained");
  app.add_flag("--list-parameters", o.listParameters,
               "print name, shape, role and reason of every variable, then stop");
  app.add_flag("--check", o.check, "list everything in the model that is not supported, then stop");
  app.add_option("--batch-norm", w.batchNorm, "train|frozen");
  app.add_option("--dropout", w.dropout, "keep|off");
  app.add_option(
      "--precision", w.precision,
      "fp32; with --target=cuda also tf32, or bf16: activations and products in bf16, parameters and sums in fp32");
  app.add_option("--memory-budget", o.pipeline.budget,
                 "device arena: 8GiB, 600MiB, bytes, 40% of keep's arena, 40%act");
  app.add_option("--host-budget", w.hostBudget, "limit of host memory for offloading");
  app.add_option("--threads", w.threads, "host threads that the plan is made for (default: this machine's)");
  app.add_flag("--max-batch", o.maxBatch, "print the largest batch that fits the budget, and its predicted throughput");
  app.add_option("--workspace-limit", w.workspaceLimit,
                 "largest workspace of one kernel; the fastest way to compute that fits is taken (default: none that "
                 "would raise the smallest budget; cuda: 64MiB, 256MiB in fp32)");
  app.add_option("--strategy", o.pipeline.strategy, "NAME[,k=v...] (default auto)");
  app.add_option("--allow-lossy", w.allowLossy,
                 llvm::join(planner::lossyActions(), ",") +
                     ",algorithms: what plans may do that rounds otherwise than keep");
  app.add_option("--device", o.pipeline.device,
                 "device profile: a name or a .json file (default: this machine as measured, or $SLUICE_DEVICE; h200 "
                 "with --target=cuda)");
  app.add_flag("--calibrate", o.calibrate, "measure this machine again");
  app.add_option("--profile", o.pipeline.profile, "measured times, a .json file");
  app.add_flag("--explain", o.explain, "print tensor, node, bytes, lifetime, action and reason");
}

int usage(const std::string &message) { return fail("sluicec", 2, message); }

/// Takes a parsed word or returns its error.
template <typename T> std::string take(Result<T> result, T &into) {
  if (!result)
    return result.error();
  into = *result;
  return "";
}

std::string takeEmit(const std::string &word, Emit &emit) {
  static const char *const names[] = {"forward", "training", "linearized", "planned", "scheduled",
                                      "placed",  "source",   "project",    "binary",  "report"};
  for (int i = 0; i < 10; ++i)
    if (word == names[i]) {
      emit = static_cast<Emit>(i);
      return "";
    }
  return "--emit knows no '" + word +
         "'; there are forward, training, linearized, planned, scheduled, placed, source, project, binary, report";
}

std::string takeTarget(const std::string &word, Target &target) {
  std::string known;
  for (const TargetFacts &facts : targetTable) {
    if (word == facts.name) {
      target = facts.target;
      return "";
    }
    known += (known.empty() ? "" : " and ") + std::string(facts.name);
  }
  return "--target knows no '" + word + "'; there are " + known;
}

/// An unknown strategy is a mistake of the command line, not of the model.
std::string checkStrategy(const std::string &strategy) {
  std::string name = strategy.substr(0, strategy.find(',')), known;
  for (const std::string &candidate : planner::strategyNames()) {
    if (candidate == name)
      return "";
    known += (known.empty() ? "" : ", ") + candidate;
  }
  return "--strategy knows no '" + name + "'; there are " + known;
}

/// Flags that exclude each other.
std::string refuse(const DriverOptions &o) {
  if (o.maxBatch && (o.pipeline.budget.empty() || o.pipeline.budget.find('%') != std::string::npos))
    return "--max-batch needs --memory-budget in bytes: a share of keep's arena would grow with the batch";
  if (o.maxBatch && o.spec.batch)
    return "--max-batch looks for the batch, --batch=" + std::to_string(*o.spec.batch) + " fixes it; give one of them";
  return "";
}

/// The whole of `text` as a number from 1 to `most`.
bool isNumber(const std::string &text, int64_t most, int64_t &value) {
  auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && stop == text.data() + text.size() && value >= 1 && value <= most;
}

/// x86-64-v3 and v3 are the same.
std::string takeCpu(DriverOptions &o) {
  if (o.cpu == "native")
    return "";
  for (int level : {2, 3, 4})
    if (const std::string name = "v" + std::to_string(level); o.cpu == name || o.cpu == "x86-64-" + name) {
      o.cpu = "x86-64-" + name;
      o.pipeline.level = level;
    }
  if (o.pipeline.level == 0)
    return "--cpu knows no '" + o.cpu + "'; there are native, x86-64-v2, x86-64-v3 and x86-64-v4";
  return factsOf(o.pipeline.target).levels ? "" : "--cpu=" + o.cpu + " is for --target=host";
}

/// First message of a word that makes no sense, or nothing.
std::string convert(const Words &w, DriverOptions &o) {
  std::string e;
  auto size = [&](const char *flag, const std::string &text, int64_t &into) {
    auto bytes = parseSize(text);
    if (!bytes)
      e = std::string(flag) + " takes bytes, 600MiB or 8GiB, not '" + text + "'";
    else
      into = *bytes;
    return e.empty();
  };
  if (!(e = takeEmit(w.emit, o.emit)).empty() || !(e = take(parseLoss(w.loss), o.spec.loss)).empty() ||
      !(e = take(parseOptimizer(w.optimizer), o.spec.optimizer)).empty() ||
      !(e = take(parseInitialValues(w.init), o.spec.init)).empty() ||
      !(e = take(parseBatchNormMode(w.batchNorm), o.spec.batchNorm)).empty() ||
      !(e = take(parseDropoutMode(w.dropout), o.spec.dropout)).empty())
    return e;
  if (!(e = takeTarget(w.target, o.pipeline.target)).empty() || !(e = takeCpu(o)).empty())
    return e;
  if (Status precision = checkPrecision(w.precision, o.pipeline.target); !precision)
    return precision.error();
  o.spec.precision = w.precision;
  for (const std::string &dim : w.dims)
    if (Status status = parseDim(dim, o.spec); !status)
      return status.error();
  for (const std::string &limit : w.limits)
    if (Status status = parseLimit(limit, o.spec.limits); !status)
      return status.error();
  if (!w.batch.empty() && !isNumber(w.batch, std::numeric_limits<int64_t>::max(), o.spec.batch.emplace()))
    return "--batch takes a positive number, not '" + w.batch + "'";
  int64_t threads = std::max(1u, std::thread::hardware_concurrency());
  if (!w.threads.empty() && !isNumber(w.threads, mostThreads, threads))
    return "--threads takes a number from 1 to " + std::to_string(mostThreads) + ", not '" + w.threads + "'";
  o.pipeline.threads = static_cast<int>(threads);
  if (!w.hostBudget.empty() && !size("--host-budget", w.hostBudget, o.pipeline.hostBudget))
    return e;
  if (!w.workspaceLimit.empty() && !size("--workspace-limit", w.workspaceLimit, o.pipeline.workspaceLimit))
    return e;
  // The words alone: what a percentage is of, plan-memory knows.
  if (!o.pipeline.budget.empty() && !parseBudget(o.pipeline.budget, 1 << 20, 0))
    return "--memory-budget takes bytes, 600MiB, 8GiB, 40% or 40%act, not '" + o.pipeline.budget + "'";
  std::stringstream lossy(w.allowLossy);
  for (std::string name; std::getline(lossy, name, ',');)
    if (const auto known = planner::lossyActions(); !llvm::is_contained(known, name) && name != "algorithms")
      return "--allow-lossy knows no '" + name + "'; there are " + llvm::join(known, ", ") + " and algorithms";
  o.pipeline.allowLossy = w.allowLossy;
  constexpr size_t longestPattern = 1000; // the standard library descends into brackets on its stack
  if (o.spec.freeze.size() > longestPattern)
    return "--freeze takes a regular expression of at most " + std::to_string(longestPattern) + " characters, not of " +
           std::to_string(o.spec.freeze.size());
  try {
    std::regex check(o.spec.freeze);
  } catch (const std::regex_error &) {
    return "--freeze takes a regular expression, '" + o.spec.freeze + "' is none";
  }
  std::string unknown = checkStrategy(o.pipeline.strategy);
  return unknown.empty() ? refuse(o) : unknown;
}

} // namespace

std::optional<int> sluice::parseCommandLine(const std::vector<std::string> &words, DriverOptions &options) {
  CLI::App app("sluicec compiles an ONNX model into a program that trains it inside a memory budget", "sluicec");
  Words values;
  declare(app, options, values);
  // The parser would take the next argument for the value of `--flag=`.
  for (std::string_view word : words)
    if (word.size() > 3 && word.substr(0, 2) == "--" && word.find('=') == word.size() - 1)
      return usage(std::string(word) + " has no value");
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend())); // it takes them from the back
  } catch (const CLI::CallForHelp &) {
    std::cout << app.help();
    return 0;
  } catch (const CLI::ParseError &error) {
    return usage(error.what());
  }
  if (std::string message = convert(values, options); !message.empty())
    return usage(message);
  options.deviceNamed = app.count("--device") > 0;
  const TargetFacts &target = factsOf(options.pipeline.target);
  if (target.device && !options.deviceNamed)
    options.pipeline.device = target.device;
  if (options.calibrate && (target.device || options.deviceNamed))
    return usage("--calibrate measures this machine, which " +
                 (target.device ? std::string("--target=") + target.name : "--device=" + options.pipeline.device) +
                 " does not plan for");
  options.commandLine = "sluicec";
  for (const std::string &word : words)
    options.commandLine += " " + word;
  return std::nullopt;
}
