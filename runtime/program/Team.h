// SPDX-License-Identifier: Apache-2.0
// This process among the ranks that train together: what it writes, what all of them must have in common, and how an
// error of one ends all. Rank 0 leads: it alone prints, writes and keeps checkpoints.
#pragma once

#include "runtime/Program.h"
#include "runtime/program/Arguments.h"

#include <string>
#include <utility>
#include <vector>

namespace sluice {

/// Other ranks have failed, and said so.
struct OthersFailed {
  int status;
};

class Team {
public:
  /// `name`: of the program, for messages. Throws UsageError where the processes cannot be joined.
  Team(const Entry &entry, std::string name);
  Ranks *ranks() const { return joined.get(); }
  bool leads() const { return !joined || joined->rank() == 0; }

  /// Takes from the arguments what the leader alone does, and gives this rank files of its own for what it offloads.
  /// Throws UsageError for what several ranks cannot do.
  void adapt(Arguments &arguments, const Program &program);
  /// This rank and the number of them, in what steps read.
  void number(StepState &state) const;

  /// Compares program, flags, processor, data and where the run starts with those of the other ranks: once, before
  /// anything is allocated, by all ranks, of which some may have failed instead. Throws OthersFailed, once the leader
  /// has said which rank failed or what differs. From then on a rank that is lost ends this process with exit status 6.
  void agree(const std::string &data, int64_t step);
  /// An error ends this rank: tells the others, and prints it. Returns the exit status.
  int fail(int status, const std::string &message);
  /// All ranks have done what they had to.
  void finish();

private:
  void print(const std::string &message) const;
  void compare(const std::vector<std::string> &said) const;
  int report(const std::vector<std::string> &said) const;

  std::unique_ptr<Ranks> joined;
  const std::string name;
  std::string flags; ///< as they were given
  bool agreed = false;
};

} // namespace sluice
