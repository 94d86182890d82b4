// SPDX-License-Identifier: Apache-2.0
// Rate as a decision: which lossy form each tensor gets, so that enough bytes are freed in little time and the errors
// of all together stay within a budget. What compression papers leave to one codec and one rate for all (ZFP at a fixed
// rate in FreeLunch, fp16 or 8 bits in others) becomes a choice per tensor.
#pragma once

#include "passes/planner/Plan.h"
#include "passes/planner/Recomputation.h"
#include "passes/strategies/Registry.h"

#include <functional>
#include <map>
#include <set>

namespace sluice::planner {

/// What packing in device memory shall bring. Copies get what it leaves of the error budget.
struct FormWish {
  double freed = 0;      ///< of the bytes that packing every candidate as tightly as can be would free
  double errorShare = 1; ///< of the square of the error budget that packing may take
  int from = 0;          ///< only tensors born at this op or later
  /// Buffers whose form is given, "" for none.
  std::map<int, std::string> pinned = {};
};

/// Lossy forms of single buffers of a problem with an error budget.
class LossyForms {
public:
  /// `can`: whether a codec may be used at all. The problem must outlive this.
  LossyForms(const Problem &problem, const std::vector<Accesses> &accesses,
             const std::function<bool(const std::string &)> &can);

  /// Marks kept buffers as compressed. Of all ways to free as much as is wished for within the error, one with little
  /// time of the codec stream: each buffer takes the form, or none, that is worth most at a price of bytes and a price
  /// of squared error, and the prices are found by bisection (the multiple-choice knapsack's Lagrangian, whose gap is
  /// one buffer's form at most). Where so much cannot be freed, as much as can be.
  void pack(const FormWish &wish, Plan &plan) const;

  /// Gives copies of offloaded buffers the codec that makes them short: zvc where its measured or expected zeros do,
  /// and fp16 where that is shorter, those first that save most seconds a squared error, within what is left of the
  /// budget.
  void packCopies(Plan &plan) const;

  /// Wishes to begin a search with: little to all, within all of the error budget or a part of it, of tensors born from
  /// each of these ops on; and one for copies alone, which comes first.
  static std::vector<FormWish> wishes(const std::set<int> &births);
  /// The same wish with somewhat more and less to be freed, or of the error budget.
  static std::vector<FormWish> around(const FormWish &wish, double step);
  /// The same wish with each of its forms, and none, given to a buffer.
  std::vector<FormWish> withOtherForms(const FormWish &wish, int buffer) const;
  /// Buffers that have forms, the largest first.
  std::vector<int> packable() const;

private:
  struct Form {
    std::string codec;
    double freed, seconds, squared; ///< squared: error
  };
  struct Prices {
    double bytes, squared; ///< seconds for one
  };
  struct Totals {
    double freed = 0, seconds = 0, squared = 0;
  };

  std::vector<int> candidates(const FormWish &wish, const Plan &plan) const;
  const Form *best(int buffer, Prices prices) const;
  Totals totals(const std::vector<int> &buffers, Prices prices) const;
  Prices pricesFor(const std::vector<int> &buffers, double freed, double squared) const;
  double left(const Plan &plan, double share) const;

  const Problem &problem;
  const std::vector<Accesses> &accesses;
  const std::function<bool(const std::string &)> can;
  std::vector<std::vector<Form>> forms; ///< by buffer
};

/// The strategy's plan; of a problem with an error budget the faster one of that and its plan of exact actions alone,
/// so that no codec that is allowed makes a plan slower.
Answer lossyOrExact(const Problem &problem, Bytes memory, const Options &options, PlanFunction strategy);

} // namespace sluice::planner
