// SPDX-License-Identifier: Apache-2.0
// The parser: `--flag value` and `--flag=value`, no abbreviations, no positional arguments; and what flags mean to one
// another.

#include "runtime/program/Flags.h"

#include "runtime/Errors.h"
#include "runtime/Printable.h"

#include <cstring>

namespace sluice {

namespace {

using Optimizer = Program::Optimizer;

/// A hyperparameter that this program's optimizer does not have.
void refuseForeign(const Arguments &arguments, Optimizer optimizer) {
  bool sgd = optimizer == Optimizer::Sgd;
  const char *foreign = sgd && arguments.beta1       ? "--beta1"
                        : sgd && arguments.beta2     ? "--beta2"
                        : sgd && arguments.epsilon   ? "--epsilon"
                        : !sgd && arguments.momentum ? "--momentum"
                                                     : nullptr;
  if (foreign)
    throw UsageError(
        text(foreign, " means nothing to ", optimizerName(optimizer), ", which this program was compiled with"));
}

void checkEvaluation(const Arguments &arguments) {
  for (const char *name : {"--evaluate-every", "--metrics", "--best", "--patience"})
    if (!arguments.evaluate && !arguments.validationSplit && isGiven(arguments, *findFlag(name)))
      throw UsageError(text(name, " needs --evaluate DIR or --validation-split P%"));
  if (arguments.best && !arguments.checkpoint)
    throw UsageError("--best needs --checkpoint DIR");
  if (arguments.predict.has_value() != arguments.output.has_value())
    throw UsageError(arguments.predict ? "--predict needs --output FILE.npy" : "--output needs --predict DIR");
}

/// Flags that need one another.
void checkTogether(const Arguments &arguments, const Program &program) {
  refuseForeign(arguments, program.optimizer);
  if (runtimeTarget() == Target::Host && arguments.noGraph)
    throw UsageError("--no-graph is for programs compiled with --target=cuda, this one runs on the host");
  if (runtimeTarget() == Target::Cuda && arguments.offloadTo)
    throw UsageError(
        "--offload-to is for programs compiled with --target=host: copies to a GPU come from locked memory");
  if (arguments.quiet && (arguments.help || arguments.plan))
    throw UsageError("--quiet prints nothing, --help and --plan do nothing else");
  if (arguments.help || arguments.plan)
    return;
  if (arguments.steps && arguments.epochs)
    throw UsageError("--steps and --epochs exclude each other");
  if (!arguments.data) {
    if (!arguments.evaluate && !arguments.exportTo && !arguments.checkpoint && !arguments.predict)
      throw UsageError("nothing to do: give --data DIR or --data synthetic (see --help)");
    for (const char *name :
         {"--steps", "--epochs", "--shuffle", "--validation-split", "--trace", "--dump-gradients", "--profile-out",
          "--checkpoint-every", "--evaluate-every", "--best", "--patience", "--report"})
      if (isGiven(arguments, *findFlag(name)))
        throw UsageError(text(name, " needs --data"));
  }
  if (arguments.validationSplit && arguments.evaluate)
    throw UsageError("--validation-split and --evaluate exclude each other: both say what is evaluated");
  if (!arguments.data && !arguments.evaluate && !arguments.predict)
    for (const char *name : {"--augment", "--mean", "--std", "--workers", "--on-bad-data"})
      if (isGiven(arguments, *findFlag(name)))
        throw UsageError(text(name, " needs --data, --evaluate or --predict"));
  checkEvaluation(arguments);
  if (arguments.checkpointEvery && !arguments.checkpoint)
    throw UsageError("--checkpoint-every needs --checkpoint DIR");
  if (arguments.exportTo && !program.exportTemplate)
    throw UsageError("--export is not available: this program was compiled without an export template");
}

} // namespace

Arguments parseArguments(int argc, const char *const *argv, const Program &program) {
  Arguments arguments;
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
      throw UsageError(
          text("unknown ", word.compare(0, 1, "-") == 0 ? "flag '" : "argument '", word, "' (see --help)"));
    const bool repeats = std::holds_alternative<std::vector<std::string> Arguments::*>(known->field);
    if (isGiven(arguments, *known) && !repeats)
      throw UsageError(text(word, " is given twice"));
    if (!known->value && joined)
      throw UsageError(text(word, " takes no value, got '", value, "'"));
    if (known->value && !joined) {
      if (i + 1 >= argc || std::strncmp(argv[i + 1], "--", 2) == 0)
        throw UsageError(text(word, " needs a value: ", word, " ", known->value));
      value = argv[++i];
    }
    setFlag(arguments, *known, value);
  }
  checkTogether(arguments, program);
  return arguments;
}

std::string helpText(const std::string &name, const Program &program) {
  std::string out =
      text(printable(name), ": trains ", printable(program.model), ", batch ", program.batch, ", ",
           optimizerName(program.optimizer), ", within ", program.deviceBytes, " bytes of device memory\n");
  for (const FlagGroup &group : flagGroups()) {
    out += text("\n", group.heading, ":\n");
    for (const Flag &flag : group.flags) {
      std::string left = text("  ", flag.name, flag.value ? " " : "", flag.value ? flag.value : "");
      left.resize(left.size() < 36 ? 36 : left.size() + 1, ' ');
      out += left + flag.help + "\n";
    }
  }
  return out + "\nExit status: 0; 1 bad data or checkpoint; 2 usage; 3 memory not available; 4 internal; 5 loss not "
               "finite.\n";
}

const char *optimizerName(Optimizer optimizer) {
  return optimizer == Optimizer::Sgd ? "sgd" : optimizer == Optimizer::Adam ? "adam" : "adamw";
}

StepState Arguments::stepState(Optimizer optimizer) const {
  StepState state;
  bool sgd = optimizer == Optimizer::Sgd;
  state.learningRate = static_cast<float>(learningRate.value_or(sgd ? 0.01 : 0.001));
  state.momentum = static_cast<float>(momentum.value_or(sgd ? 0.9 : 0));
  state.weightDecay = static_cast<float>(weightDecay.value_or(optimizer == Optimizer::AdamW ? 0.01 : 0));
  state.beta1 = static_cast<float>(beta1.value_or(0.9));
  state.beta2 = static_cast<float>(beta2.value_or(0.999));
  state.epsilon = static_cast<float>(epsilon.value_or(1e-8));
  state.seed = seed.value_or(0);
  return state;
}

} // namespace sluice
