// SPDX-License-Identifier: Apache-2.0
// Command line of sluicec. A value whose capability does not exist yet is refused with a message that says so.
#include "frontend/NamePatterns.h"
#include "passes/planner/Words.h"
#include "passes/strategies/Registry.h"
#include "runtime/CpuTable.h"
#include "runtime/program/HelpText.h"
#include "tools/Driver.h"
#include "tools/Failure.h"
#include "tools/HelpFormatter.h"
#include "tools/MemoryWords.h"
#include "tools/TargetWords.h"
#include "tools/Version.h"

#include "llvm/ADT/StringExtras.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>

using namespace sluice;

namespace {

/// The words of flags that need a look; convert() reads them once all are known.
struct Words {
  std::string emit = "binary", optimizer = "sgd", init = "keep", dropout = "keep";
  std::string target = factsOf(Target::Host).name, precision = "fp32", adapter, frozen, classWeights, launches,
              epilogues, hostBudget, stateHome = "device", parameterHome = "device", updates = "home", workspaceLimit,
              allowLossy, errorBudget, batch, threads, parts, ranks, reduce, shard;
  std::vector<std::string> losses, turns, dims, batchDims, inputs, limits, batchNorm, freeze, train;
};

/// Options declared after it are of this group of --help.
void beginGroup(CLI::App &app, const char *heading) { app.option_defaults()->group(heading); }

void addList(CLI::App &app, const char *name, std::vector<std::string> &to, const std::string &help, const char *text) {
  app.add_option(name, to, help)->option_text(text)->allow_extra_args(false); // several times, one value each
}

void declareModel(CLI::App &app, DriverOptions &o, Words &w) {
  beginGroup(app, "Model");
  app.add_option("MODEL", o.model, "ONNX file")->required();
  app.add_option("--batch", w.batch, "batch size where the model leaves it open")->option_text("N");
  addList(app, "--dim", w.dims, dimHelp, "NAME=N[,N...]");
  addList(app, "--batch-dim", w.batchDims,
          "dimension of an input or output that counts samples (default: the one called batch, else 0), or none",
          "NAME=K|none");
  addList(app, "--input", w.inputs, "an input that all samples have in common; data hold it once", "NAME=shared");
  addList(app, "--limit", w.limits,
          "how large a model and what is made of it may be, of (defaults) " + describeLimits(), "NAME=N");
  addList(app, "--batch-norm", w.batchNorm,
          "file: as each node says; train: by each batch's statistics; frozen: by the running ones; with REGEX "
          "for nodes alone whose name, or whose scale's, matches (default file). synchronized,ranks=N: with --ranks, "
          "the batches of N ranks are normalized together (default: each by itself)",
          "MODE[:REGEX]|synchronized,ranks=N");
  app.add_option("--dropout", w.dropout, "keep: as the model says; off (default keep)")->option_text("keep|off");
  app.add_flag("--check", o.check, "list everything in the model that is not supported, then stop");
  app.add_flag("--list-parameters", o.listParameters,
               "print name, shape, role and reason of every variable, then stop");
}

void declareTraining(CLI::App &app, DriverOptions &o, Words &w) {
  beginGroup(app, "Training");
  addList(app, "--loss", w.losses, lossHelp, "[OUTPUT=]NAME[,k=v...]");
  addList(app, "--turn", w.turns, turnHelp, turnForm);
  app.add_option("--output", o.spec.output,
                 "what the loss is attached to and the program predicts (default: the model's first output)")
      ->option_text("NAME");
  app.add_option("--ignore-index", o.spec.ignoreIndex,
                 "targets that are N, which is no class, do not count; not of mse (default: all count)")
      ->option_text("N");
  app.add_option("--class-weights", w.classWeights,
                 "weights of a cross-entropy's classes, in their order, or @FILE with a number a line; the loss is the "
                 "weighted mean (default: all 1)")
      ->option_text("W0,W1,...|@FILE");
  app.add_option("--optimizer", w.optimizer, "sgd, adam, adamw, adagrad, rmsprop, lamb or lion (default sgd)")
      ->option_text("NAME");
  app.add_flag("--clip-norm", o.spec.clipNorm,
               "the program may clip gradients by the norm of all of them, which live until the end of the step");
  app.add_flag("--accumulate", o.spec.accumulate, "a step of the program may have several batches");
  app.add_flag("--kv-cache", o.pipeline.keyCache, keyCacheHelp);
  app.add_option("--ranks", w.ranks, ranksHelp)->option_text("mpi|nccl|N");
  app.add_option("--interconnect", o.pipeline.interconnect, interconnectHelp)->option_text("NAME|FILE");
  app.add_option("--reduce", w.reduce, reduceHelp)->option_text("ordered[,batches=N]|fast");
  app.add_option("--shard", w.shard, shardHelp)->option_text("states|gradients|parameters,ranks=N");
  app.add_flag("--ema", o.spec.average, "the program averages the weights, and evaluates and exports their average");
  app.add_option("--init", w.init, "values of the model file, or drawn from the program's --seed (default keep)")
      ->option_text("keep|kaiming|xavier");
  addList(app, "--freeze", w.freeze,
          "tensors whose whole names match are not trained; without gradients and optimizer state they take "
          "less memory; @FILE has a regular expression a line",
          "REGEX|@FILE");
  addList(app, "--train", w.train,
          "tensors whose whole names match are trained whatever rules say, which --check tells; what --freeze "
          "matches, too, is as without both",
          "REGEX|@FILE");
  app.add_option("--adapter", w.adapter,
                 "train low-rank matrices beside weights, those that targets=REGEX names; rank=N, alpha=X, dropout=P, "
                 "rslora: docs/fine-tuning.md")
      ->option_text("lora|dora[,k=v...]");
  app.add_option(
         "--frozen", w.frozen,
         "keep matrices that are held fixed in fewer bits, each N neighbours with a scale and, asymmetric, a zero "
         "point (default: as floats; N 64): docs/fine-tuning.md")
      ->option_text(frozenForm);
}

void declareMemory(CLI::App &app, DriverOptions &o, Words &w) {
  beginGroup(app, "Memory");
  app.add_option("--memory-budget", o.pipeline.budget,
                 "of the device arena, with host of all memory that the program plans: bytes, 600MiB, 8GiB, 40% of "
                 "what keeping everything needs, or 40%act, a share of what does not live through the whole step "
                 "(default: what keeping everything needs)")
      ->option_text("SIZE");
  app.add_option(
         "--host-budget", w.hostBudget,
         "a memory of its own for what is offloaded: bytes, 8GiB, 0 (nothing leaves) or unlimited; or storage, a "
         "file (host) (default: "
         "unlimited with cuda or without --memory-budget; else none, the budget is of all memory)")
      ->option_text("SIZE|unlimited|storage");
  app.add_option("--state-home", w.stateHome, stateHomeHelp)->option_text("WHERE");
  app.add_option("--parameter-home", w.parameterHome, parameterHomeHelp)->option_text("WHERE");
  app.add_option("--updates", w.updates, updatesHelp)->option_text("home|device");
  app.add_option("--strategy", o.pipeline.strategy,
                 "who plans, with knobs; sluice-plan --help lists them (default auto)")
      ->option_text("NAME[,k=v...]");
  app.add_option("--allow-lossy", w.allowLossy,
                 "of " + llvm::join(planner::abilityNames(planner::lossyActions()), ",") +
                     ",algorithms: what plans may do that rounds otherwise than keeping everything (default: nothing)")
      ->option_text("NAMES");
  app.add_option("--error-budget", w.errorBudget,
                 "relative error of the gradients, as 1e-2, within which each tensor has a codec and a rate of "
                 "its own; allows all lossy codecs unless --allow-lossy names some (default: no limit)")
      ->option_text("X");
  app.add_option("--parts", w.parts,
                 "the largest cross-entropy is computed in N parts of its rows, or the step in N parts of the batch or "
                 "of the rows of its images, in turn, with ,above=SIZE only what touches so many bytes; weights: SIZE "
                 "bytes of a weight's gradient exist at a time; auto: what is fastest (default 1)")
      ->option_text("N|batch=N|image=N|weights=SIZE|auto");
  app.add_option("--workspace-limit", w.workspaceLimit,
                 "of one kernel, bytes or 64MiB; the fastest way to compute that fits is taken (default: none that "
                 "would raise the smallest budget; cuda: 64MiB at most, fp32 256MiB, gradients of attentions 1GiB)")
      ->option_text("SIZE");
  app.add_flag("--max-batch", o.maxBatch,
               "print the largest batch that fits the budget, and its predicted throughput, then stop");
  app.add_flag("--explain", o.explain, "print tensor, node, bytes, lifetime, action and reason");
}

void declareMachine(CLI::App &app, DriverOptions &o, Words &w) {
  beginGroup(app, "Machine");
  app.add_option("--target", w.target, "what the program runs on (default host)")->option_text("host|cuda");
  app.add_option("--precision", w.precision,
                 "fp32, or bf16, which activations and products have then, parameters and sums not; with --target=cuda "
                 "also tf32 and fp16 (default fp32)")
      ->option_text("NAME");
  app.add_option(
         "--launches", w.launches,
         "with --target=cuda: grouped, small kernels of one kind share a launch where that takes no more memory, "
         "or single (default grouped)")
      ->option_text("grouped|single");
  app.add_option(
         "--epilogues", w.epilogues,
         "with --target=cuda and bf16 or fp16: products, those beside Gelu by tanh compute it and its gradient; "
         "fused, convolutions compute the sums that BatchNorm beside them needs, too; or none (default "
         "products)")
      ->option_text("products|fused|none");
  app.add_option(
         "--cpu", o.cpu,
         "what a host program and its runtime are built for: native, x86-64-v2, v3 or v4, armv8-a, armv8.2-a or "
         "armv8.2-a+sve (default native: processors like this one)")
      ->option_text("LEVEL");
  app.add_option("--threads", w.threads, "host threads that the plan is made for (default: this machine's)")
      ->option_text("N");
  app.add_option("--device", o.pipeline.device,
                 "profile that times are predicted by: a name or a .json file (default: this machine as measured, or "
                 "$SLUICE_DEVICE; with --target=cuda this machine's GPU, or h200)")
      ->option_text("NAME|FILE");
  app.add_flag("--calibrate", o.calibrate, "measure this machine again (default: once, kept in ~/.cache/sluice)");
  app.add_option("--profile", o.pipeline.profile,
                 "times that a program measured, its --profile-out (default: predicted ones)")
      ->option_text("FILE.json");
}

void declareOutput(CLI::App &app, DriverOptions &o, Words &w) {
  beginGroup(app, "Output");
  app.add_option("--emit", w.emit,
                 "forward, training, linearized, planned, scheduled or placed: the IR at that point; source; project: "
                 "a folder that builds without Sluice; binary; library: libNAME.so, libNAME.a and a header, for other "
                 "programs; "
                 "report: time over memory as HTML or CSV (default binary)")
      ->option_text("WHAT");
  app.add_option(
         "-o", o.output,
         "file, folder of a project, or NAME of a library (default: by the model's name; IR is printed, as with -)")
      ->option_text("PATH");
  app.add_flag(
      "--data-formats", o.dataFormats,
      "--emit=library: it reads files as programs do, see sluice_data_open() in its header (default: arrays of "
      "the caller alone)");
  app.add_flag("--force", o.force, "write over files that sluicec did not write");
  app.set_help_flag("--help,-h", "print this text and exit")->group("Output");
  app.set_version_flag("--version", versionText("sluicec"), "print version and commit, and exit");
}

void declare(CLI::App &app, DriverOptions &options, Words &words) {
  app.formatter(std::make_shared<HelpFormatter>(
      "MODEL [FLAG=VALUE | FLAG VALUE | SWITCH]...",
      std::map<std::string, std::string>{
          {"Model", "sluicec model.onnx --batch=32 --check"},
          {"Training", "sluicec model.onnx --batch=32 --optimizer=adamw --clip-norm --init=kaiming"},
          {"Memory", "sluicec model.onnx --batch=32 --memory-budget=60% --explain"},
          {"Machine", "sluicec model.onnx --batch=32 --cpu=x86-64-v3 --threads=4"},
          {"Output", "sluicec model.onnx --batch=32 --emit=report -o plan.html"}}));
  declareModel(app, options, words);
  declareTraining(app, options, words);
  declareMemory(app, options, words);
  declareMachine(app, options, words);
  declareOutput(app, options, words);
  app.footer(helpGroup("Exit status",
                       {{"0", "all was done"},
                        {"1", "the model or another file cannot be used"},
                        {"2", "the command line makes no sense"},
                        {"3", "the budget is too small; the smallest one that is not is said"},
                        {"4", "an internal error"}},
                       ""));
}

int usage(const std::string &message) { return fail("sluicec", 2, message); }

/// Takes a parsed word or returns its error.
template <typename T> Status take(Result<T> result, T &into) {
  if (!result)
    return result.takeError();
  into = *result;
  return Success{};
}

/// Flags that exclude each other.
Status refuse(const DriverOptions &o) {
  if (o.maxBatch && (o.pipeline.budget.empty() || o.pipeline.budget.find('%') != std::string::npos))
    return Error{"--max-batch needs --memory-budget in bytes: a share of keep's arena would grow with the batch"};
  if (o.maxBatch && o.spec.batch)
    return Error{"--max-batch looks for the batch, --batch=" + std::to_string(*o.spec.batch) +
                 " fixes it; give one of them"};
  if (o.output == "-" && o.emit > Emit::Placed)
    return Error{"-o - prints the IR (--emit=forward to placed); what else --emit makes needs a name"};
  return Success{};
}

/// Flags that may be given several times.
Status takeLists(const Words &w, DriverOptions &o) {
  const std::pair<const std::vector<std::string> *, Status (*)(const std::string &, TrainingSpec &)> parsers[] = {
      {&w.batchDims, parseBatchDim},
      {&w.inputs, parseInput},
      {&w.batchNorm, parseBatchNorm},
      {&w.limits, [](const std::string &word, TrainingSpec &spec) { return parseLimit(word, spec.limits); }}};
  for (const auto &[words, parse] : parsers)
    for (const std::string &word : *words)
      if (Status status = parse(word, o.spec); !status)
        return status;
  return Success{};
}

/// Refuses the first word that makes no sense.
Status convert(const Words &w, DriverOptions &o) {
  o.spec.precision = w.precision;
  const std::function<Status()> steps[] = {
      [&] { return takeEmit(w.emit, o); },
      [&] { return take(parseOptimizer(w.optimizer), o.spec.optimizer); },
      [&] { return w.classWeights.empty() ? Success{} : take(parseClassWeights(w.classWeights), o.spec.classWeights); },
      [&] { return take(parseInitialValues(w.init), o.spec.init); },
      [&] { return take(parseDropoutMode(w.dropout), o.spec.dropout); },
      [&] { return take(readPatterns("--freeze", w.freeze), o.spec.freeze); },
      [&] { return take(readPatterns("--train", w.train), o.spec.train); },
      [&] { return w.adapter.empty() ? Success{} : take(parseAdapter(w.adapter), o.spec.adapter.emplace()); },
      [&] { return w.frozen.empty() ? Success{} : take(parseFrozen(w.frozen, w.precision), o.spec.frozen.emplace()); },
      [&] { return takeTarget(w.target, o.pipeline.target); },
      [&] { return takeCpu(o); },
      [&] { return takeLaunches(w.launches, w.epilogues, o.pipeline); },
      [&] { return checkPrecision(w.precision, o.pipeline.target); },
      [&] { return parseLosses(w.losses, o.spec); },
      [&] { return w.turns.empty() ? Success{} : parseTurns(w.turns, o.spec); },
      [&] { return takeDims(w.dims, o); },
      [&] { return takeLists(w, o); },
      [&] { return takeCounts(w.batch, w.threads, o); },
      [&] { return takeMemory(w.hostBudget, w.workspaceLimit, o); },
      [&] { return takeParts(w.parts, o.pipeline); },
      [&] { return takeRanks(w.ranks, w.reduce, w.shard, o); },
      [&] { return takeHomes(w.stateHome, w.parameterHome, w.updates, o); },
      [&] { return takeLossy(w.allowLossy, w.errorBudget, o); },
      [&] { return checkStrategy(o.pipeline.strategy); },
      [&] { return refuseNotYet(o); },
      [&] { return refuse(o); }};
  for (const auto &step : steps)
    if (Status status = step(); !status)
      return status;
  if (o.output == "-") // of IR, see refuse()
    o.output.clear();
  return Success{};
}

} // namespace

std::map<std::string, bool> sluice::compilerFlags() {
  CLI::App app;
  DriverOptions options;
  Words values;
  declare(app, options, values);
  std::map<std::string, bool> flags;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      flags["--" + name] = option->get_items_expected_max() > 0;
  flags["-o"] = true;
  return flags;
}

std::optional<int> sluice::parseCommandLine(const std::vector<std::string> &words, DriverOptions &options) {
  CLI::App app("Compiles an ONNX model into a program that trains it inside a memory budget.", "sluicec");
  Words values;
  declare(app, options, values);
  // The parser would take the next argument for the value of `--flag=`.
  for (std::string_view word : words)
    if (word.size() > 3 && word.substr(0, 2) == "--" && word.find('=') == word.size() - 1)
      return usage(std::string(word) + " has no value");
  if (const std::string wrong = valueOfSwitch(app, words); !wrong.empty())
    return usage(wrong);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend())); // it takes them from the back
  } catch (const CLI::CallForHelp &) {
    std::cout << app.help();
    return 0;
  } catch (const CLI::CallForVersion &version) {
    std::cout << version.what() << "\n";
    return 0;
  } catch (const CLI::ParseError &error) {
    const std::string unknown = unknownWord(app); // its value may have taken the model's place
    return usage(unknown.empty() ? error.what() : unknown);
  }
  if (Status converted = convert(values, options); !converted)
    return usage(converted.error());
  options.deviceNamed = app.count("--device") > 0;
  const TargetFacts &target = factsOf(options.pipeline.target);
  if (target.device && !options.deviceNamed)
    options.pipeline.device = target.device;
  const bool foreign = isForeign(options.pipeline.level);
  if (options.calibrate && (target.device || options.deviceNamed || foreign))
    return usage("--calibrate measures this machine, which " +
                 (target.device ? std::string("--target=") + target.name
                  : foreign     ? "--cpu=" + options.cpu
                                : "--device=" + options.pipeline.device) +
                 " does not plan for");
  options.commandLine = "sluicec " + llvm::join(words, " ");
  return std::nullopt;
}
