// The values of the splits, kept from one question to the next.
//
// A split's value is a sum over the BE kernels. A kernel's part depends on the LC apps, on the pair
// table and on its own term, not on the other kernels. Most new questions differ in a kernel or
// two, so only the parts of these are computed. Or the load of an LC app has crossed a step: then
// every part changes, but not the terms that it is made of. Invariant: a value equals
// Evaluation::SplitValue() to the last bit. Allocates at construction only. Threads: the
// planner's.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_SPLIT_VALUES_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_SPLIT_VALUES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/core/base/limits.h"
#include "src/core/base/paged_array.h"
#include "src/core/policies/adaptive/arrangement/question.h"
#include "src/core/policies/adaptive/arrangement/value.h"

namespace gpushare::core {

class SplitValues {
 public:
  using Values = std::array<double, kMaxSplits>;

  SplitValues() : parts_(kMaxPairKernels), loads_(size_t{kMaxPairKernels} * kMaxApps) {}

  // For Mechanism::kBest and Speeds::kPlanned. `evaluation` is of `question`.
  void Update(const Question& question, const Evaluation& evaluation);
  // Whether the table of the last Update has a pair that nobody measured.
  bool any_unknown() const { return any_unknown_; }
  // Of the question of the last Update, by split, from its first split on.
  Values All(const Question& question, const Evaluation& evaluation) const;
  // The sides of each BE kernel of the question on the split.
  void FillSides(const Question& question, const Evaluation& evaluation,
                 Arrangement& arrangement) const;

 private:
  struct Part {
    bool known = false;      // `splits`
    bool has_terms = false;  // `terms`, for `term`, and the row of `loads_`
    BeTerm term;
    KernelTerms terms;
    PlannedSplits splits;
  };
  // Which cached parts are valid for a question.
  enum class Kept : uint8_t { kNothing, kTerms, kAll };

  Kept KeptFor(const Question& question) const;
  void UpdatePart(const Evaluation& evaluation, const BeTerm& term, Part& part);

  std::vector<Part> parts_;  // by kernel index
  // By kernel index, and LC app of the question.
  PagedArray<AppLoads> loads_;
  bool any_unknown_ = true;
  // What all parts were computed for.
  uint64_t pairs_version_ = 0;
  double load_margin_ = 0;
  int32_t splits_ = 0;
  int32_t first_split_ = 0;
  int32_t lc_count_ = -1;
  std::array<LcTerm, kMaxApps> lc_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_SPLIT_VALUES_H_
