// SPDX-License-Identifier: Apache-2.0
// The parser: `--flag value` and `--flag=value`, no abbreviations, no positional arguments; and what flags mean to one
// another.

#include "runtime/program/Flags.h"

#include "runtime/Errors.h"
#include "runtime/Printable.h"
#include "runtime/program/ClassNames.h"
#include "runtime/program/Generate.h"
#include "runtime/program/LossScaling.h"
#include "runtime/program/Metrics.h"
#include "runtime/program/Mixup.h"
#include "runtime/program/Outputs.h"
#include "runtime/program/ParameterGroups.h"
#include "runtime/program/Preparation.h"
#include "runtime/program/Recipe.h"
#include "runtime/program/Schedule.h"
#include "runtime/program/WeightNames.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace sluice {

namespace {

using Optimizer = Program::Optimizer;

/// A hyperparameter that this program's optimizer does not have.
void refuseForeign(const Arguments &arguments, Optimizer optimizer) {
  const OptimizerFacts &facts = factsOf(optimizer);
  const std::pair<const char *, bool> known[] = {{"--beta1", facts.beta1 >= 0},
                                                 {"--beta2", facts.beta2 >= 0},
                                                 {"--epsilon", facts.epsilon >= 0},
                                                 {"--alpha", facts.alpha >= 0},
                                                 {"--lr-decay", facts.rateDecay >= 0},
                                                 {"--momentum", facts.momentum >= 0},
                                                 {"--nesterov", optimizer == Optimizer::Sgd}};
  for (const auto &[name, has] : known)
    if (!has && isGiven(arguments, *findFlag(name)))
      throw UsageError(text(name, " means nothing to ", facts.name, ", which this program was compiled with"));
  if (arguments.nesterov && arguments.momentum && *arguments.momentum == 0)
    throw UsageError("--nesterov looks ahead by the momentum, which --momentum 0 takes away");
}

/// What the plan has room for only if it was asked to.
void refuseUnplanned(const Arguments &arguments, const Program &program) {
  const auto refuse = [&](const char *flag, bool planned, const char *what) {
    if (!planned && isGiven(arguments, *findFlag(flag)))
      throw UsageError(text(flag, " needs ", what,
                            ", which this program was compiled without; compile it again with sluicec ", flag));
  };
  refuse("--clip-norm", program.norm.present, "all gradients at once");
  refuse("--accumulate", program.accumulates, "room for sums of gradients");
  refuse("--ema", program.averages, "room for averages of the weights");
  checkLossScale(arguments, program);
  const bool ofClasses =
      program.correct.present || std::any_of(program.outputs, program.outputs + program.outputCount, hasCrossEntropy);
  if (arguments.labelSmoothing && !ofClasses)
    throw UsageError("--label-smoothing is for cross-entropies of classes, which this program's loss is not");
  if (arguments.labelSmoothing && program.classWeights)
    throw UsageError("--label-smoothing does not go with --class-weights, which this program was compiled with");
  if (arguments.mixup.value_or(0) > 0)
    requireMixable(program);
}

void checkEvaluation(const Arguments &arguments) {
  for (const char *name : {"--evaluate-every", "--metrics", "--best", "--patience"})
    if (!arguments.evaluate && !arguments.validationSplit && isGiven(arguments, *findFlag(name)))
      throw UsageError(text(name, " needs --evaluate DIR or --validation-split P%"));
  if (!arguments.evaluate && !arguments.validationSplit && Schedule(arguments).plateau())
    throw UsageError("--schedule=plateau needs --evaluate DIR or --validation-split P%: it goes by what is measured");
  if (arguments.best && !arguments.checkpoint)
    throw UsageError("--best needs --checkpoint DIR");
}

void checkOutput(const Arguments &arguments) {
  if (arguments.predict && arguments.generate)
    throw UsageError("--predict and --generate exclude each other: both write the file of --output");
  if (arguments.output && !arguments.predict && !arguments.generate)
    throw UsageError("--output needs --predict DIR or --generate FILE.jsonl");
  if (arguments.predict && !arguments.output)
    throw UsageError("--predict needs --output FILE.npy, .npz, .csv or .json, or FOLDER/ for masks");
  if (arguments.generate && !arguments.output)
    throw UsageError("--generate needs --output FILE.jsonl");
  for (const char *name : {"--tokens", "--stop", "--temperature", "--top-k", "--top-p"})
    if (!arguments.generate && isGiven(arguments, *findFlag(name)))
      throw UsageError(text(name, " needs --generate FILE.jsonl"));
  Generation{arguments};
}

/// --class names all classes that a target has, or all of its labels. Fewer may be those of a folder, which has them by
/// their names, or of the recipe of such a run.
void checkNumberOfNames(const Arguments &arguments, const Program &program) {
  const ClassNames names = namesFrom(arguments.classes, program);
  const auto isFolder = [](const std::optional<std::string> &data) {
    return data && data->compare(0, 12, "imagefolder:") == 0;
  };
  const bool mayBeFewer = arguments.resume || isFolder(arguments.data) || isFolder(arguments.evaluate);
  const std::vector<int> targets = namedTargets(program);
  std::string others;
  for (size_t i = 0; i < targets.size() && targets.size() > 1; ++i)
    others += text(i ? ", " : "; where there are several targets --class TARGET=NAME says whose it is, of ", "'",
                   program.inputs[targets[i]].name, "'");
  std::set<int> seen;
  for (int i = namedOutput(program); i < program.outputCount; ++i) {
    const Output &output = program.outputs[i];
    const auto given = static_cast<int64_t>(namesOf(program, output.target, names).size());
    const std::optional<Scores> scores = scoresOf(program, output, output.target);
    if (given == 0 || !scores || !seen.insert(output.target).second)
      continue;
    const int64_t count = scores->kinds(program.batch);
    if (given > count || (given < count && !mayBeFewer))
      throw UsageError(text("--class names ", given, " of the ", count, scores->classes > 0 ? " classes" : " labels",
                            " of output '", output.name, "': give one for each, in order", others));
  }
}

/// What is measured of a step, where each shape has its own.
void refuseSeveralShapes(const Arguments &arguments, const Program &program) {
  for (const char *name : {"--roofline", "--profile-out", "--profile-errors"})
    if (program.bucketCount > 0 && isGiven(arguments, *findFlag(name)))
      throw UsageError(
          text(name, " measures steps of one shape, this program has ", program.bucketCount, ": compile it for one"));
  for (const char *name : {"--roofline", "--profile-out", "--profile-errors", "--mixup"})
    if (program.turnCount > 0 && isGiven(arguments, *findFlag(name)))
      throw UsageError(text(name, " is not available yet for programs whose steps take turns (sluicec --turn)"));
}

/// Flags that need one another.
void checkTogether(const Arguments &arguments, const Program &program) {
  checkHyperparameters(arguments, program);
  Schedule{arguments};
  if (const float rate = arguments.stepState(program.optimizer).learningRate;
      arguments.minimumRate && static_cast<float>(*arguments.minimumRate) > rate)
    throw UsageError(text("--min-lr ", *arguments.minimumRate, " is above the rate of ", rate, " (--lr)"));
  parameterGroups(arguments.groups, program);
  checkNumberOfNames(arguments, program);
  if (runtimeTarget() == Target::Host && arguments.noGraph)
    throw UsageError("--no-graph is for programs compiled with --target=cuda, this one runs on the host");
  if (runtimeTarget() == Target::Cuda && arguments.offloadTo)
    throw UsageError(
        "--offload-to is for programs compiled with --target=host: copies to a GPU come from locked memory");
  if (runtimeTarget() == Target::Cuda && arguments.roofline)
    throw UsageError("--roofline is for programs compiled with --target=host: the peaks of a GPU are not measured");
  if (arguments.quiet && arguments.explains())
    throw UsageError("--quiet prints nothing, --help, --plan and --version do nothing else");
  if (arguments.explains())
    return;
  if (arguments.steps && arguments.epochs)
    throw UsageError("--steps and --epochs exclude each other");
  checkEndings(arguments);
  if (!arguments.data) {
    if (!arguments.evaluate && !arguments.exportTo && !arguments.checkpoint && !arguments.predict &&
        !arguments.generate)
      throw UsageError("nothing to do: give --data DIR or --data synthetic (see --help)");
    for (const char *name : {"--steps", "--epochs", "--shuffle", "--validation-split", "--trace", "--dump-gradients",
                             "--profile-out", "--profile-errors", "--roofline", "--checkpoint-every",
                             "--evaluate-every", "--best", "--patience", "--report"})
      if (isGiven(arguments, *findFlag(name)))
        throw UsageError(text(name, " needs --data"));
  }
  if (arguments.validationSplit && arguments.evaluate)
    throw UsageError("--validation-split and --evaluate exclude each other: both say what is evaluated");
  if (!arguments.data && !arguments.evaluate && !arguments.predict)
    for (const char *name : {"--input", "--augment", "--mean", "--std", "--workers", "--on-bad-data", "--cut-long",
                             "--pad", "--columns", "--categorical", "--standardize"})
      if (isGiven(arguments, *findFlag(name)) && !(arguments.generate && std::strcmp(name, "--pad") == 0))
        throw UsageError(text(name, " needs --data, --evaluate or --predict"));
  checkEvaluation(arguments);
  checkOutput(arguments);
  refuseSeveralShapes(arguments, program);
  for (const char *name : {"--checkpoint-every", "--keep-checkpoints", "--checkpoint-trained-only"})
    if (isGiven(arguments, *findFlag(name)) && !arguments.checkpoint)
      throw UsageError(text(name, " needs --checkpoint DIR"));
  if (arguments.profileErrors && !arguments.profileOut)
    throw UsageError("--profile-errors needs --profile-out FILE");
  if (arguments.profileErrors && program.keptCount == 0)
    throw UsageError(
        "--profile-errors measures activations that the plan keeps, and this program's keeps none that could "
        "be packed: compile with --strategy=keep, with a smaller --batch where that does not fit");
  if (arguments.exportTo && !WeightFile(*arguments.exportTo).isSafetensors() && !program.exportTemplate)
    throw UsageError("--export of ONNX is not available: this program was compiled without an export template; "
                     "--export=FILE.safetensors writes the weights");
}

} // namespace

void checkHyperparameters(const Arguments &arguments, const Program &program) {
  refuseForeign(arguments, program.optimizer);
  refuseUnplanned(arguments, program);
}

Arguments parseArguments(int argc, const char *const *argv, const Program &program) {
  Arguments arguments;
  std::set<std::string> given;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i], value;
    size_t equals = word.compare(0, 2, "--") == 0 ? word.find('=') : std::string::npos;
    bool joined = equals != std::string::npos;
    if (joined) {
      value = word.substr(equals + 1);
      word.resize(equals);
    }
    const Flag *known = findFlag(word);
    if (!known)
      throw UsageError(text("unknown ", word.compare(0, 1, "-") == 0 ? "flag '" : "argument '", word, "' (see --help)",
                            likelyFlag(word)));
    const bool repeats = std::holds_alternative<std::vector<std::string> Arguments::*>(known->field);
    if (!given.insert(word).second && !repeats)
      throw UsageError(text(word, " is given twice"));
    if (!known->value && !joined)
      value = "true";
    if (known->value && !joined) {
      if (i + 1 >= argc || std::strncmp(argv[i + 1], "--", 2) == 0)
        throw UsageError(text(word, " needs a value: ", word, " ", known->value));
      value = argv[++i];
    }
    setFlag(arguments, *known, value);
  }
  if (arguments.recipe)
    readRecipe(*arguments.recipe, given, arguments);
  checkTogether(arguments, program);
  return arguments;
}

StepState Arguments::stepState(Optimizer optimizer) const {
  const OptimizerFacts &facts = factsOf(optimizer);
  const auto chosen = [](const std::optional<double> &given, double usual) {
    return static_cast<float>(given ? *given : std::max(0.0, usual));
  };
  StepState state;
  state.learningRate = chosen(learningRate, facts.learningRate);
  state.momentum = chosen(momentum, facts.momentum);
  state.weightDecay = chosen(weightDecay, facts.weightDecay);
  state.beta1 = chosen(beta1, facts.beta1);
  state.beta2 = chosen(beta2, facts.beta2);
  state.epsilon = chosen(epsilon, facts.epsilon);
  state.alpha = chosen(alpha, facts.alpha);
  state.rateDecay = chosen(rateDecay, facts.rateDecay);
  state.nesterov = nesterov ? 1 : 0;
  state.batches = accumulate.value_or(1);
  state.clipValue = static_cast<float>(clipValue.value_or(HUGE_VAL));
  state.clipNorm = static_cast<float>(clipNorm.value_or(HUGE_VAL));
  state.averageDecay = static_cast<float>(averageDecay.value_or(0));
  state.scaleIsFixed = lossScale && *lossScale != "dynamic" ? 1 : 0;
  state.seed = seed.value_or(0);
  return state;
}

} // namespace sluice
