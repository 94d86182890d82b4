// SPDX-License-Identifier: Apache-2.0
// What a misspelt word may have meant.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace sluice {

/// How many characters are to be put in, left out, replaced or exchanged with their neighbour to make `b` of `a`, none
/// of them twice (Damerau 1964).
inline size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<std::vector<size_t>> to(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        to[i][j] = i + j;
        continue;
      }
      to[i][j] = std::min({to[i - 1][j] + 1, to[i][j - 1] + 1, to[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        to[i][j] = std::min(to[i][j], to[i - 2][j - 2] + 1);
    }
  return to[a.size()][b.size()];
}

/// What other programs call our flags.
struct Habit {
  const char *theirs, *ours;
};
constexpr Habit habits[] = {{"--learning-rate", "--lr"},
                            {"--batch-size", "--batch"},
                            {"--optim", "--optimizer"},
                            {"--wd", "--weight-decay"},
                            {"--num-workers", "--workers"},
                            {"--num-epochs", "--epochs"},
                            {"--num-train-epochs", "--epochs"},
                            {"--max-steps", "--steps"},
                            {"--scheduler", "--schedule"},
                            {"--lr-scheduler-type", "--schedule"},
                            {"--warmup-steps", "--warmup"},
                            {"--gradient-accumulation-steps", "--accumulate"},
                            {"--max-grad-norm", "--clip-norm"},
                            {"--early-stopping", "--patience"},
                            {"--output-dir", "--checkpoint"},
                            {"--val-split", "--validation-split"},
                            {"--weights", "--init"},
                            {"--pretrained", "--init"},
                            {"--budget", "--memory-budget"},
                            {"--dtype", "--precision"}};

/// Letters and digits alone, small: --batch_size, --batchSize and --batchsize are one name.
inline std::string plainName(const std::string &flag) {
  std::string name;
  for (const char c : flag)
    if (c != '-' && c != '_')
      name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

/// The flag that other programs call so, however they join its words; else the same.
inline std::string withoutHabit(const std::string &flag) {
  const std::string name = plainName(flag);
  for (const Habit &habit : habits)
    if (name == plainName(habit.theirs))
      return habit.ours;
  return flag;
}

/// "; did you mean --epochs?" of the nearest of `known` flags, all with their dashes, where one is near enough to be
/// meant, or other programs call it so; else nothing.
inline std::string didYouMean(const std::string &flag, const std::vector<std::string> &known) {
  constexpr size_t dashes = 2, shortest = 3, longest = 64;
  const std::string meant = withoutHabit(flag);
  if (meant != flag && std::find(known.begin(), known.end(), meant) != known.end())
    return "; did you mean " + meant + "?";
  if (flag.size() < dashes + shortest || flag.size() > longest || flag.compare(0, dashes, "--") != 0)
    return "";
  size_t near = std::max<size_t>(1, (flag.size() - dashes) / 3) + 1;
  std::string found;
  for (const std::string &one : known)
    if (const size_t distance = editDistance(flag, one); distance < near) {
      near = distance;
      found = one;
    }
  return found.empty() ? "" : "; did you mean " + found + "?";
}

} // namespace sluice
