// SPDX-License-Identifier: Apache-2.0
// Signals that ask a run to end: the step ends, the checkpoint is written, and the status is the signal's.
#include "test/unit/runtime/TinyProgram.h"

#include <csignal>

using namespace sluice;

namespace {

class Signals : public TinyProgram {
protected:
  /// What the tests were started with (`nohup`) is not what they are about.
  Signals() {
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXCPU})
      std::signal(signal, SIG_DFL);
  }

  /// Runs the program beside `script`, which finds its number in $p and runs once steps are done.
  int beside(const std::string &script, const std::string &before = "", const std::string &after = "") {
    return shell(before +
                 "./tiny --data data --epochs 100000000 --checkpoint c --checkpoint-every 1000000000 --log log " +
                 after + " & p=$!; until grep -q event...step log 2>/dev/null; do :; done; " + script + "; wait $p");
  }
  void expectSaved() {
    EXPECT_GT(std::stoll(SafetensorsFile(folder / "c/checkpoint.safetensors").metadata().at("step")), 0);
    EXPECT_FALSE(folder.has("c/checkpoint.lock"));
    EXPECT_EQ(log("log").back()["event"], "end");
  }
};

} // namespace

TEST_F(Signals, EndARunWithACheckpoint) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXCPU}) {
    SCOPED_TRACE(signal);
    std::filesystem::remove_all(folder / "c");
    std::filesystem::remove(folder / "log");
    EXPECT_EQ(beside("kill -" + std::to_string(signal) + " $p"), 128 + signal);
    EXPECT_THAT(out, testing::HasSubstr("interrupted after step"));
    expectSaved();
    const std::string command = "./tiny --recipe=c/recipe.toml --resume=c";
    EXPECT_THAT(out, testing::HasSubstr("; go on with: " + command + "\n"));
    EXPECT_EQ(shell(command + " --steps=1"), 0) << err;
    EXPECT_THAT(out, testing::HasSubstr("nothing to train: step"));
  }
}

// Whoever closes a terminal sends one after the other, and a pipe without a reader speaks at every write.
TEST_F(Signals, HangupsAndBrokenPipesComeTwice) {
  const int status = beside("kill -TERM $p; kill -HUP $p; kill -PIPE $p; kill -HUP $p");
  EXPECT_TRUE(status == 128 + SIGTERM || status == 128 + SIGHUP || status == 128 + SIGPIPE)
      << status; // the system delivers them in any order
  expectSaved();
}

TEST_F(Signals, TheReaderOfTheOutputMayGo) {
  EXPECT_EQ(
      shell("{ ./tiny --data data --epochs 100000000 --evaluate data --checkpoint c --log log; echo $? >status; } | "
            "until grep -q evaluate log 2>/dev/null; do :; done"),
      0);
  EXPECT_EQ(folder.read("status"), "141\n");
  expectSaved();
  EXPECT_THAT(err, testing::MatchesRegex("interrupted after step [0-9]+; go on with: ./tiny --recipe=c/recipe.toml "
                                         "--resume=c\n"));
  // The pipe has a reader before the program opens it, and none after nine lines.
  EXPECT_EQ(shell("mkfifo pipe; exec 3<>pipe; ./tiny --data data --epochs 100000000 --checkpoint d --log pipe 3>&- & "
                  "head -n 9 <&3 >/dev/null; exec 3>&-; wait $!"),
            1);
  expectError("cannot write log pipe: Broken pipe");
  EXPECT_GT(std::stoll(SafetensorsFile(folder / "d/checkpoint.safetensors").metadata().at("step")), 0);
}

TEST_F(Signals, ThatTheCallerSwitchedOffStayOff) {
  const std::string went = "n=$(wc -l <log); until test $(wc -l <log) -gt $((n + 50)); do :; done; kill -TERM $p";
  EXPECT_EQ(beside("kill -HUP $p; " + went, "trap '' HUP; "), 143);
  EXPECT_THAT(out, testing::HasSubstr("interrupted after step"));
}

TEST_F(Signals, ASecondOneEndsAStepThatHangs) {
  const int status = shell("timeout 60 sh -c './tiny --data data --checkpoint c --log log & p=$!; until grep -q start "
                           "log 2>/dev/null; do :; done; "
                           "kill -INT $p; kill -TERM $p; wait $p'",
                           "hang");
  EXPECT_TRUE(status == 128 + SIGTERM || status == 128 + SIGINT) << status;
}

// What a full disk ends is not lost: the steps before it are saved, and those whose loss is not finite are not.
TEST_F(Signals, AnErrorBesideTrainingSavesWhatWasTrained) {
  EXPECT_EQ(shell("prlimit --fsize=1500 ./tiny --data data --epochs 100 --log log --checkpoint c --checkpoint-every "
                  "1000000000"),
            1);
  expectError("cannot write log log: File too large");
  EXPECT_GT(std::stoll(SafetensorsFile(folder / "c/checkpoint.safetensors").metadata().at("step")), 2);
}
