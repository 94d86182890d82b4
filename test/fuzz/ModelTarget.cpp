// SPDX-License-Identifier: Apache-2.0
// Models through the compiler's own driver up to --emit=placed, with flags that the content chooses; profiles, with a
// small fixed model, up to the plan. Status 4 is a finding, and so is a message that would mislead or harm who reads
// it.
#include "test/fuzz/Target.h"

#include "passes/planner/Profile.h"
#include "tools/Driver.h"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>

namespace sluice::fuzz {

namespace {

constexpr const char *modelFlags[] = {
    "",
    "--loss=mse",
    "--loss=mse",
    "--loss=mse --batch=2 --optimizer=adam",
    "--loss=bce-with-logits,pos-weight=2.5 --init=kaiming --optimizer=adamw",
    "--loss=none",
    "--loss=mse --train=.* --batch-norm=train",
    "--loss=mse --memory-budget=95% --strategy=greedy",
    "--loss=mse --memory-budget=90%act",
    "--loss=mse --memory-budget=80%act --allow-lossy=fp16,zfp,invert --strategy=mixed",
    "--loss=mse --memory-budget=95%act --batch-norm=frozen --dropout=off --strategy=superneurons",
    "--loss=mse --strategy=vdnn-all --host-budget=1MiB",
    "--loss=mse --memory-budget=64KiB --workspace-limit=64KiB --freeze=.*b.*",
    "--loss=token-cross-entropy --batch-dim x=1 --batch-dim input=1 --batch=3",
    "--loss=mse --input y=shared --input b=shared --batch-dim x=none",
    "--target=cuda --loss=mse --precision=bf16",
    "--target=cuda --precision=fp16 --clip-norm",
    "--target=cuda --loss=mse --memory-budget=95%act",
};

uint64_t hashOf(const std::string &input) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (unsigned char c : input)
    hash = (hash ^ c) * 0x100000001b3ull;
  return Random(hash).next();
}

DriverOptions optionsOf(const std::string &model, const std::string &flags) {
  // Sanitizers make all ten times slower: so many nodes of a loop without end they take in seconds, too.
  std::vector<std::string> words = {model, "--threads=2", "--limit=inlined-nodes=20000"};
  std::istringstream stream(flags);
  for (std::string word; stream >> word;)
    words.push_back(word);
  DriverOptions options;
  if (parseCommandLine(words, options))
    finding("sluicec does not take '" + flags + "'");
  return options;
}

/// What a terminal or a log may show: a line, those of notes and of an infeasible budget, no control characters, no
/// pages of text.
void checkMessage(const std::string &message) {
  if (message.rfind("sluicec: error: ", 0) != 0)
    finding("a failure without 'sluicec: error: ': '" + message.substr(0, 200) + "'");
  if (message.size() > 20'000)
    finding("a message of " + std::to_string(message.size()) + " bytes: " + message.substr(0, 200));
  for (unsigned char c : message)
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
      finding("a control character in the message: " + message.substr(0, 200));
}

/// Runs the compiler with its output in `folder` and its messages in a string.
Outcome compileInto(DriverOptions options, Emit emit, const std::string &folder) {
  options.emit = emit;
  options.output = folder + "/level.mlir";
  std::filesystem::remove(options.output);
  std::ostringstream messages;
  std::streambuf *terminal = std::cerr.rdbuf(messages.rdbuf());
  int status = 4;
  std::string thrown;
  try {
    status = compile(options);
  } catch (const std::exception &error) {
    thrown = error.what();
  }
  std::cerr.rdbuf(terminal);
  static const bool spoken = std::getenv("SLUICE_FUZZ_MESSAGES"); // to see what campaigns are refused for
  if (spoken)
    std::cerr << (messages.str().empty() ? "accepted\n" : messages.str());
  if (!thrown.empty() || status == 4)
    finding("exit status 4 with '" + options.commandLine + "': " + thrown + messages.str());
  if (status != 0)
    checkMessage(messages.str());
  if (status == 0 && !std::filesystem::exists(options.output))
    finding("status 0 and no output with '" + options.commandLine + "'");
  return status == 0 ? Outcome::Accepted : Outcome::Refused;
}

} // namespace

Outcome runModel(const std::string &input, const std::string &folder) {
  const std::string path = folder + "/model.onnx";
  static const std::vector<DriverOptions> all = [&] {
    std::vector<DriverOptions> parsed;
    for (const char *flags : modelFlags)
      parsed.push_back(optionsOf(path, flags));
    writeFile(folder + "/weights.bin", std::string(sharedBytes, '\1'));
    return parsed;
  }();
  writeFile(path, input);
  return compileInto(all[hashOf(input) % all.size()], Emit::Placed, folder);
}

Outcome runProfile(const std::string &input, const std::string &folder) {
  const std::string path = folder + "/profile.json";
  static const std::vector<DriverOptions> all = [&] {
    std::vector<DriverOptions> parsed;
    for (const char *flags : {"--device=", "--profile="})
      for (const char *strategy : {"auto", "greedy", "mixed", "vdnn-all", "superneurons", "autoswap", "capuchin"})
        parsed.push_back(optionsOf(SLUICE_FUZZ_MODEL, "--loss=mse --memory-budget=80%act --strategy=" +
                                                          std::string(strategy) + " " + flags + path));
    return parsed;
  }();
  try {
    if (const Result<planner::Profile> profile = planner::parseProfile(input); !profile) {
      if (profile.error().empty())
        finding("an error without a text");
      return Outcome::Refused;
    }
  } catch (const std::exception &thrown) {
    finding(std::string("exit status 4: ") + thrown.what());
  }
  const uint64_t hash = hashOf(input);
  if (hash % 32) // a compilation takes a hundred times longer than the reader
    return Outcome::Accepted;
  writeFile(path, input);
  return compileInto(all[hash / 32 % all.size()], Emit::Planned, folder);
}

} // namespace sluice::fuzz
