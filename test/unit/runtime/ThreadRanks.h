// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one process, with mailboxes between them, for tests of what they compute together.
#pragma once

#include "test/unit/runtime/Harness.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

namespace sluice {

/// What is on its way, by sender and receiver.
struct Mail {
  std::mutex mutex;
  std::condition_variable arrived;
  std::map<std::pair<int, int>, std::deque<std::vector<char>>> boxes;
};

class ThreadRanks : public Ranks {
public:
  ThreadRanks(int number, int count, Mail &mail) : Ranks(number, count), mail(mail) {}

  void exchange(const std::vector<Message> &messages, const Awaited &) override {
    for (const Message &m : messages)
      if (m.sends) {
        const auto *data = static_cast<const char *>(m.data);
        const std::lock_guard<std::mutex> lock(mail.mutex);
        mail.boxes[{rank(), m.peer}].emplace_back(data, data + m.bytes);
        mail.arrived.notify_all();
      }
    for (const Message &m : messages)
      if (!m.sends) {
        std::unique_lock<std::mutex> lock(mail.mutex);
        auto &box = mail.boxes[{m.peer, rank()}];
        mail.arrived.wait(lock, [&] { return !box.empty(); });
        ASSERT_EQ(box.front().size(), m.bytes);
        std::copy(box.front().begin(), box.front().end(), static_cast<char *>(m.data));
        box.pop_front();
      }
  }
  void add(float *values, size_t count, const Awaited &awaited) override {
    const std::vector<char> all = gather(values, count * sizeof(float), awaited);
    std::vector<float> each(count * static_cast<size_t>(size()));
    std::memcpy(each.data(), all.data(), all.size());
    for (size_t i = 0; i < count; ++i) {
      values[i] = 0;
      for (size_t from = 0; from < each.size(); from += count)
        values[i] += each[from + i];
    }
  }
  void watch(std::function<void(const std::string &)>, std::function<bool()>) override {}
  [[noreturn]] void endAll(const std::string &line) override { throw std::runtime_error(line); }
  void fail() noexcept override {}
  void finish() override {}

private:
  Mail &mail;
};

using Floats = std::vector<float>;

/// What unit `u` adds: of all magnitudes, so that each order of a sum has its own bits.
inline Floats partOf(int64_t unit, size_t count) {
  Floats part(count);
  const Numbers random = randomNumbers(count, static_cast<unsigned>(unit + 1));
  for (size_t i = 0; i < count; ++i)
    part[i] =
        static_cast<float>(random[i] * std::pow(10.0, static_cast<double>((unit * 7 + static_cast<int64_t>(i)) % 5)));
  return part;
}

} // namespace sluice
