// SPDX-License-Identifier: Apache-2.0
// The handshake is one exchange of text: an exit status and a message of who has failed, or a line for each fact.
#include "runtime/program/Team.h"

#include "runtime/Errors.h"
#include "runtime/Kernels.h"
#include "runtime/Printable.h"
#include "runtime/data/Fingerprint.h"
#include "runtime/program/Interrupt.h"
#include "runtime/program/Recipe.h"
#include "runtime/program/SharedStates.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace sluice {

Team::Team(const Entry &entry, std::string name)
    : joined(entry.joinRanks ? entry.joinRanks() : nullptr), name(std::move(name)) {}

void Team::print(const std::string &message) const {
  std::fflush(stdout);
  // What the device or its driver says stands for itself.
  const bool ownName = message.compare(0, 4, "CUDA") == 0;
  std::fprintf(stderr, "%s%s%s\n", ownName ? "" : printable(name).c_str(),
               ownName ? "" : ": error: ", printable(message).c_str());
}

/// Sums in one order are made of whole parts of its tree.
static void checkBatches(const Arguments &arguments, const Program &program, int ranks) {
  const int64_t batches = arguments.accumulate.value_or(1);
  if (program.mostBatches > 0 && batches > program.mostBatches)
    throw UsageError(text("--accumulate ", batches, ": this program sums up to ", program.mostBatches,
                          " batches of a rank in order; compile it again with sluicec --reduce=ordered,batches=N, a ",
                          "power of two from ", batches, " on, or with --reduce=fast"));
  if (program.reduce && std::string(program.reduce) == "ordered" && ranks > 1 && (batches & (batches - 1)) != 0)
    throw UsageError(text("--accumulate ", batches, " with ", ranks, " ranks: an order that does not depend on their ",
                          "number takes a power of two of batches of each; compile again with sluicec --reduce=fast ",
                          "for others"));
}

/// As --shard has it.
static const char *shardWord(const Program &program) {
  return sharesParameters(program) ? "parameters" : program.sharesGradients ? "gradients" : "states";
}

/// Slots of states are as long as the share of one of so many.
static void checkShares(const Program &program, int ranks) {
  if (ranks < program.leastRanks)
    throw UsageError(text("each process has room for 1 of ", program.leastRanks, " shares of ",
                          sharesParameters(program) ? "the parameters" : "the optimizer's states", ", and ", ranks,
                          ranks == 1 ? " was" : " were", " started: start ", program.leastRanks, " or more (mpirun -n ",
                          program.leastRanks, "), or compile again with sluicec --shard=", shardWord(program),
                          ",ranks=N for fewer"));
}

/// BatchNorm over the batches of several ranks meets as many in each step.
static void checkNorms(const Program &program, int ranks) {
  if (ranks % program.normRanks != 0)
    throw UsageError(text("BatchNorm normalizes the batches of ", program.normRanks, " processes together, and ", ranks,
                          ranks == 1 ? " was" : " were", " started: start ", program.normRanks,
                          " or a multiple (mpirun -n ", program.normRanks,
                          "), or compile again with sluicec --batch-norm=synchronized,ranks=N for ",
                          "others, or without it, so that each normalizes its own"));
}

void Team::adapt(Arguments &arguments, const Program &program) {
  checkBatches(arguments, program, joined ? joined->size() : 1);
  checkShares(program, joined ? joined->size() : 1);
  if (arguments.data) // evaluation and predictions take running statistics
    checkNorms(program, joined ? joined->size() : 1);
  if (!joined)
    return;
  if (arguments.generate && sharesParameters(program))
    throw UsageError("--generate is not available yet where each process has a share of the parameters: --export them, "
                     "and take them by --init to a program without --shard=parameters");
  for (const auto &[flag, value] : givenFlags(arguments))
    flags += text(flags.empty() ? "" : " ", flag, value.empty() ? "" : "=", value);
  if (arguments.dumpGradients && program.sharesGradients)
    throw UsageError("--dump-gradients writes whole gradients, of which each process has a share: compile again with "
                     "sluicec --shard=states,ranks=N");
  if (arguments.profileErrors)
    throw UsageError("--profile-errors is for one process: start the program without mpirun");
  arguments.leads = leads();
  if (leads())
    return;
  arguments.quiet = true;
  for (std::optional<std::string> *written :
       {&arguments.log, &arguments.tensorboard, &arguments.report, &arguments.trace, &arguments.exportTo,
        &arguments.dumpGradients, &arguments.profileOut, &arguments.generate})
    written->reset();
  if (!sharesParameters(program)) // else all compute what rank 0 predicts
    arguments.predict.reset(), arguments.output.reset();
  arguments.roofline = false;
  if (arguments.offloadTo)
    *arguments.offloadTo += "." + std::to_string(joined->rank());
}

void Team::number(StepState &state) const {
  if (!joined)
    return;
  state.rank = joined->rank();
  state.ranks = joined->size();
}

/// Reports what failed in other ranks, once: as it is where it is the same in all of them. Returns the first status.
int Team::report(const std::vector<std::string> &said) const {
  int status = 0;
  bool alike = true;
  for (const std::string &one : said) {
    alike = alike && one == said.front();
    if (status == 0)
      status = std::atoi(one.c_str());
  }
  if (!leads())
    return status;
  for (size_t rank = 0; rank < said.size(); ++rank)
    if (const std::string &one = said[rank]; std::atoi(one.c_str()) != 0 && (rank == 0 || !alike))
      print((alike ? "" : joined->nameOf(static_cast<int>(rank)) + ": ") + one.substr(one.find('\n') + 1));
  return status;
}

/// Lines of `name: value`.
void Team::compare(const std::vector<std::string> &said) const {
  for (size_t rank = 1; rank < said.size(); ++rank) {
    if (said[rank] == said[0])
      continue;
    std::istringstream one(said[0]), other(said[rank]);
    for (std::string left, right; std::getline(one, left) && std::getline(other, right);)
      if (left != right)
        throw DataError(text(joined->nameOf(static_cast<int>(rank)), " and ", joined->nameOf(0), " differ: ", right,
                             ", and ", left, "; all ranks take the same program, flags and data"));
  }
}

void Team::agree(const std::string &data, int64_t step) {
  if (!joined)
    return;
  const std::vector<std::string> program{"/proc/self/exe"};
  const std::pair<const char *, std::string> facts[] = {{"the program is", fingerprintOf(program)},
                                                        {"the flags are", flags},
                                                        {"kernels are made of", instructionsInEffect()},
                                                        {"the data are", data.empty() ? "none" : data},
                                                        {"the first step is", std::to_string(step + 1)}};
  std::string own = "0\n";
  for (const auto &[what, value] : facts)
    own += text(what, " ", printable(value), "\n");
  const std::vector<std::string> said = joined->gather(own, {"the start of all ranks"});
  agreed = true;
  if (const int status = report(said))
    throw OthersFailed{status};
  try {
    compare(said);
  } catch (const DataError &error) { // which all ranks find
    if (leads())
      print(error.what());
    throw OthersFailed{1};
  }
  notedAmongRanks(); // from here on all end together
  joined->watch([this](const std::string &line) { print(line); }, [] { return notedAmongRanks() != 0; });
  try {
    joined->connectDevices();
  } catch (const UsageError &error) { // which all ranks find
    if (leads())
      print(error.what());
    throw OthersFailed{2};
  }
}

int Team::fail(int status, const std::string &message) {
  if (!joined)
    return print(message), status;
  if (agreed) {
    joined->fail();
    constexpr int lossNotFinite = 5; // of all ranks
    if (status != lossNotFinite || leads())
      print((status == lossNotFinite ? "" : joined->nameOf(joined->rank()) + ": ") + message);
    return status;
  }
  // The others are on their way to agree().
  agreed = true;
  report(joined->gather(std::to_string(status) + "\n" + message, {"the start of all ranks"}));
  joined->finish();
  return status;
}

void Team::finish() {
  if (joined)
    joined->finish();
}

} // namespace sluice
