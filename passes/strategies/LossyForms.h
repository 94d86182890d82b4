// SPDX-License-Identifier: Apache-2.0
// Rate as a decision: which lossy form each tensor gets, so that enough bytes are freed in little time and the errors
// of all together stay within a budget. What compression papers leave to one codec and one rate for all (ZFP at a fixed
// rate in FreeLunch, fp16 or 8 bits in others) becomes a choice per tensor.
#pragma once

#include "passes/planner/Plan.h"
#include "passes/planner/Recomputation.h"
#include "passes/strategies/Registry.h"

#include <map>
#include <set>

namespace sluice::planner {

/// Goals for packing in device memory. Copies get what it leaves of the error budget.
struct FormWish {
  double freed = 0;      ///< of the bytes that packing every candidate as tightly as can be would free
  double errorShare = 1; ///< of the square of the error budget that packing may take
  int from = 0;          ///< only tensors born at this op or later
  /// Seconds of compute that a second of the link is worth. Codecs of copies take both: where the link is what the step
  /// waits for, bytes count, else what packing costs.
  double link = 1;
  Codec::Kind only = Codec::None; ///< the codec whose forms are all that may be used; None: any
  /// Buffers whose form in device memory is given, None to keep them as they are, and those whose copies' codec is.
  std::map<int, Codec> pinned = {}, copied = {};
};

/// Lossy forms of single buffers of a problem with an error budget.
class LossyForms {
public:
  /// `usable`: the codecs that may be used at all. The problem must outlive this.
  LossyForms(const Problem &problem, const std::vector<Accesses> &accesses, Abilities usable);

  /// Marks kept buffers as compressed. Of all ways to free as much as is wished for within the error, one with little
  /// time of the codec stream: each buffer takes the form, or none, that is worth most at a price of bytes and a price
  /// of squared error, and the prices are found by bisection (the multiple-choice knapsack's Lagrangian, whose gap is
  /// one buffer's form at most). Where so much cannot be freed, as much as can be.
  void pack(const FormWish &wish, Plan &plan) const;

  /// Gives copies of offloaded buffers codecs, or none, so that they take little of the link and of compute, within
  /// what is left of the error budget: zvc where its measured or expected zeros make a copy shorter, or one of the
  /// lossy forms, by a price of squared error as pack() does.
  void packCopies(const FormWish &wish, Plan &plan) const;

  /// Wishes to begin a search with: little to all, within all of the error budget or a part of it, of tensors born from
  /// each of these ops on; and some for copies alone, which come first.
  static std::vector<FormWish> wishes(const std::set<int> &births);
  /// The same wish with somewhat more and less to be freed, of the error budget, or worth of the link.
  static std::vector<FormWish> around(const FormWish &wish, double step);
  /// The same wish with each of its forms, and none, given to a buffer: in device memory, and of its copies.
  std::vector<FormWish> withOtherForms(const FormWish &wish, int buffer) const;
  /// Buffers that have forms, the largest first.
  std::vector<int> packable() const;

private:
  /// What a buffer's form frees, costs and spoils.
  struct Form {
    Codec codec;
    double freed, seconds, squared; ///< squared: error
  };
  /// What bytes and errors are worth, by which forms of unlike kinds are compared:
  struct Prices {
    double bytes, squared; ///< seconds for one
  };
  struct Totals {
    double freed = 0, seconds = 0, squared = 0;
  };
  /// A codec of copies, or none: what both cost.
  struct CopyForm {
    Codec codec;
    double link, compute, squared; ///< seconds of each; squared error
  };

  void addCopies(int buffer);

  std::vector<int> candidates(const FormWish &wish, const Plan &plan) const;
  const Form *best(int buffer, const FormWish &wish, Prices prices) const;
  Totals totals(const std::vector<int> &buffers, const FormWish &wish, Prices prices) const;
  Prices pricesFor(const std::vector<int> &buffers, const FormWish &wish, double freed, double squared) const;
  double left(const Plan &plan, double share) const;
  const CopyForm &bestCopy(int buffer, const FormWish &wish, const Plan &plan, double price) const;

  const Problem &problem;
  const std::vector<Accesses> &accesses;
  const Abilities usable;
  std::vector<std::vector<Form>> forms;      ///< by buffer
  std::vector<std::vector<CopyForm>> copies; ///< by buffer; the first one is exact
};

/// The faster plan; without any the one that fits into less.
Answer faster(const Problem &problem, Answer one, Answer other);

} // namespace sluice::planner
