// SPDX-License-Identifier: Apache-2.0
// Streams run in order, events order them across each other, errors stop a session, poison finds stale reads and stray
// writes.
#include "test/unit/runtime/Harness.h"

#include "runtime/Watchdog.h"
#include "runtime/host/Parallel.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(Streams, RunInOrder) {
  Session session(64, 64, 1);
  std::vector<int> seen;
  for (int i = 0; i < 10000; ++i)
    session.compute.launch("n", "op", [&seen, i] { seen.push_back(i); });
  session.synchronize();
  ASSERT_EQ(seen.size(), 10000u);
  for (int i = 0; i < 10000; ++i)
    EXPECT_EQ(seen[static_cast<size_t>(i)], i);
}

TEST(Streams, WaitsForTheLatestRecord) {
  Session session(64, 64, 1);
  std::atomic<int> value{0};
  for (int round = 1; round <= 50; ++round) {
    session.compute.launch("n", "op", [&value, round] {
      std::this_thread::sleep_for(200us);
      value = round;
    });
    session.compute.record({0});
    session.toHost.wait({0});
    session.toHost.launch("n", "op", [&value, round] { EXPECT_GE(value, round); });
  }
  session.synchronize();
}

TEST(Streams, NameATaskThatDoesNotEnd) {
  Session session(64, 64, 1);
  std::atomic<bool> goOn{false};
  std::string seen;
  watchStreams(session, 1e-3, [&](const char *stream, const char *node, const char *op, double seconds) {
    EXPECT_GE(seconds, 1e-3);
    seen = std::string(stream) + " " + node + " " + op;
    goOn = true;
  });
  session.compute.launch("quick", "op", [] {});
  session.synchronize();
  session.toHost.launch("endless", "copy", [&goOn] { // ends only because it was named
    while (!goOn)
      std::this_thread::yield();
  });
  session.toHost.record({0});
  session.compute.wait({0});
  session.synchronize();
  EXPECT_EQ(seen, "to host endless copy");
}

TEST(Streams, WaitWithoutRecordPasses) {
  Session session(64, 64, 1);
  session.compute.wait({0});
  session.synchronize();
  EXPECT_THROW(session.compute.wait({1}), std::invalid_argument);
}

TEST(Streams, RunBesideEachOther) {
  Session session(64, 64, 2);
  // Each side waits for the other: only two threads can finish this.
  std::atomic<int> arrived{0};
  for (Stream *stream : {&session.compute, &session.toHost})
    stream->launch("n", "op", [&arrived] {
      ++arrived;
      while (arrived < 2)
        std::this_thread::yield();
    });
  session.synchronize();
}

TEST(Streams, FirstErrorStopsTheSession) {
  Session session(64, 64, 1);
  bool ran = false;
  session.compute.launch("n", "op", [] { throw std::runtime_error("first"); });
  session.compute.launch("n", "op", [] { throw std::runtime_error("second"); });
  session.compute.record({0});
  session.toHost.wait({0});
  session.toHost.launch("n", "op", [&ran] { ran = true; });
  for (int i = 0; i < 2; ++i)
    try {
      session.synchronize();
      FAIL();
    } catch (const std::runtime_error &error) {
      EXPECT_STREQ(error.what(), "first");
    }
  EXPECT_FALSE(ran);
}

TEST(Streams, HostArenaThatCannotBeAFile) {
  EXPECT_THROW(Session(64, 64, 0, "/nonexistent/folder/file"), MemoryNotAvailable);
}

/// A program that starts beside this one may be about to map the same file.
TEST(Streams, HostArenaTakesNobodysFile) {
  const std::string file = testing::TempDir() + "sluice_host_arena_taken";
  std::ofstream(file) << "mine";
  EXPECT_THROW(Session(64, 64, 0, file.c_str()), MemoryNotAvailable);
  std::string held;
  std::ifstream(file) >> held;
  EXPECT_EQ(held, "mine");
  std::remove(file.c_str());
}

TEST(Streams, HostArenaInAFile) {
  const std::string file = testing::TempDir() + "sluice_host_arena";
  Session session(4096, 1 << 20, 0, file.c_str());
  const float one = 1;
  float back = 0;
  session.write(host(1 << 19, {1}), &one);
  session.read(host(1 << 19, {1}), &back);
  EXPECT_EQ(back, 1);
}

class Poison : public testing::Test {
protected:
  Poison() { setenv("SLUICE_POISON", "1", 1); }
  ~Poison() override { unsetenv("SLUICE_POISON"); }
};

TEST_F(Poison, StrayWritesAreFound) {
  Session session(250, 0, 0);
  char *base = session.compute.data<char>(device(0, {1}));
  base[250] = 1;
  EXPECT_THROW(session.synchronize(), std::runtime_error);
}

/// Whether a stream that did not wait sees what another one has done.
bool seesUnordered(uint64_t seed) {
  setenv("SLUICE_DELAY", std::to_string(seed).c_str(), 1);
  Session session(64, 64, 1);
  unsetenv("SLUICE_DELAY");
  std::atomic<int> value{0};
  int seen = 0;
  session.compute.launch("n", "op", [&value] { value = 1; });
  session.toHost.launch("n", "op", [&value, &seen] { seen = value; });
  session.synchronize();
  return seen == 1;
}

// What is ordered stays ordered under delays, see common_program; what is not comes in either order.
TEST(Delay, ShowsRaces) {
  int seen = 0;
  for (uint64_t seed = 0; seed < 60; ++seed)
    seen += seesUnordered(seed);
  EXPECT_GT(seen, 0);
  EXPECT_LT(seen, 60);
}

TEST(Parallel, EveryChunkOnce) {
  for (int count : {1, 2, 5}) {
    setThreads(count);
    for (int64_t chunks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(chunks));
      for (int repeat = 0; repeat < 50; ++repeat)
        parallelFor(chunks, [&](int64_t chunk) { ++hits[static_cast<size_t>(chunk)]; });
      for (const auto &hit : hits)
        EXPECT_EQ(hit, 50);
    }
  }
  setThreads(2);
}

} // namespace
} // namespace sluice
