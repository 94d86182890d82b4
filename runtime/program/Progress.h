// SPDX-License-Identifier: Apache-2.0
// What a person sees during training: on a terminal one line that is rewritten (bar, step, samples/s, time left, loss,
// rate, memory), elsewhere a plain line at the first and the last step, at epoch ends (one a second at most) and every
// ten seconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sluice {

class Progress {
public:
  Progress(int64_t firstStep, int64_t lastStep, int64_t batch);
  ~Progress();

  using Loss = std::pair<std::string, float>;

  /// Of losses by other names the last ones are told, too.
  void step(int64_t step, int64_t epoch, const Loss &loss, float learningRate, bool epochEnds);
  /// Ends the rewritten line, before something else is printed.
  void endLine();

private:
  using Clock = std::chrono::steady_clock;
  void note(const Loss &loss);
  void printBar(int64_t step, int64_t epoch, float learningRate, double rate);
  std::string lossText(int digits) const;

  int64_t firstStep, lastStep, batch;
  std::vector<Loss> losses; ///< by their names, the last of each
  bool terminal, lineOpen = false, began = false;
  Clock::time_point start, shown;
};

} // namespace sluice
