// The parts of each BE kernel in the values of the splits (split_values.h).

#include "src/core/policies/adaptive/layout/split_values.h"

#include <algorithm>

namespace gpushare::core {

bool SplitValues::DependsOnTheSame(const LayoutQuestion& question) const {
  return pairs_version_ == question.pairs_version && load_margin_ == question.load_margin &&
         splits_ == question.splits && first_split_ == question.first_split &&
         lc_count_ == question.lc_count &&
         std::equal(lc_.begin(), lc_.begin() + lc_count_, question.lc.begin());
}

void SplitValues::Update(const LayoutQuestion& question, const LayoutEvaluation& evaluation) {
  if (!DependsOnTheSame(question)) {
    for (Part& part : parts_) part.known = false;
    if (lc_count_ < 0 || pairs_version_ != question.pairs_version) {
      any_unknown_ = evaluation.HasUnknownPair();
    }
    pairs_version_ = question.pairs_version;
    load_margin_ = question.load_margin;
    splits_ = question.splits;
    first_split_ = question.first_split;
    lc_count_ = question.lc_count;
    std::copy_n(question.lc.begin(), lc_count_, lc_.begin());
  }
  for (int32_t b = 0; b < question.be_count; ++b) {
    const BeTerm& term = question.be[static_cast<size_t>(b)];
    if (term.kernel >= kMaxPairKernels) continue;
    Part& part = parts_[static_cast<size_t>(term.kernel)];
    if (part.known && part.term == term) continue;
    part.known = true;
    part.term = term;
    evaluation.PlanSplits(term, part.splits.data());
  }
}

double SplitValues::Of(const LayoutQuestion& question, const LayoutEvaluation& evaluation,
                       int32_t split) const {
  double value = 0;
  for (int32_t b = 0; b < question.be_count; ++b) {
    const BeTerm& term = question.be[static_cast<size_t>(b)];
    value +=
        term.weight *
        (term.kernel < kMaxPairKernels
             ? parts_[static_cast<size_t>(term.kernel)].splits[static_cast<size_t>(split)].value
             : evaluation.PlannedValue(term, split));
  }
  return value / evaluation.WeightSum();
}

void SplitValues::FillSides(const LayoutQuestion& question, const LayoutEvaluation& evaluation,
                            Layout& layout) const {
  for (int32_t b = 0; b < question.be_count; ++b) {
    const int32_t kernel = question.be[static_cast<size_t>(b)].kernel;
    if (kernel >= kMaxPairKernels) {
      evaluation.SplitValue(layout.split, Mechanism::kBest, Speeds::kPlanned, &layout);
      return;
    }
    layout.sides[static_cast<size_t>(kernel)] =
        parts_[static_cast<size_t>(kernel)].splits[static_cast<size_t>(layout.split)].sides;
  }
}

}  // namespace gpushare::core
