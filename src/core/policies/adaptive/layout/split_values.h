// The values of the splits, kept from one question to the next.
//
// A split's value is a sum over the BE kernels. A kernel's part depends on the LC apps, on the pair
// table and on its own term, not on the other kernels. Most new questions differ in a kernel or
// two, so only the parts of these are computed. Invariant: a value equals
// LayoutEvaluation::SplitValue() to the last bit. Allocates at construction only. Threads: the
// planner's.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_LAYOUT_SPLIT_VALUES_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_LAYOUT_SPLIT_VALUES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "src/core/base/limits.h"
#include "src/core/policies/adaptive/layout/layout_question.h"
#include "src/core/policies/adaptive/layout/layout_value.h"

namespace gpushare::core {

class SplitValues {
 public:
  SplitValues() : parts_(kMaxPairKernels) {}

  // For Mechanism::kBest and Speeds::kPlanned. `evaluation` is of `question`.
  void Update(const LayoutQuestion& question, const LayoutEvaluation& evaluation);
  // Whether the table of the last Update has a pair that nobody measured.
  bool any_unknown() const { return any_unknown_; }
  // Of the question of the last Update, from its first split on.
  double Of(const LayoutQuestion& question, const LayoutEvaluation& evaluation,
            int32_t split) const;
  // The sides of each BE kernel of the question on the split.
  void FillSides(const LayoutQuestion& question, const LayoutEvaluation& evaluation,
                 Layout& layout) const;

 private:
  struct Part {
    bool known = false;
    BeTerm term;
    std::array<PlannedSplit, kMaxSplits> splits;
  };

  bool DependsOnTheSame(const LayoutQuestion& question) const;

  std::vector<Part> parts_;  // by kernel index
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

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_LAYOUT_SPLIT_VALUES_H_
