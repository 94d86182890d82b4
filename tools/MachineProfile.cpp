// SPDX-License-Identifier: Apache-2.0
// Files in the cache folder are written aside and renamed. One that is unreadable, malformed or of another machine
// counts as none.
#include "tools/MachineProfile.h"

#include "passes/kernels/HostKernels.h"
#include "passes/kernels/HostTrial.h"
#include "passes/planner/Files.h"
#include "passes/planner/Profile.h"
#include "runtime/CpuTable.h"
#include "runtime/Kernels.h"
#include "runtime/Ranks.h"
#include "runtime/files/OutputFile.h"
#include "runtime/host/Dnnl.h"
#include "tools/Calibrate.h"
#include "tools/GpuProfile.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace sluice;
using nlohmann::json;

namespace {

/// Another set of samples, or kernels of another speed, are another version: older files are measured again.
constexpr int version = 5;
constexpr int mostMilliseconds = 240000; ///< until the child says something; beyond what it takes on a busy machine

std::string processorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return "unknown processor";
}

/// What a profile holds for: without bf16, or with it.
json machine(bool halves) {
  return {{"calibration", version},
          {"bf16", halves},
          {"processor", processorName()},
          {"instructions", instructionsInEffect()},
          {"threads", threads()}};
}

/// Empty where there is no place for it.
fs::path cacheFile(const json &machine) {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  const fs::path folder = cache && *cache == '/' ? fs::path(cache)
                          : home && *home == '/' ? fs::path(home) / ".cache"
                                                 : fs::path();
  if (folder.empty())
    return {};
  std::string name = machine["processor"].get<std::string>() + "-" + machine["instructions"].get<std::string>() + "-" +
                     std::to_string(threads()) + (machine["bf16"].get<bool>() ? "-bf16" : "");
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-')
      c = '_';
  return folder / "sluice" / "profiles" / (name.substr(0, 200) + ".json");
}

/// Whether the text is a profile of this machine that all times can be estimated from.
bool speaksOf(const std::string &text, const json &machine) {
  const Result<planner::Profile> profile = planner::parseProfile(text);
  if (!profile || profile->samples.empty())
    return false;
  return json::parse(text).value("machine", json()) == machine;
}

/// Vendor threads that spin would hold the cores that our own kernels are measured on, as programs do.
void restartPassive() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');)
    words.push_back(word);
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  if (!words.empty())
    ensureOpenMP(static_cast<int>(words.size()), arguments.data());
}

/// What calibrate() says in a process of its own, whose threads are gone afterwards: a profile, or why there is none.
/// Empty where it died.
std::string calibrateInChild(const fs::path &path, bool halves, bool insist) {
  int ends[2];
  if (pipe(ends))
    return "";
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    crashQuietly();
    std::string text;
    try {
      text = calibrate(path.parent_path().string(), halves, insist, [&] {
        std::cerr << "sluicec: measuring this machine with " << threads() << (threads() == 1 ? " thread" : " threads")
                  << ", once, about " << (halves ? 20 : 10) << " s; kept in " << path.string() << std::endl;
      });
    } catch (const std::exception &failure) {
      text = failure.what();
    }
    for (size_t at = 0; at < text.size();) {
      const ssize_t count = write(ends[1], text.data() + at, text.size() - at);
      if (count < 0)
        break;
      at += static_cast<size_t>(count);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  for (pollfd ready{ends[0], POLLIN, 0}; child > 0;) {
    const int count = poll(&ready, 1, mostMilliseconds);
    char piece[4096];
    const ssize_t got = count > 0 ? read(ends[0], piece, sizeof piece) : count;
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      break;
    text.append(piece, static_cast<size_t>(got));
  }
  close(ends[0]);
  // It has said everything, or hangs: either way nothing of it is needed any more.
  if (child > 0) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  return text;
}

/// Measures this machine into `path`.
Status measure(const json &machine, const fs::path &path, bool insist) {
  if (path.empty())
    return Error{"neither XDG_CACHE_HOME nor HOME names a folder to keep its profile in"};
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error)
    return Error{path.parent_path().string() + ": " + error.message()};
  restartPassive();
  std::string text = calibrateInChild(path, machine["bf16"], insist);
  if (text.empty())
    return Error{"the measurement did not end"};
  if (text.front() != '{')
    return Error{text};
  json profile = json::parse(text);
  profile["machine"] = machine;
  text = profile.dump(1) + "\n";
  if (!speaksOf(text, machine))
    return Error{"the measurement makes no sense"};
  try {
    OutputFile file(path.string());
    file.write(text.data(), text.size());
    file.commit();
  } catch (const std::exception &failure) {
    return Error{failure.what()};
  }
  return Success{};
}

/// Whether anything is predicted.
bool isPlanned(const DriverOptions &options) {
  return !options.listParameters && !options.check && options.emit >= Emit::Linearized;
}

} // namespace

/// A measured profile is one more input file, whose path goes into the options.
void sluice::chooseDevice(DriverOptions &options) {
  if (options.deviceNamed || !isPlanned(options))
    return;
  if (factsOf(options.pipeline.target).device)
    return chooseGpu(options);
  std::string &device = options.pipeline.device;
  if (isForeign(options.pipeline.level)) {
    device = factsOfCpu(options.pipeline.level).profile;
    return;
  }
  if (const char *named = std::getenv("SLUICE_DEVICE"); named && *named) {
    device = named;
    return;
  }
  const Precision precision = options.spec.precision == "bf16" ? Precision::BF16 : Precision::FP32;
  adoptMachine({options.pipeline.threads, options.pipeline.level, precision}); // before oneDNN is asked what it may use
  const json key = machine(precision == Precision::BF16);
  const fs::path path = cacheFile(key);
  const Result<std::string> text = planner::readInput(path.string());
  const bool known = !options.calibrate && text && speaksOf(*text, key);
  const Status measured = known ? Status(Success{}) : measure(key, path, options.calibrate);
  if (measured)
    device = path.string();
  else
    std::cerr << "sluicec: planning for the shipped profile 'host', not for this machine: " << measured.error()
              << "; the memory that the plan promises holds all the same, its times are another machine's, so that a "
                 "step may take longer than one planned here; sluicec --calibrate measures when the machine is quiet"
              << std::endl;
}
