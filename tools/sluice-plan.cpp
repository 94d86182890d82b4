// SPDX-License-Identifier: Apache-2.0
// sluice-plan: the planner without a compiler run. Plans chain problems, packs static buffers, and sweeps strategies
// over a model's budgets. Exit status: 0; 1 bad input; 2 usage; 3 infeasible, with the answer on stdout; 4 internal
// error.
#include "passes/planner/Files.h"
#include "passes/planner/Words.h"
#include "passes/strategies/Registry.h"
#include "runtime/files/OutputFile.h"
#include "runtime/program/HelpText.h"
#include "tools/Destinations.h"
#include "tools/Failure.h"
#include "tools/HelpFormatter.h"
#include "tools/PlanArguments.h"
#include "tools/PlanModel.h"
#include "tools/PlanReport.h"
#include "tools/StandardOutput.h"
#include "tools/Version.h"

#include <nlohmann/json.hpp>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <sstream>

using namespace sluice::planner;
using namespace sluice::plan;
using nlohmann::ordered_json;
using sluice::Result;

namespace {

/// Keys in this order; seconds and bytes as the chain file has them.
ordered_json toJson(const ChainPlan &plan, Seconds bound) {
  ordered_json out;
  out["feasible"] = true;
  out["makespan"] = plan.timeline.makespan;
  out["lower_bound"] = bound;
  out["ratio"] = bound > 0 ? plan.timeline.makespan / bound : 1.0;
  out["peak_bytes"] = plan.timeline.peakBytes;
  out["actions"] = ordered_json::array();
  for (Action action : plan.actions)
    out["actions"].push_back(actionName(action));
  out["recompute"] = ordered_json::array();
  for (auto [first, last] : plan.recompute)
    out["recompute"].push_back({first, last});
  out["timeline"] = ordered_json::array();
  for (const ChainEvent &e : plan.timeline.events)
    out["timeline"].push_back(
        {{"op", e.name()}, {"stream", factsOf(e.stream()).name}, {"start", e.start}, {"end", e.end}});
  return out;
}

void print(const ChainPlan &plan, const std::string &strategy, Seconds bound) {
  std::printf("strategy %s: makespan %.9g s, lower bound %.9g s, ratio %.4f, peak %.9g bytes\n", strategy.c_str(),
              plan.timeline.makespan, bound, bound > 0 ? plan.timeline.makespan / bound : 1.0, plan.timeline.peakBytes);
  for (size_t i = 0; i < plan.actions.size(); ++i)
    std::printf("  x_%zu %s\n", i, actionName(plan.actions[i]));
  for (const ChainEvent &e : plan.timeline.events)
    std::printf("  %12.6g %12.6g  %-7s %s\n", e.start, e.end, factsOf(e.stream()).name, e.name().c_str());
}

/// Wrong words are Usage before the file is read, a wrong file is BadInput. A chain without a plan is an answer,
/// NoPlan, with the smallest memory that has one.
int planProblem(const Arguments &arguments) {
  Options options;
  const Result<Abilities> lossy = parseLossy(arguments.allowLossy);
  if (!lossy)
    throw Failure{Usage, lossy.error()};
  options.allowLossy = *lossy;
  const Result<StrategyWords> words = parseStrategy(arguments.strategy);
  if (!words)
    throw Failure{Usage, words.error()};
  const std::string &name = words->name;
  for (const auto &[knob, value] : words->knobs)
    options.knobs[knob] = value;
  if (arguments.release != "whole" && arguments.release != "partial")
    throw Failure{Usage, "--release is '" + arguments.release + "', it must be whole or partial"};
  const Release release = arguments.release == "whole" ? Release::Whole : Release::Partial;
  Result<ChainFile> parsed = parseChain(readFile(arguments.problem));
  if (!parsed)
    throw Failure{BadInput, arguments.problem + ": " + parsed.error()};
  ChainFile &file = *parsed;
  if (!arguments.memory.empty())
    file.memory = sizeOf(arguments.memory, "--memory");
  if (!file.memory)
    throw Failure{Usage, arguments.problem + ": no 'memory' in the file and no --memory"};
  const ChainAnswer answer = runStrategy(file.chain, *file.memory, release, name, options);
  if (const auto *refused = std::get_if<Refused>(&answer))
    throw Failure{Usage, refused->reason};
  if (const auto *none = std::get_if<ChainInfeasible>(&answer)) {
    if (arguments.json)
      std::cout << ordered_json{{"feasible", false}, {"smallest_memory", none->smallestMemory}}.dump() << "\n";
    else
      std::printf("infeasible: smallest memory of strategy %s: %.17g bytes\n", name.c_str(), none->smallestMemory);
    return NoPlan;
  }
  const ChainPlan &plan = std::get<ChainPlan>(answer);
  const Seconds bound = strategyBound(file.chain, *file.memory, name, options);
  if (arguments.json)
    std::cout << toJson(plan, bound).dump() << "\n";
  else
    print(plan, name, bound);
  return Ok;
}

/// Beside the target first, so that nothing half-written is left.
void writeFile(const std::string &path, const std::string &text) {
  sluice::OutputFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

/// Checks the output's name and place before the sweep, which takes minutes.
int sweepModel(const Arguments &arguments, std::vector<std::string> compilerFlags) {
  if (!arguments.allowLossy.empty())
    compilerFlags.push_back("--allow-lossy=" + arguments.allowLossy);
  const bool html = arguments.output.size() > 5 && arguments.output.substr(arguments.output.size() - 5) == ".html";
  const bool csv = arguments.output.size() > 4 && arguments.output.substr(arguments.output.size() - 4) == ".csv";
  if (!html && !csv)
    throw Failure{Usage, "-o is '" + arguments.output + "', it must end in .html or .csv"};
  const sluice::ModelProblem model = sluice::problemOfModel(arguments.model, compilerFlags);
  if (!model.error.empty())
    throw Failure{static_cast<Exit>(model.status), model.error};
  if (model.problem.ops.empty())
    return model.status; // --help, or a usage error that has been printed
  const sluice::Destinations destinations(model.inputs, arguments.force);
  if (sluice::Status free = destinations.check(arguments.output, sluice::Made::Report); !free)
    throw Failure{BadInput, free.error()};
  std::vector<std::string> names;
  std::istringstream list(arguments.strategies);
  for (std::string name; std::getline(list, name, ';');)
    names.push_back(name);
  sluice::Sweep sweep = sluice::sweepOf(model.problem, model.options, arguments.model, model.device);
  addCurves(sweep, names.empty() ? sluice::sweepStrategies() : names, arguments.steps);
  writeFile(arguments.output, html ? htmlOf(sweep) : csvOf(sweep));
  std::printf("%-16s", "budget (MiB)");
  for (const auto &curve : sweep.curves)
    std::printf(" %14s", curve.strategy.c_str());
  for (size_t i = 0; !sweep.curves.empty() && i <= static_cast<size_t>(arguments.steps); ++i) {
    for (const auto &curve : sweep.curves) {
      if (&curve == &sweep.curves.front())
        std::printf("\n%-16.1f", i < curve.points.size() ? curve.points[i].budget / 1048576.0 : 0.0);
      if (i < curve.points.size() && curve.points[i].plan)
        std::printf(" %+13.2f%%", 100 * (curve.points[i].makespan / sweep.keepSeconds - 1));
      else
        std::printf(" %14s", "-");
    }
  }
  std::printf("\nwrote %s\n", arguments.output.c_str());
  return Ok;
}

std::string lossyHelp() {
  std::string list;
  for (const std::string &name : abilityNames(lossyActions()))
    list += (list.empty() ? "of " : ",") + name;
  return list;
}

std::string strategyHelp() {
  std::vector<sluice::HelpEntry> entries;
  for (const Strategy &s : strategies()) {
    std::string does = s.summary;
    for (const Knob &knob : s.knobs)
      does += (&knob == &s.knobs.front() ? " [" : ", ") + knob.name + (&knob == &s.knobs.back() ? "]" : "");
    entries.emplace_back(s.name, does);
  }
  return sluice::helpGroup("Strategies", entries, "");
}

void declareModel(CLI::App &app, Arguments &arguments) {
  app.option_defaults()->group("Sweep of a model");
  app.add_option("--model", arguments.model, "the model; all of sluicec's flags may follow")->option_text("FILE.onnx");
  app.add_flag("--sweep", arguments.sweep, "plan the model with every strategy from its floor to keep's arena");
  app.add_option("--strategies", arguments.strategies, "which ones, separated by ';' (default: all)")
      ->option_text("NAME[,k=v...];...");
  app.add_option("--steps", arguments.steps, "budgets less one, of 1 to 1000 (default 12)")
      ->option_text("N")
      ->check(CLI::Range(1, 1000));
  app.add_option("-o", arguments.output, "report.html or report.csv")->option_text("FILE");
  app.add_flag("--force", arguments.force, "write over a file that is no report");
}

void declareProblems(CLI::App &app, Arguments &arguments) {
  app.option_defaults()->group("Plan of a chain");
  app.add_option("--problem", arguments.problem, "chain problem")->option_text("FILE.json");
  app.add_option("--strategy", arguments.strategy, "who plans, see below (default auto)")->option_text("NAME[,k=v...]");
  app.add_option("--memory", arguments.memory, "of the device, bytes or 600MiB (default: what the file says)")
      ->option_text("SIZE");
  app.add_option("--release", arguments.release, "whole: what can be executed (default whole)")
      ->option_text("whole|partial");
  app.add_option("--allow-lossy", arguments.allowLossy, "what may round, " + lossyHelp() + " (default: nothing)")
      ->option_text("NAMES");
  app.option_defaults()->group("Packing");
  app.add_option("--pack", arguments.pack, "buffers, columns id,lower,upper,size")->option_text("FILE.csv");
  app.add_option("--pool", arguments.pool,
                 "the same buffers in an allocator's pool: how large must it be? Column high: "
                 "at the high end")
      ->option_text("FILE.csv");
  app.add_option("--capacity", arguments.capacity, "bytes that packing or pool may reach (default: no limit)")
      ->option_text("SIZE");
  app.add_option("--nodes", arguments.nodes, "limit of the search (default 0: by the number of buffers)")
      ->option_text("N")
      ->check(CLI::NonNegativeNumber);
  app.option_defaults()->group("Output");
  app.add_flag("--json", arguments.json, "print the answer as JSON");
  app.set_help_flag("--help,-h", "print this text and exit")->group("Output");
  app.set_version_flag("--version", sluice::versionText("sluice-plan"), "print version and commit, and exit");
}

void declare(CLI::App &app, Arguments &arguments) {
  app.formatter(std::make_shared<sluice::HelpFormatter>(
      "--model=FILE.onnx | --problem=FILE.json | --pack|--pool=FILE.csv [FLAG=VALUE]...",
      std::map<std::string, std::string>{
          {"Sweep of a model", "sluice-plan --model=model.onnx --batch=32 --sweep -o sweep.html"},
          {"Plan of a chain", "sluice-plan --problem=chain.json --memory=600MiB --strategy=greedy"},
          {"Packing", "sluice-plan --pack=buffers.csv --capacity=1048576"},
          {"Output", "sluice-plan --pack=buffers.csv --json"}}));
  declareModel(app, arguments);
  declareProblems(app, arguments);
  app.footer(sluice::helpGroup("Exit status",
                               {{"0", "there is a plan, or all was written"},
                                {"1", "a file cannot be used"},
                                {"2", "the command line makes no sense"},
                                {"3", "the memory is too small; the answer says what is not"},
                                {"4", "an internal error"}},
                               "") +
             strategyHelp());
}

int run(int argc, char **argv) {
  Arguments arguments;
  CLI::App app("Plans memory for one training step: sweeps the budgets of a model, plans chains, packs static buffers.",
               "sluice-plan");
  declare(app, arguments);
  app.allow_extras();
  if (const std::string wrong = sluice::valueOfSwitch(app, {argv + 1, argv + argc}); !wrong.empty())
    throw Failure{Usage, wrong};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &e) {
    if (e.get_exit_code() == 0)
      return app.exit(e);
    throw Failure{Usage, e.what()};
  }
  const int kinds =
      int(!arguments.problem.empty()) + !arguments.pack.empty() + !arguments.pool.empty() + !arguments.model.empty();
  if (kinds == 0 && !app.remaining().empty()) // probably one of these, misspelt
    throw Failure{Usage, sluice::unknownWord(app)};
  if (kinds != 1)
    throw Failure{Usage, "exactly one of --problem, --pack, --pool and --model is needed"};
  if (const auto status = sluice::failWithoutFolder("sluice-plan"))
    return *status;
  if (!arguments.model.empty())
    return sweepModel(arguments, app.remaining());
  if (!app.remaining().empty())
    throw Failure{Usage, sluice::unknownWord(app)};
  if (!arguments.pool.empty())
    return searchPools(arguments);
  return arguments.pack.empty() ? planProblem(arguments) : packProblem(arguments);
}

int guarded(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const Failure &failure) {
    return sluice::fail("sluice-plan", failure.code, failure.message);
  } catch (const sluice::DataError &e) {
    return sluice::fail("sluice-plan", BadInput, e.what());
  } catch (const std::exception &e) {
    return sluice::fail("sluice-plan", Internal, e.what());
  }
}

} // namespace

int main(int argc, char **argv) {
  sluice::openStandardStreams();
  sluice::reportCrashes("sluice-plan");
  std::signal(SIGXFSZ, SIG_IGN); // a limit on file sizes is an error of the write, as a full disk is
  return sluice::finishOutput("sluice-plan", guarded(argc, argv));
}
