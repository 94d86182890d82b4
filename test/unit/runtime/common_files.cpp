// SPDX-License-Identifier: Apache-2.0
// No file of the user is lost: what a run reads, what others wrote, and what another run is writing.
#include "test/unit/runtime/TinyProgram.h"

#include "runtime/Printable.h"
#include "runtime/files/OutputFile.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace sluice;

namespace {

/// Where the program is emulated, what runs is the emulator to those who ask the system.
#ifdef SLUICE_EMULATOR
constexpr bool knowsItself = false;
#else
constexpr bool knowsItself = true;
#endif

class Files : public TinyProgram {
protected:
  std::vector<std::string> names(const std::string &where = "") const {
    std::vector<std::string> found;
    for (const auto &entry : std::filesystem::directory_iterator(folder / where))
      found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }

  /// Expects that the run is refused with a message that has `message`, and that `file` stays as it is.
  void expectKept(const std::string &file, const std::string &arguments, const std::string &message, int status = 2) {
    SCOPED_TRACE(arguments);
    const std::string before = folder.read(file);
    expectFailure(status, arguments, message);
    EXPECT_EQ(folder.read(file), before);
  }
};

} // namespace

TEST_F(Files, APlantedFileOrLinkBesideTheOutputIsLeftAlone) {
  std::filesystem::create_directory(folder / "c");
  folder.write("victim", "precious");
  folder.write("c/checkpoint.safetensors.partial", "the user's own");
  for (int i = 0; i < 3; ++i)
    std::filesystem::create_symlink(
        folder / "victim", folder / ("c/.sluice-" + std::to_string(getpid()) + "-" + std::to_string(i) + ".partial"));
  {
    OutputFile file(folder / "c/checkpoint.safetensors");
    file.write("whole", 5);
    file.commit();
  }
  EXPECT_EQ(folder.read("c/checkpoint.safetensors"), "whole");
  EXPECT_EQ(folder.read("victim"), "precious");
  EXPECT_EQ(folder.read("c/checkpoint.safetensors.partial"), "the user's own");
}

TEST_F(Files, TwoWritersOfOneNameDoNotMeet) {
  OutputFile first(folder / "x"), second(folder / "x");
  first.write("first", 5);
  second.write("second", 6);
  first.commit();
  EXPECT_EQ(folder.read("x"), "first");
  second.commit();
  EXPECT_EQ(folder.read("x"), "second");
}

TEST_F(Files, WhatAKilledWriterLeftIsRemovedAndWhatALivingOneWritesIsNot) {
  const std::string stale = folder.write(".sluice-1-0.partial", "half"),
                    living = folder.write(".sluice-1-1.partial", "half");
  folder.write(".sluice-x.partial", "no name of a writer's");
  const int holder = open(living.c_str(), O_RDONLY);
  ASSERT_EQ(flock(holder, LOCK_EX), 0);
  OutputFile(folder / "x");
  EXPECT_FALSE(folder.has(".sluice-1-0.partial"));
  EXPECT_TRUE(folder.has(".sluice-1-1.partial"));
  EXPECT_TRUE(folder.has(".sluice-x.partial"));
  close(holder);
}

TEST_F(Files, LongNamesAreWritten) {
  const std::string name(255, 'n');
  OutputFile file(folder / name);
  file.write("x", 1);
  file.commit();
  EXPECT_EQ(folder.read(name), "x");
}

TEST_F(Files, ASecondRunOnACheckpointFolderIsRefusedAndNamesTheFirst) {
  EXPECT_EQ(shell("./tiny --data data --epochs 100000000 --checkpoint c --checkpoint-every 7 & first=$!; until test -s "
                  "c/checkpoint.lock && test -s c/checkpoint.safetensors; do :; done; "
                  "./tiny --data data --steps 9 --checkpoint c 2>second; echo $? >status; "
                  "./tiny --data data --checkpoint c --log nowhere/log 2>/dev/null; kill $first; wait $first"),
            143);
  EXPECT_EQ(folder.read("status"), "1\n");
  EXPECT_THAT(folder.read("second"),
              testing::MatchesRegex("tiny: error: process [0-9]+ on .* writes its checkpoints to c; .*\n"));
  SafetensorsFile(folder / "c/checkpoint.safetensors");
  EXPECT_EQ(names("c"), (std::vector<std::string>{"checkpoint.safetensors", "recipe.toml"}));
}

TEST_F(Files, ALockThatAKilledRunLeftHoldsNobody) {
  std::filesystem::create_directory(folder / "c");
  folder.write("c/checkpoint.lock", "process 1 on a machine long gone\n");
  EXPECT_EQ(run("--data data --steps 1 --checkpoint c"), 0) << err;
  EXPECT_EQ(names("c"), (std::vector<std::string>{"checkpoint.safetensors", "recipe.toml"}));
  std::filesystem::create_symlink(folder / "victim", folder / "c/checkpoint.lock");
  expectFailure(1, "--data data --steps 1 --checkpoint c", "cannot write c/checkpoint.lock");
  EXPECT_FALSE(folder.has("victim"));
}

TEST_F(Files, OneLogHasOneWriterAndAFormerOneIsKeptUntilThereIsANewOne) {
  ASSERT_EQ(run("--data data --steps 2 --log log"), 0) << err;
  const std::string former = folder.read("log");
  EXPECT_EQ(shell("flock log ./tiny --data data --steps 3 --log log"), 1);
  expectError("cannot write log log: another program writes to it");
  EXPECT_EQ(folder.read("log"), former);
  expectFailure(3, "--data data --log log", "", "huge");
  EXPECT_EQ(folder.read("log"), former);
  ASSERT_EQ(run("--data data --steps 3 --log log"), 0) << err;
  EXPECT_EQ(losses("log").size(), 3u);
}

TEST_F(Files, APipeThatNobodyReadsIsNoLog) {
  EXPECT_EQ(shell("mkfifo pipe && timeout 20 ./tiny --data data --steps 1 --log pipe"), 1);
  expectError("cannot write log pipe: nobody reads this pipe");
  EXPECT_EQ(shell("exec 3<>pipe; ./tiny --data data --steps 1 --log pipe; head -n 1 <&3 >first"), 0) << err;
  EXPECT_THAT(folder.read("first"), testing::HasSubstr("\"start\""));
  EXPECT_EQ(run("--data data --steps 1 --log /dev/null --trace trace"), 0) << err;
}

TEST_F(Files, WhatARunReadsIsNotWrittenOver) {
  folder.write("tiny.onnx-template", std::string(16 + 96 + 12 + 5, 'T'));
  ASSERT_EQ(run("--data data --steps 1 --checkpoint c"), 0) << err;
  std::filesystem::create_hard_link(folder / "data/input.npy", folder / "other-name");
  std::filesystem::create_symlink(folder / "data/target.npy", folder / "link");
  for (std::string flag : {"--log", "--trace", "--dump-gradients", "--profile-out", "--export"}) {
    const bool free = flag == "--log" || flag == "--trace" || flag == "--profile-out"; // to end as they like
    expectKept("data/input.npy", "--data data --force " + flag + " data/input.npy",
               flag + " data/input.npy: " + (free ? "is data/input.npy, which this run reads" : "it writes "));
    expectKept("data/input.npy", "--data data --force " + flag + " other-name",
               "is data/input.npy, which this run reads");
    expectKept("data/target.npy", "--data data --force " + flag + " link", "is data/target.npy, which this run reads");
    expectKept("c/checkpoint.safetensors", "--data data --resume c --force " + flag + " c/checkpoint.safetensors",
               "which this run reads");
    expectKept("tiny.onnx-template", "--data data --force " + flag + " tiny.onnx-template",
               "which the compiler wrote beside the program");
    if (knowsItself)
      expectKept("tiny", "--data data --force " + flag + " tiny", "which this run reads");
  }
  expectKept("data/input.npy", "--data data --evaluate data --log data/input.npy", "which this run reads");
}

TEST_F(Files, TwoOutputsAreTwoFiles) {
  expectFailure(2, "--data data --log x --trace ./x", "--log x: is the file of --trace, too");
  expectFailure(2, "--data data --log c/checkpoint.safetensors --checkpoint c", "is the file of --log, too");
  EXPECT_FALSE(folder.has("x"));
  EXPECT_EQ(run("--data data --steps 1 --log /dev/null"), 0) << err;
}

TEST_F(Files, WhatOthersWroteIsWrittenOverWithForceOnly) {
  folder.write("tiny.onnx-template", std::string(16 + 96 + 12 + 5, 'T'));
  folder.write("thesis", "years of work, unrelated to machine learning");
  std::filesystem::create_directory(folder / "c");
  std::filesystem::copy(folder / "thesis", folder / "c/checkpoint.safetensors");
  for (std::string flag : {"--log", "--trace", "--dump-gradients", "--profile-out", "--export"})
    expectKept("thesis", "--data data " + flag + " thesis", flag + " thesis: exists and was not written by " + flag, 1);
  expectKept("c/checkpoint.safetensors", "--data data --checkpoint c",
             "exists and was not written by --checkpoint (c/checkpoint.safetensors: bad", 1);
  EXPECT_EQ(run("--data data --steps 1 --checkpoint c --log thesis --force"), 0) << err;
  EXPECT_EQ(losses("thesis").size(), 1u);
  // Its own files are no strangers, nor is an empty one.
  const std::string all =
      "--data data --steps 1 --log log --trace trace --dump-gradients gradients --profile-out profile --checkpoint d";
  folder.write("log", "");
  ASSERT_EQ(run(all), 0) << err;
  EXPECT_EQ(run(all + " --resume d"), 0) << err;
}

TEST_F(Files, StandardStreamsThatAreClosedGetNoFile) {
  EXPECT_EQ(shell("./tiny --data data --steps 2 --checkpoint c --log log >&-"), 1);
  expectError("cannot write standard output");
  EXPECT_EQ(losses("log").size(), 2u);
  EXPECT_EQ(SafetensorsFile(folder / "c/checkpoint.safetensors").metadata().at("step"), "2");
  EXPECT_EQ(shell("./tiny --data data --steps 3 --resume c --checkpoint c 2>&- <&-"), 0);
  EXPECT_EQ(SafetensorsFile(folder / "c/checkpoint.safetensors").metadata().at("step"), "3");
}

TEST(Printable, HidesWhatTerminalsObey) {
  EXPECT_EQ(printable("plain größe 张"), "plain größe 张");
  EXPECT_EQ(printable("a\x1b[2Jb\nc\rd\x7f"), "a\\x1b[2Jb\\x0ac\\x0dd\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b"); // the control sequence introducer in one character
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "x"),
            "\\xe2\\x80\\xaex"); // text from right to left
  EXPECT_EQ(printable("\xff\xc0\xaf\xf8\x88\x80\x80\x80\xed\xa0\x80\xe2\x82"),
            "\\xff\\xc0\\xaf\\xf8\\x88\\x80\\x80\\x80\\xed\\xa0\\x80\\xe2\\x82");
  EXPECT_EQ(printable(std::string(5000, 'x')), std::string(2000, 'x') + "... (5000 bytes)");
}

// One bit anywhere in the file: in its length, a name, a number or a weight.
TEST_F(Files, FlippedBitsAreFound) {
  ASSERT_EQ(run("--data data --steps 3 --checkpoint c"), 0) << err;
  const std::string good = folder.read("c/checkpoint.safetensors");
  for (size_t bit = 0; bit < good.size() * 8; bit += 13) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    folder.write("damaged", bytes);
    auto read = [&] {
      SafetensorsFile file(folder / "damaged");
      for (auto [name, shape] : {std::pair<const char *, Shape>{"fc.weight", {3, 8}},
                                 {"fc.bias", {3}},
                                 {"fc.weight/momentum", {3, 8}},
                                 {"fc.bias/momentum", {3}}}) {
        std::vector<char> values(static_cast<size_t>(shape.elements()) * 4);
        TensorReader(file, name, DataType::F32, shape).read(0, values.data(), values.size());
      }
    };
    // Spaces after the header are the only bytes that mean nothing.
    if (good[bit / 8] == ' ' && (bytes[bit / 8] & 0xdf) == 0)
      continue;
    EXPECT_THROW(read(), DataError) << "byte " << bit / 8;
  }
  std::string bytes = good;
  bytes[bytes.size() - 3] ^= 1;
  folder.write("c/checkpoint.safetensors", bytes);
  expectFailure(1, "--data data --resume c",
                "c/checkpoint.safetensors: the file is damaged: the checksum of tensor 'fc.bias/momentum' is ");
  folder.write("c/checkpoint.safetensors", unchecked(bytes));
  EXPECT_EQ(run("--data data --resume c"), 0) << err;
}

TEST_F(Files, ChecksumsAreThoseOfTheStandard) {
  Crc32c sum;
  sum.add("123456789", 9);
  EXPECT_EQ(sum.value(), 0xe3069283u); // the check value of CRC-32C
  std::string text(1000, 'x');
  for (size_t cut = 0; cut < 20; ++cut) {
    Crc32c whole, parts;
    whole.add(text.data(), text.size());
    parts.add(text.data(), cut);
    parts.add(text.data() + cut, text.size() - cut);
    EXPECT_EQ(whole.value(), parts.value());
  }
}

TEST_F(Files, ACheckpointOfAnotherModelIsRefusedAndKept) {
  ASSERT_EQ(run("--data data --steps 1 --checkpoint c", "other-model"), 0) << err;
  expectFailure(1, "--data data --resume c",
                "c/checkpoint.safetensors: belongs to another model: 00000000deadbeef ('tiny.onnx'), this program "
                "trains 0123456789abcdef ('tiny.onnx')");
  expectKept("c/checkpoint.safetensors", "--data data --checkpoint c", "belongs to another model", 1);
  EXPECT_EQ(run("--data data --steps 2 --resume c --checkpoint c", "other-model"), 0) << err;
  EXPECT_EQ(run("--data data --steps 1 --checkpoint c --force"), 0) << err;
  EXPECT_EQ(run("--data data --steps 2 --resume c"), 0) << err;
}

TEST_F(Files, ControlCharactersOfFilesDoNotReachTheTerminal) {
  ASSERT_EQ(run("--data data --steps 1 --checkpoint c"), 0) << err;
  std::string bytes = unchecked(folder.read("c/checkpoint.safetensors"));
  const size_t at = bytes.find("sluice-checkpoint-1");
  bytes.replace(at, 19, "\\u001b[2J\\u0007abcd");
  folder.write("c/checkpoint.safetensors", bytes);
  expectFailure(1, "--data data --resume c", "its format is '\\x1b[2J\\x07abcd'");
}
