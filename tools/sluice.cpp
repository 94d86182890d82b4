// SPDX-License-Identifier: Apache-2.0
// sluice: the compiler and the programs that it makes by one name. It starts sluicec, which stands beside it, and what
// sluicec makes; both commands are printed, so that they can be given alone the next time. Exit statuses are theirs.
#include "runtime/Printable.h"
#include "runtime/program/HelpText.h"
#include "tools/Failure.h"
#include "tools/NewProject.h"
#include "tools/StandardOutput.h"
#include "tools/TrainWords.h"
#include "tools/Version.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sluice;

namespace {

int usage(const std::string &message) { return fail("sluice", 2, message); }

int printHelp() {
  const std::string about =
      "Trains ONNX models inside a memory budget: compiles a model into a program by sluicec, and "
      "runs it.";
  std::fputs(
      ("Usage: sluice COMMAND MODEL|FOLDER [FLAG=VALUE | FLAG VALUE | SWITCH]...\n\n" + wrapped(about, 0, 0)).c_str(),
      stdout);
  std::fputs(
      helpGroup(
          "Commands",
          {{"new FOLDER [MODEL]", "make a folder with the model (none: a small one), a recipe and the next commands; "
                                  "flags of sluicec go into these"},
           {"train MODEL", "compile the model and train it; flags of sluicec and of its programs together"},
           {"bench MODEL", "compile it and run 20 steps on random data"},
           {"check MODEL", "list everything in the model that is not supported: sluicec --check"},
           {"plan MODEL", "time over memory of all strategies as a page: sluicec --emit=report"}},
          "sluice train model.onnx --batch=32 --memory-budget=60% --data=imagefolder:photos")
          .c_str(),
      stdout);
  std::fputs(helpGroup("Flags",
                       {{"--help", "print this text and exit; sluicec --help and ./PROGRAM --help tell theirs"},
                        {"--version", "print version and commit, and exit"}},
                       "")
                 .c_str(),
             stdout);
  return 0;
}

std::vector<char *> argumentsOf(std::vector<std::string> &words) {
  std::vector<char *> list;
  for (std::string &word : words)
    list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

void announce(const std::string &program, const std::vector<std::string> &words) {
  std::string line = "+ " + shellWord(program);
  for (size_t i = 1; i < words.size(); ++i)
    line += " " + shellWord(words[i]);
  std::fprintf(stderr, "%s\n", printable(line).c_str());
  std::fflush(stderr);
}

/// sluicec beside this program.
std::string compilerPath() {
  std::error_code failure;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failure);
  return failure ? std::string("sluicec") : (self.parent_path() / "sluicec").string();
}

/// Runs sluicec and waits for it; its exit status.
int compile(const std::vector<std::string> &words) {
  std::string path = compilerPath();
  std::vector<std::string> all = {path};
  all.insert(all.end(), words.begin(), words.end());
  announce("sluicec", all);
  pid_t child = 0;
  if (const int failure = posix_spawn(&child, path.c_str(), nullptr, nullptr, argumentsOf(all).data(), environ))
    return fail("sluice", 1, "cannot start " + path + ": " + std::strerror(failure));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return fail("sluice", 4, std::string("cannot wait for sluicec: ") + std::strerror(errno));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Becomes the program; returns only where that fails.
int become(const std::string &program, const std::vector<std::string> &words) {
  const std::string path = program.find('/') == std::string::npos ? "./" + program : program;
  std::vector<std::string> all = {path};
  all.insert(all.end(), words.begin(), words.end());
  announce(path, all);
  execv(path.c_str(), argumentsOf(all).data());
  return fail("sluice", 1, "cannot start " + path + ": " + std::strerror(errno));
}

/// Whether the words name a flag, in whichever form.
bool names(const std::vector<std::string> &words, const std::string &flag) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string &word) { return word.substr(0, word.find('=')) == flag; });
}

/// Whether the program has something to do.
bool namesWork(const std::vector<std::string> &words) {
  return names(words, "--data") || names(words, "--recipe") || names(words, "--evaluate") ||
         names(words, "--predict") || names(words, "--plan");
}

/// Flags of the program that bench adds where the user's words have none of that kind: it refuses what is given twice.
std::vector<std::string> benchFlags(const std::vector<std::string> &words) {
  std::vector<std::string> added;
  if (!names(words, "--data"))
    added.push_back("--data=synthetic");
  if (!names(words, "--steps") && !names(words, "--epochs"))
    added.push_back("--steps=20");
  return added;
}

int train(const std::vector<std::string> &words, bool benches) {
  Result<TrainWords> split = splitTrainWords(words);
  if (!split)
    return usage(split.error());
  if (!benches && !namesWork(split->program)) // compiling takes longer than reading this
    return usage("sluice train needs --data DIR or --data KIND:PATH to train on; 'sluice bench' has data of its own");
  if (const int status = compile(split->compiler))
    return status;
  if (benches) {
    const std::vector<std::string> added = benchFlags(split->program);
    split->program.insert(split->program.begin(), added.begin(), added.end());
  }
  return become(split->made, split->program);
}

int run(const std::vector<std::string> &words) {
  if (words.empty())
    return usage("a command is needed: new, train, bench, check or plan (see --help)");
  const std::string &command = words[0];
  std::vector<std::string> rest(words.begin() + 1, words.end());
  const auto isHelp = [](const std::string &word) { return word == "--help" || word == "-h"; };
  if (command == "help" || std::any_of(words.begin(), words.end(), isHelp))
    return printHelp();
  if (std::find(words.begin(), words.end(), "--version") != words.end())
    return std::puts(versionText("sluice").c_str()) < 0;
  if (const auto status = failWithoutFolder("sluice"))
    return *status;
  if (command == "new")
    return newProject(rest);
  if (command == "train" || command == "bench")
    return train(rest, command == "bench");
  if (command != "check" && command != "plan")
    return usage("'" + printable(command) +
                 "' is no command; there are new, train, bench, check and plan (see --help)");
  rest.emplace_back(command == "check" ? "--check" : "--emit=report");
  return compile(rest);
}

} // namespace

int main(int argc, char **argv) {
  reportCrashes("sluice");
  return finishOutput("sluice", run({argv + std::min(argc, 1), argv + argc}));
}
