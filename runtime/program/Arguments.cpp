// SPDX-License-Identifier: Apache-2.0
// Table-driven parser: `--flag value` and `--flag=value`, each flag once, no abbreviations, no positional arguments.

#include "runtime/program/Arguments.h"

#include "runtime/Errors.h"
#include "runtime/Printable.h"

#include <charconv>
#include <cmath>
#include <cstring>

namespace sluice {

namespace {

using Optimizer = Program::Optimizer;

struct Flag {
  const char *name, *value, *help; ///< value: what --help calls it, null for a switch
  std::optional<std::string> Arguments::*string = nullptr;
  std::optional<int64_t> Arguments::*integer = nullptr;
  std::optional<double> Arguments::*real = nullptr;
  bool Arguments::*flag = nullptr;
  double least = 0, below = HUGE_VAL; ///< range of a number: [least, below)
};

Flag path(const char *name, const char *value, const char *help, std::optional<std::string> Arguments::*field) {
  Flag flag{name, value, help};
  flag.string = field;
  return flag;
}
Flag count(const char *name, const char *help, std::optional<int64_t> Arguments::*field, double least, double below) {
  Flag flag{name, "N", help};
  flag.integer = field;
  flag.least = least;
  flag.below = below;
  return flag;
}
Flag number(const char *name, const char *help, std::optional<double> Arguments::*field, double below) {
  Flag flag{name, "X", help};
  flag.real = field;
  flag.below = below;
  return flag;
}
Flag onOff(const char *name, const char *help, bool Arguments::*field) {
  Flag flag{name, nullptr, help};
  flag.flag = field;
  return flag;
}

const Flag flags[] = {
    path("--data", "DIR", "train on input.npy and target.npy in DIR, or on 'synthetic' data", &Arguments::data),
    count("--steps", "train until step N (counted over resumed runs)", &Arguments::steps, 0, 0x1p62),
    count("--epochs", "train until N epochs are done (default 1)", &Arguments::epochs, 0, 0x1p62),
    onOff("--shuffle", "draw the order of each epoch from (seed, epoch)", &Arguments::shuffle),
    number("--lr", "learning rate (default 0.01 for sgd, else 0.001)", &Arguments::learningRate, HUGE_VAL),
    number("--momentum", "sgd: momentum (default 0.9)", &Arguments::momentum, 1),
    number("--weight-decay", "weight decay (default 0, adamw 0.01)", &Arguments::weightDecay, HUGE_VAL),
    number("--beta1", "adam, adamw: decay of the first moment (default 0.9)", &Arguments::beta1, 1),
    number("--beta2", "adam, adamw: decay of the second moment (default 0.999)", &Arguments::beta2, 1),
    number("--epsilon", "adam, adamw: added to the denominator (default 1e-8)", &Arguments::epsilon, HUGE_VAL),
    {"--seed", "N", "of initial weights, shuffling, dropout and synthetic data (default 0)"},
    count("--threads", "kernel threads (default: what the plan was made for; cuda: all, for data)", &Arguments::threads,
          1, 1025),
    path("--evaluate", "DIR", "loss and accuracy on DIR: after every epoch and at the end, or alone",
         &Arguments::evaluate),
    path("--checkpoint", "DIR", "write DIR/checkpoint.safetensors at the end", &Arguments::checkpoint),
    count("--checkpoint-every", "also write it every N steps (default: after every epoch)", &Arguments::checkpointEvery,
          1, 0x1p62),
    path("--resume", "DIR", "go on from the checkpoint in DIR", &Arguments::resume),
    path("--export", "FILE.onnx", "write the model with its trained weights", &Arguments::exportTo),
    path("--log", "FILE.jsonl", "write one JSON object a line: start, steps, evaluations, end", &Arguments::log),
    path("--trace", "FILE.json", "write a Chrome trace of the first 10 steps, one row per stream", &Arguments::trace),
    path("--dump-gradients", "FILE.safetensors", "write the first step's gradients, before its update",
         &Arguments::dumpGradients),
    path("--profile-out", "FILE", "write measured op times and link rates for sluicec --profile",
         &Arguments::profileOut),
    onOff("--plan", "print the memory plan and exit", &Arguments::plan),
    path("--offload-to", "FILE",
         "keep host memory, or what a pool of packed tensors has no room for, in FILE (host only)",
         &Arguments::offloadTo),
    onOff("--force", "write over files that other programs wrote", &Arguments::force),
    onOff("--no-graph", "launch kernels one by one (cuda only)", &Arguments::noGraph),
    onOff("--help", "print this text and exit", &Arguments::help),
};

/// The whole of `value` as a number; false when it is not one or does not fit.
template <typename Number> bool parseNumber(const std::string &value, Number &out) {
  const char *end = value.data() + value.size();
  auto [stop, error] = std::from_chars(value.data(), end, out);
  return error == std::errc() && stop == end;
}

void store(Arguments &arguments, const Flag &flag, const std::string &value) {
  auto refuse = [&](const std::string &expected) {
    throw UsageError(text(flag.name, " expects ", expected, ", got '", value, "'"));
  };
  if (flag.string) {
    if (value.empty())
      refuse("a path");
    arguments.*flag.string = value;
  } else if (flag.integer) {
    int64_t parsed = 0;
    if (!parseNumber(value, parsed) || static_cast<double>(parsed) < flag.least ||
        static_cast<double>(parsed) >= flag.below)
      refuse(
          text("a whole number of ", flag.least, " or more", flag.below < 1e6 ? text(" and below ", flag.below) : ""));
    arguments.*flag.integer = parsed;
  } else if (flag.real) {
    double parsed = 0;
    if (!parseNumber(value, parsed) || !std::isfinite(static_cast<float>(parsed)) || parsed < flag.least ||
        parsed >= flag.below)
      refuse(
          text("a finite number of ", flag.least, " or more", flag.below < 1e6 ? text(" and below ", flag.below) : ""));
    arguments.*flag.real = parsed;
  } else {
    uint64_t parsed = 0;
    if (!parseNumber(value, parsed))
      refuse("a whole number from 0 to 2^64 - 1");
    arguments.seed = parsed;
  }
}

bool isGiven(const Arguments &arguments, const Flag &flag) {
  return flag.string    ? (arguments.*flag.string).has_value()
         : flag.integer ? (arguments.*flag.integer).has_value()
         : flag.real    ? (arguments.*flag.real).has_value()
         : flag.flag    ? arguments.*flag.flag
                        : arguments.seed.has_value();
}

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

/// Flags that need one another.
void checkTogether(const Arguments &arguments, const Program &program) {
  refuseForeign(arguments, program.optimizer);
  if (runtimeTarget() == Target::Host && arguments.noGraph)
    throw UsageError("--no-graph is for programs compiled with --target=cuda, this one runs on the host");
  if (runtimeTarget() == Target::Cuda && arguments.offloadTo)
    throw UsageError(
        "--offload-to is for programs compiled with --target=host: copies to a GPU come from locked memory");
  if (arguments.help || arguments.plan)
    return;
  if (arguments.steps && arguments.epochs)
    throw UsageError("--steps and --epochs exclude each other");
  if (!arguments.data) {
    if (!arguments.evaluate && !arguments.exportTo && !arguments.checkpoint)
      throw UsageError("nothing to do: give --data DIR or --data synthetic (see --help)");
    for (const char *name :
         {"--steps", "--epochs", "--shuffle", "--trace", "--dump-gradients", "--profile-out", "--checkpoint-every"})
      for (const Flag &flag : flags)
        if (!std::strcmp(flag.name, name) && isGiven(arguments, flag))
          throw UsageError(text(name, " needs --data"));
  }
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
    const Flag *known = nullptr;
    for (const Flag &flag : flags)
      if (word == flag.name)
        known = &flag;
    if (!known)
      throw UsageError(
          text("unknown ", word.compare(0, 1, "-") == 0 ? "flag '" : "argument '", word, "' (see --help)"));
    if (isGiven(arguments, *known))
      throw UsageError(text(word, " is given twice"));
    if (known->flag) {
      if (joined)
        throw UsageError(text(word, " takes no value, got '", value, "'"));
      arguments.*known->flag = true;
      continue;
    }
    if (!joined) {
      if (i + 1 >= argc || std::strncmp(argv[i + 1], "--", 2) == 0)
        throw UsageError(text(word, " needs a value: ", word, " ", known->value));
      value = argv[++i];
    }
    store(arguments, *known, value);
  }
  checkTogether(arguments, program);
  return arguments;
}

std::string helpText(const std::string &name, const Program &program) {
  std::string out =
      text(printable(name), ": trains ", printable(program.model), ", batch ", program.batch, ", ",
           optimizerName(program.optimizer), ", within ", program.deviceBytes, " bytes of device memory\n\n");
  for (const Flag &flag : flags) {
    std::string left = text("  ", flag.name, flag.value ? " " : "", flag.value ? flag.value : "");
    left.resize(left.size() < 36 ? 36 : left.size() + 1, ' ');
    out += left + flag.help + "\n";
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
