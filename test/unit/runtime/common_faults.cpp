// SPDX-License-Identifier: Apache-2.0
// Every file operation of a whole run fails once, in every way that it can: tiny_program.cpp runs under
// faulty_files.cpp with a checkpoint to go on from, a log, an export, a trace, gradients, a profile, an evaluation and
// host memory in a file. Whatever happens, the run either does all that it was asked to, to the bit, or says in one
// line what failed and leaves a checkpoint from which training ends where it would have ended.
#include "test/unit/runtime/TinyProgram.h"

using namespace sluice;

namespace {

/// Where each run takes a second or more, most of the later operations do not fail, and no profile is measured.
#ifdef SLUICE_EMULATOR
constexpr bool emulated = true;
#else
constexpr bool emulated = false;
#endif

/// What lets an operation of the command after it fail.
std::string failing(const std::string &fault) {
  return "FAULT=" + fault + " " + preloadVariable + "=" SLUICE_FAULTY_FILES " timeout 60 ";
}

class FileFaults : public TinyProgram, public testing::WithParamInterface<std::pair<const char *, const char *>> {
protected:
  FileFaults() {
    folder.write("tiny.onnx-template", std::string(16 + 96 + 12 + 5, 'T'));
    EXPECT_EQ(run("--data data --steps 2 --seed 4 --checkpoint first", "offload"), 0) << err;
    EXPECT_EQ(go(""), 0) << err;
    for (const std::string &name : outputs)
      expected[name] = folder.read(name);
    expectedLosses = losses("log");
    clean();
  }

  /// Two checkpoints are written on the way, at steps 4 and 6.
  int go(const std::string &fault) {
    std::filesystem::remove_all(folder / "c");
    std::filesystem::copy(folder / "first", folder / "c");
    std::filesystem::remove(folder / "fired");
    return shell((fault.empty() ? "" : failing(fault)) +
                     "./tiny --data data --steps 6 --resume c --checkpoint c --checkpoint-every 2 "
                     "--keep-checkpoints 2 --log log "
                     "--export out.onnx --trace trace --dump-gradients gradients --evaluate data --offload-to slots" +
                     (profiled() ? " --profile-out profile" : ""),
                 "offload");
  }

  /// Measuring a profile takes seconds, and none of its calls is one of those that move parts of files.
  static bool profiled() {
    const std::string call = GetParam().first;
    return !emulated && std::string(GetParam().second) != "kill" && call != "link" && call != "pread" &&
           call != "pwrite" && call != "posix_fallocate";
  }

  void clean() {
    for (const char *name : {"out.onnx", "log", "trace", "gradients", "profile"})
      std::filesystem::remove(folder / name);
  }

  std::vector<std::string> partials() const {
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::recursive_directory_iterator(folder.path))
      if (entry.path().extension() == ".partial" || entry.path().filename() == "slots")
        names.push_back(entry.path().filename());
    return names;
  }

  void expectWhole() {
    for (const std::string &name : outputs)
      EXPECT_EQ(folder.read(name), expected[name]) << name;
    EXPECT_EQ(losses("log"), expectedLosses);
    EXPECT_TRUE(Json::accept(folder.read("trace")));
    EXPECT_TRUE(!profiled() || Json::accept(folder.read("profile")));
  }

  /// The checkpoint that a failed run leaves is whole: training from it ends where it would have ended.
  void expectGoesOn() {
    EXPECT_EQ(run("--data data --steps 6 --resume c --checkpoint c", "offload"), 0) << err;
    EXPECT_EQ(folder.read("c/checkpoint.safetensors"), expected["c/checkpoint.safetensors"]);
  }

  /// Until the program makes no further such call; later ones are the same few in turn, so that not each of them must
  /// fail. Returns how many were reached.
  int failEach(const std::string &call, const std::string &kind, bool harmless) {
    for (int n = 1;; n += 1 + n / (emulated ? 1 : 16)) {
      const std::string fault = call + ":" + std::to_string(n) + ":" + kind;
      SCOPED_TRACE(fault);
      const int status = go(fault);
      if (!folder.has("fired")) {
        EXPECT_EQ(status, 0) << err;
        return n - 1;
      }
      const bool arena = call == "posix_fallocate" || kind == "lost";
      EXPECT_TRUE(status == 0 || (!harmless && (arena ? status == 3 : status == 1 || (call == "open" && status == 3))))
          << status << ": " << err;
      // Who loses its arena ends at once, whatever its writing thread does: the next run tidies up.
      EXPECT_TRUE(partials().empty() || (kind == "lost" && status == 3));
      if (status == 0) {
        expectWhole();
      } else {
        ++refused;
        expectError("");
        expectGoesOn();
        EXPECT_EQ(partials(), std::vector<std::string>());
      }
      clean();
      if (HasFailure())
        return n;
    }
  }

  const std::vector<std::string> outputs = {"c/checkpoint.safetensors", "out.onnx", "gradients"};
  std::map<std::string, std::string> expected;
  std::map<int64_t, double> expectedLosses;
  int refused = 0;
};

class HarmlessFaults : public FileFaults {};
class Kills : public FileFaults {};

TEST_P(FileFaults, AreSaidAndLeaveAWholeCheckpoint) {
  const auto [call, kind] = GetParam();
  EXPECT_GT(failEach(call, kind, false), 0);
  EXPECT_GT(refused, 0);
}

TEST_P(HarmlessFaults, ChangeNothing) {
  const auto [call, kind] = GetParam();
  EXPECT_GT(failEach(call, kind, true), 0);
}

// Whatever a run was about to do with a file when it was killed: it goes on, with the same bits.
TEST_P(Kills, LoseNothing) {
  const auto [call, kind] = GetParam();
  int killed = 0;
  for (int n = 1; !HasFailure(); n += 1 + n / (emulated ? 1 : 8)) {
    SCOPED_TRACE(n);
    const int status = go(std::string(call) + ":" + std::to_string(n) + ":" + kind);
    if (!folder.has("fired"))
      break;
    EXPECT_EQ(status, 128 + SIGKILL) << err;
    ++killed;
    for (const auto &[step, loss] : losses("log"))
      EXPECT_EQ(expectedLosses[step], loss);
    std::filesystem::remove(folder / "slots");
    expectGoesOn();
    clean();
    for (const auto &entry : std::filesystem::directory_iterator(folder / "c"))
      EXPECT_NE(entry.path().extension(), ".partial");
  }
  EXPECT_GT(killed, 0);
}

// What is offloaded to a file takes part in that: a copy that fails ends the run, one that is interrupted or moves half
// of its bytes goes on.
TEST_F(TinyProgram, CopiesOfStorageFailClearly) {
  ASSERT_EQ(run("--data data --steps 3 --log whole"), 0) << err;
  const auto go = [&](const std::string &fault) {
    return shell(failing(fault) + "./tiny --data data --steps 3 --log log --offload-to slots", "storage");
  };
  for (const std::string call : {"pwrite", "pread"})
    for (const std::string kind : {"half", "EINTR"}) {
      EXPECT_EQ(go(call + ":2:" + kind), 0) << err;
      EXPECT_TRUE(folder.has("fired"));
      EXPECT_EQ(losses("log"), losses("whole"));
      std::filesystem::remove(folder / "fired");
    }
  EXPECT_EQ(go("pwrite:2:ENOSPC"), 3) << err;
  expectError("cannot write 48 bytes at 256 of the file of --offload-to, 'slots': No space left on device, at step 2");
  EXPECT_EQ(go("pwrite:1:zero"), 3) << err;
  expectError("cannot write 48 bytes at 256 of the file of --offload-to, 'slots': No space left on device");
}

// A program that gets no thread says so and ends; it neither hangs nor crashes, and does all that it was asked to where
// it can do without.
TEST_F(TinyProgram, WithoutAThreadEndsWithThree) {
  int failed = 0;
  for (int n = 1;; ++n) {
    SCOPED_TRACE(n);
    std::filesystem::remove(folder / "fired");
    const int status = shell(failing("pthread_create:" + std::to_string(n) + ":EAGAIN") +
                                 "./tiny --data data --threads 4 --steps 3 --checkpoint c --force",
                             "offload");
    if (!folder.has("fired")) {
      EXPECT_EQ(status, 0) << err;
      break;
    }
    EXPECT_EQ(status, 3) << err;
    EXPECT_THAT(err, testing::HasSubstr("tiny: error: a thread cannot be had"));
    ++failed;
  }
  EXPECT_GE(failed, 8); // three of the pool and five streams
}

std::string nameOf(const testing::TestParamInfo<std::pair<const char *, const char *>> &info) {
  return std::string(info.param.first) + "_" + info.param.second;
}

using Fault = std::pair<const char *, const char *>;
INSTANTIATE_TEST_SUITE_P(Calls, FileFaults,
                         testing::Values(Fault{"open", "EACCES"}, Fault{"open", "EMFILE"}, Fault{"pread", "EIO"},
                                         Fault{"pread", "zero"}, Fault{"pwrite", "ENOSPC"}, Fault{"pwrite", "EIO"},
                                         Fault{"pwrite", "zero"}, Fault{"write", "ENOSPC"}, Fault{"write", "zero"},
                                         Fault{"fsync", "EIO"}, Fault{"close", "EIO"}, Fault{"rename", "EROFS"},
                                         Fault{"posix_fallocate", "ENOSPC"}, Fault{"write", "lost"}),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Calls, HarmlessFaults,
                         testing::Values(Fault{"pread", "half"}, Fault{"pread", "EINTR"}, Fault{"pwrite", "half"},
                                         Fault{"pwrite", "EINTR"}, Fault{"write", "half"}, Fault{"write", "EINTR"},
                                         Fault{"posix_fallocate", "EINTR"}, Fault{"link", "EPERM"}),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Calls, Kills,
                         testing::Values(Fault{"open", "kill"}, Fault{"pwrite", "kill"}, Fault{"fsync", "kill"},
                                         Fault{"close", "kill"}, Fault{"rename", "kill"}, Fault{"link", "kill"}),
                         nameOf);

} // namespace
