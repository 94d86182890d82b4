// SPDX-License-Identifier: Apache-2.0
// The rate leaves the first step out: it pays for caches and page faults that later steps do not.

#include "runtime/program/Progress.h"

#include "runtime/program/Report.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <sys/ioctl.h>
#include <unistd.h>

namespace sluice {

static double seconds(std::chrono::steady_clock::duration span) { return std::chrono::duration<double>(span).count(); }

/// "1:02:03", "02:03".
static std::string clockText(double seconds) {
  if (!(seconds >= 0 && seconds < 1e8))
    return "?";
  long s = static_cast<long>(seconds + 0.5);
  char out[32];
  if (s >= 3600)
    std::snprintf(out, sizeof out, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
  else
    std::snprintf(out, sizeof out, "%02ld:%02ld", s / 60, s % 60);
  return out;
}

void Progress::note(const Loss &loss) {
  for (auto &[known, value] : losses)
    if (known == loss.first)
      return (void)(value = loss.second);
  losses.push_back(loss);
}

/// "loss 0.25  ", in so many digits.
std::string Progress::lossText(int digits) const {
  std::string list;
  for (const auto &[name, value] : losses) {
    char number[48];
    std::snprintf(number, sizeof number, " %.*g  ", digits, static_cast<double>(value));
    list += name + number;
  }
  return list;
}

Progress::Progress(int64_t firstStep, int64_t lastStep, int64_t batch)
    : firstStep(firstStep), lastStep(lastStep), batch(batch), terminal(isatty(STDOUT_FILENO)) {}

Progress::~Progress() { endLine(); }

void Progress::step(int64_t step, int64_t epoch, const Loss &loss, float learningRate, bool epochEnds) {
  note(loss);
  Clock::time_point now = Clock::now();
  bool first = !began, last = step == lastStep;
  if (first) {
    began = true;
    start = now;
  }
  double rate = first ? 0 : static_cast<double>((step - firstStep) * batch) / std::max(1e-9, seconds(now - start));
  double quiet = seconds(now - shown);
  bool due = first || last || quiet >= (terminal ? 0.1 : 10.0) || (epochEnds && quiet >= 1.0);
  if (!due)
    return;
  shown = now;
  if (terminal)
    return printBar(step, epoch, learningRate, rate);
  std::printf("step %lld/%lld  epoch %lld  %slr %.4g", static_cast<long long>(step), static_cast<long long>(lastStep),
              static_cast<long long>(epoch + 1), lossText(6).c_str(), static_cast<double>(learningRate));
  std::printf(rate > 0 ? "  %.4g samples/s\n" : "\n", rate);
  std::fflush(stdout);
}

/// Columns of the terminal; a line that wraps cannot be rewritten.
static size_t terminalWidth() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79;
}

void Progress::printBar(int64_t step, int64_t epoch, float learningRate, double rate) {
  double left = rate > 0 ? static_cast<double>((lastStep - step) * batch) / rate : -1;
  char numbers[240];
  // Least important last: narrow terminals cut it off.
  std::snprintf(numbers, sizeof numbers, "%lld/%lld  epoch %lld  %s%.4g samples/s  left %s  lr %.3g  %.4g MiB",
                static_cast<long long>(step), static_cast<long long>(lastStep), static_cast<long long>(epoch + 1),
                lossText(5).c_str(), rate, clockText(left).c_str(), static_cast<double>(learningRate),
                static_cast<double>(residentNow()) / 1048576);
  std::string line = numbers;
  size_t width = terminalWidth();
  if (line.size() + 10 < width) {
    size_t length = std::min<size_t>(30, width - line.size() - 3);
    double done = lastStep > 0 ? static_cast<double>(step) / static_cast<double>(lastStep) : 1;
    std::string bar(static_cast<size_t>(std::clamp(done, 0.0, 1.0) * static_cast<double>(length)), '#');
    bar.resize(length, '.');
    line = "[" + bar + "] " + line;
  }
  line.resize(std::min(line.size(), width));
  std::printf("\r%s\033[K", line.c_str());
  std::fflush(stdout);
  lineOpen = true;
}

void Progress::endLine() {
  if (lineOpen)
    std::printf("\n");
  lineOpen = false;
}

} // namespace sluice
