// SPDX-License-Identifier: Apache-2.0
// The life of a generated program: arguments -> kernels -> announce bytes -> allocate -> first values or checkpoint ->
// train, evaluate, export -> report. Exceptions become exit statuses here and nowhere else.

#include "runtime/program/Training.h"

#include "runtime/Kernels.h"
#include "runtime/Printable.h"
#include "runtime/Version.h"
#include "runtime/files/File.h"
#include "runtime/program/Begin.h"
#include "runtime/program/CheckpointWriter.h"
#include "runtime/program/Export.h"
#include "runtime/program/Failure.h"
#include "runtime/program/FolderLock.h"
#include "runtime/program/Generate.h"
#include "runtime/program/GradientErrors.h"
#include "runtime/program/InitialWeights.h"
#include "runtime/program/Initialize.h"
#include "runtime/program/Interrupt.h"
#include "runtime/program/KeptCheckpoints.h"
#include "runtime/program/LossScaling.h"
#include "runtime/program/ParameterGroups.h"
#include "runtime/program/Predict.h"
#include "runtime/program/Recipe.h"
#include "runtime/program/Report.h"
#include "runtime/program/Roofline.h"
#include "runtime/program/SharedStates.h"
#include "runtime/program/Team.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <unistd.h>

namespace sluice {

/// By this the compiler knows the programs that it may write over.
__attribute__((used, section(".sluice"))) static const char mark[] = "sluice-program-1";

/// --quiet: all that is printed goes nowhere.
static void silenceStandardOutput() {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0)
    throw systemError("write", "/dev/null");
  close(nowhere);
}

/// The checkpoint of --resume. What is wrong with it is said together with the one that can be taken instead.
static void openSaved(std::optional<SavedRun> &saved, const Arguments &arguments, const Program &program) {
  const std::string path = resumedPath(*arguments.resume);
  try {
    saved.emplace(path, program);
  } catch (const DataError &error) {
    const std::string other = lastWholeCheckpoint(parentFolder(path), program, path);
    if (other.empty())
      throw;
    Arguments instead = arguments;
    instead.force |= arguments.checkpoint && !isCheckpointOf(checkpointPath(*arguments.checkpoint), program);
    throw DataError(text(error.what(), "; ", other, " is whole: go on with: ", commandToGoOn(instead, other)));
  }
  if (!arguments.init.empty() && saved->state().frozen.empty())
    throw UsageError("--init and --resume exclude each other: a checkpoint holds all weights");
  if (arguments.seed && *arguments.seed != saved->state().seed && (arguments.data || !arguments.generate))
    throw UsageError(text("--seed ", *arguments.seed, ": the checkpoint in ", *arguments.resume, " was made with seed ",
                          saved->state().seed));
}

/// How a run goes on otherwise than it began, as far as the recipe beside its checkpoint says how that was.
static std::string changesOf(const Arguments &arguments) {
  if (!arguments.resume || !arguments.data)
    return "";
  const std::string path = recipePath(parentFolder(resumedPath(*arguments.resume)));
  const std::string list = differencesFrom(path, arguments);
  return list.empty() ? "" : text("unlike ", path, ": ", list, "; --recipe=", path, " takes what it says");
}

/// A position in one data set means nothing in another. Synthetic data have no end.
static void checkData(RunState &run, const Dataset &data, const Arguments &arguments) {
  if (*arguments.data == syntheticData || (!arguments.checkpoint && !arguments.resume))
    return;
  const std::string differences = changesOf(arguments); // a --validation-split that is missing, say
  const auto compare = [&](const auto &found, const auto &before, const char *what) {
    if (found != before)
      throw DataError(text(*arguments.data, " holds ", found, what, ", the run in ", *arguments.resume,
                           " was trained on ", before, "; give it the data that it had, or start anew with its ",
                           "weights: --init=", resumedPath(*arguments.resume), differences.empty() ? "" : "; ",
                           differences));
  };
  if (run.samples != 0)
    compare(data.samples(), run.samples, " samples");
  const std::string found = data.fingerprint();
  if (!run.data.empty())
    compare(found, run.data, "");
  run.samples = data.samples();
  run.data = found;
}

static std::atomic<bool> running{false};

/// libgomp ends the process where it cannot have a thread, after it said so.
static void onLibraryExit() {
  if (!running)
    return;
  std::fprintf(stderr, "%s: error: a library ended the program: threads or memory cannot be had\n",
               program_invocation_short_name);
  _exit(3);
}

static bool keepsVariablesIn(Space space, const Program &program) {
  return std::any_of(program.variables, program.variables + program.variableCount,
                     [&](const Variable &variable) { return variable.tensor.space == space; });
}

static void refuseUnavailable(const Arguments &arguments, const Program &program, const Entry &entry) {
  if ((arguments.evaluate || arguments.validationSplit) && !entry.evaluate)
    throw UsageError("--evaluate is not available: this program was compiled without an evaluation function");
  if (arguments.predict)
    requireOutput(program, entry, *arguments.output);
  if (arguments.generate)
    requireTokens(arguments, program, entry);
  if (arguments.offloadTo)
    requireUnused("--offload-to", *arguments.offloadTo);
  else if (program.others.storage && (arguments.data || keepsVariablesIn(Space::Storage, program)))
    throw UsageError(
        text("this program keeps tensors in a file of ", program.others.storage, " bytes: --offload-to FILE names it"));
}

/// Kernels, and what they and the arenas will take.
static void prepare(const Arguments &arguments, const Program &program, const Entry &entry) {
  prepareKernels(program, entry, arguments.threads);
  announceMemory(program);
  if (arguments.checkpoint)
    announceCheckpointCopy(program, arguments.checkpointTrainedOnly);
}

/// What is to be known before the first step.
static void announce(const Arguments &arguments, const TrainingFiles &files,
                     const std::optional<InitialWeights> &initial, const std::string &adopted) {
  if (initial)
    std::fputs(initial->report(arguments.resume.has_value()).c_str(), stdout);
  if (!initial && !arguments.resume && !files.training)
    std::printf("weights:       those that the program was compiled with: there is no --resume and no --init\n");
  if (const std::string changes = changesOf(arguments); !changes.empty())
    std::printf("goes on:       %s\n", printable(changes).c_str());
  if (arguments.recipe && arguments.resume && !arguments.data &&
      (arguments.evaluate || arguments.predict || arguments.generate))
    std::printf("recipe:        %s is that of the weights: nothing of its training and files is taken\n",
                printable(*arguments.recipe).c_str());
  if (!arguments.knownColumns.empty() && files.readsTable)
    std::printf("tables:        columns, categories and standardization are those of the weights\n");
  if (!adopted.empty())
    std::printf("images:        prepared as for the weights: %s\n", printable(adopted).c_str());
  if (arguments.leads)
    files.printNotes(arguments.name);
  std::fputs(memoryNotes().c_str(), stdout);
  std::fflush(stdout);
}

/// What there is no memory for is left out of a profile.
static std::vector<EngineTime> enginesFor(const std::string &profile) {
  try {
    std::vector<EngineTime> engines = measureEngines();
    const auto faster =
        std::count_if(engines.begin(), engines.end(), [](const EngineTime &e) { return e.seconds < e.rankedSeconds; });
    if (faster > 0)
      std::printf("engines:       %s has faster ones for %lld of %zu kinds of convolutions; compile with "
                  "--profile=%s to have them\n",
                  printable(profile).c_str(), static_cast<long long>(faster), engines.size(),
                  printable(profile).c_str());
    return engines;
  } catch (const MemoryNotAvailable &error) {
    std::printf("engines:       not timed: %s\n", printable(error.what()).c_str());
    return {};
  }
}

/// Of the weights that the run starts from. Those that are trained on for other data have other classes.
static std::string adoptPreparation(const std::optional<SavedRun> &saved, const std::optional<InitialWeights> &initial,
                                    const Program &program, Arguments &arguments) {
  const Preparation preparation = saved                 ? saved->state().preparation
                                  : initial             ? initial->preparation()
                                  : program.preparation ? readPreparation(program.preparation)
                                                        : Preparation();
  for (const std::string &doubt : arguments.leads ? doubtsOf(preparation, arguments) : std::vector<std::string>())
    std::fprintf(stderr, "%s: warning: %s\n", printable(arguments.name).c_str(), printable(doubt).c_str());
  return adopt(preparation, arguments, saved || !arguments.data);
}

/// What a session has before any weights are loaded.
static void begin(Session &session, const Program &program, const Arguments &arguments, const StepState &state,
                  const std::optional<SavedRun> &saved) {
  beginSession(
      session, program, state, parameterGroups(arguments.groups, program), !arguments.noGraph,
      [&arguments](const std::string &what) {
        std::fprintf(stderr, "%s: warning: %s; interrupt twice to end without it\n", printable(arguments.name).c_str(),
                     printable(what).c_str());
      },
      [&saved](const Variable &variable) { return saved && saved->isCarried(variable); });
}

/// `scratch`: where what --profile-errors needs begins.
static std::unique_ptr<Session> openSession(const Program &program, size_t scratch, const Arguments &arguments) {
  return openSession(program, arguments.profileErrors ? scratch + scratchOfErrors(program) : program.deviceBytes,
                     arguments.offloadTo ? arguments.offloadTo->c_str() : nullptr);
}

/// What can be measured once the arenas are gone, beside what was recorded.
static void tellMeasured(const Arguments &arguments, const Program &program, const Recording &recording,
                         const std::vector<TensorError> &errors) {
  if (arguments.roofline && recording.steps > 0)
    std::fputs(textOf(rooflineOf(program, recording.records, recording.steps, recording.stepSeconds,
                                 measurePeaks(program.precision == Precision::BF16)))
                   .c_str(),
               stdout);
  if (arguments.profileOut)
    writeProfile(*arguments.profileOut, recording.records, recording.steps, measureLinks(), threads(),
                 enginesFor(*arguments.profileOut), errors,
                 arguments.offloadTo ? measureStorage(parentFolder(*arguments.offloadTo)) : std::nullopt);
}

/// --help, --plan and --version.
static void explain(const Arguments &arguments, const Program &program) {
  if (arguments.version && !arguments.help)
    return (void)std::printf("%s, made by sluicec %s\n", arguments.name.c_str(), compilerVersion);
  if (arguments.plan && !arguments.help)
    return printPlan(program);
  std::fputs(helpText(arguments.name, program).c_str(), stdout);
}

/// To what --init and a checkpoint have, and to what begins by that.
static void giveValues(Session &session, const Program &program, const std::optional<InitialWeights> &initial,
                       const std::optional<SavedRun> &saved) {
  if (initial)
    initial->load(session);
  startDerived(session, program,
               [&](const Variable &variable) { return saved || (initial && initial->gives(variable)); });
  if (saved)
    saved->load(session);
}

static void runProgram(Arguments arguments, const Program &program, const Entry &entry, Team &team) {
  if (arguments.explains())
    return team.leads() ? explain(arguments, program) : void();
  refuseUnavailable(arguments, program, entry);
  const bool exports = arguments.exportTo.has_value(); // rank 0, when all have trained
  team.adapt(arguments, program);

  std::optional<InterruptGuard> guard; // goes when all is tidied up
  // Before a checkpoint is read: nobody else may write a later one while this run goes on from it.
  std::optional<FolderLock> lock;
  if (arguments.checkpoint && arguments.leads)
    lock.emplace(*arguments.checkpoint);
  StepState state = arguments.stepState(program.optimizer);
  team.number(state);
  RunState run;
  run.seed = state.seed;
  std::optional<SavedRun> saved;
  if (arguments.resume) {
    openSaved(saved, arguments, program);
    run = saved->state();
    state.seed = run.seed;
  }
  std::optional<InitialWeights> initial;
  if (!arguments.init.empty())
    initial.emplace(arguments.init, program);
  const std::string adopted = adoptPreparation(saved, initial, program, arguments);
  // Data and log are opened before anything is allocated: most mistakes end a run at once.
  TrainingFiles files(arguments, program, entry, run, initial ? initial->paths() : std::vector<std::string>());
  if (arguments.quiet) // a log to /dev/stdout was opened before
    silenceStandardOutput();
  if (files.training)
    checkData(run, *files.training, arguments);
  prepare(arguments, program, entry);
  run.preparation = files.preparation(arguments);
  announce(arguments, files, initial, adopted);
  team.agree(run.data, run.step);
  Recording recording;
  std::vector<TensorError> errors;
  const size_t scratch = (program.deviceBytes + 255) / 256 * 256;
  {
    const std::unique_ptr<Session> opened = openSession(program, scratch, arguments);
    Session &session = *opened;
    session.ranks = team.ranks();
    session.sharesStates = program.leastRanks > 1;
    begin(session, program, arguments, state, saved);
    giveValues(session, program, initial, saved);
    run.frozen = arguments.checkpointTrainedOnly ? frozenChecksum(session, program) : "";
    startLossScale(session, program, arguments, saved && saved->carriesLossScale());
    guard.emplace();
    recording = train(session, program, entry, arguments, files, run);
    if (exports)
      withShares(session, program, [&] { exportModel(*arguments.exportTo, session, program, run.preparation); });
    if (arguments.profileErrors)
      errors = measureErrors(session, program, entry, *files.training, *arguments.profileErrors, scratch);
  }
  tellMeasured(arguments, program, recording, errors);
}

static int runGuarded(int argc, char **argv, const Program &program, const Entry &entry) {
  std::string path = argc > 0 ? argv[0] : program.model;
  std::string name = path.substr(path.find_last_of('/') + 1);
  std::optional<Team> team;
  const auto fail = [&](const Failure &failure) {
    if (!team) // it could not be joined
      team.emplace(Entry(), name);
    return team->fail(failure.status, failure.message);
  };
  openStandardStreams();
  // A file that grows past a limit is an error of that write, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    ensureOpenMP(argc, argv);
    team.emplace(entry, name);
    Arguments arguments = parseArguments(argc, argv, program);
    arguments.name = name;
    arguments.path = path;
    runProgram(arguments, program, entry, *team);
    if (std::fflush(stdout) != 0)
      throw systemError("write", "standard output");
    if (std::ferror(stdout))
      throw DataError("cannot write standard output");
    team->finish();
    return 0;
  } catch (const OthersFailed &others) {
    team->finish();
    return others.status;
  } catch (const Interrupted &interrupted) {
    std::fflush(stdout);
    team->finish();
    std::signal(interrupted.signal, SIG_DFL);
    std::raise(interrupted.signal);
    return 128 + interrupted.signal;
  } catch (...) {
    return fail(failureOf(std::current_exception()));
  }
}

int run(int argc, char **argv, const Program &program, const Entry &entry) {
  running = std::atexit(onLibraryExit) == 0;
  const int status = runGuarded(argc, argv, program, entry);
  running = false;
  return status;
}

} // namespace sluice
