// The parts of each BE kernel in the values of the splits (split_values.h).

#include "src/core/policies/adaptive/arrangement/split_values.h"

#include <algorithm>

namespace gpushare::core {
namespace {

bool IsSameButLoad(const LcTerm& a, const LcTerm& b) {
  LcTerm with_load = a;
  with_load.load = b.load;
  return with_load == b;
}

}  // namespace

SplitValues::Kept SplitValues::KeptFor(const Question& question) const {
  if (pairs_version_ != question.pairs_version || splits_ != question.splits ||
      lc_count_ != question.lc_count ||
      !std::equal(lc_.begin(), lc_.begin() + lc_count_, question.lc.begin(), IsSameButLoad)) {
    return Kept::kNothing;
  }
  const bool same = load_margin_ == question.load_margin && first_split_ == question.first_split &&
                    std::equal(lc_.begin(), lc_.begin() + lc_count_, question.lc.begin());
  return same ? Kept::kAll : Kept::kTerms;
}

void SplitValues::Update(const Question& question, const Evaluation& evaluation) {
  const Kept kept = KeptFor(question);
  if (kept != Kept::kAll) {
    for (Part& part : parts_) {
      part.known = false;
      if (kept == Kept::kNothing) part.has_terms = false;
    }
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
    UpdatePart(evaluation, term, part);
  }
}

void SplitValues::UpdatePart(const Evaluation& evaluation, const BeTerm& term, Part& part) {
  const bool same_blocking =
      part.term.fits == term.fits && part.term.blocking_ns == term.blocking_ns;
  part.known = true;
  part.term = term;
  if (evaluation.targets()) return evaluation.PlanSplits(term, part.splits);
  AppLoads* const loads = &loads_[static_cast<size_t>(term.kernel * lc_count_)];
  evaluation.UpdateLoads(term.kernel, part.has_terms, loads);
  if (!part.has_terms || !same_blocking) part.terms = evaluation.TermsOf(term);
  part.has_terms = true;
  evaluation.PlanSplits(term, part.terms, loads, part.splits);
}

SplitValues::Values SplitValues::All(const Question& question, const Evaluation& evaluation) const {
  Values values{};
  for (int32_t b = 0; b < question.be_count; ++b) {
    const BeTerm& term = question.be[static_cast<size_t>(b)];
    if (term.kernel < kMaxPairKernels) {
      const PlannedSplits& planned = parts_[static_cast<size_t>(term.kernel)].splits;
      for (size_t s = 0; s < values.size(); ++s) values[s] += term.weight * planned.values[s];
      continue;
    }
    for (int32_t split = question.first_split; split < question.splits; ++split) {
      values[static_cast<size_t>(split)] += term.weight * evaluation.PlannedValue(term, split);
    }
  }
  for (double& value : values) value /= evaluation.WeightSum();
  return values;
}

void SplitValues::FillSides(const Question& question, const Evaluation& evaluation,
                            Arrangement& arrangement) const {
  for (int32_t b = 0; b < question.be_count; ++b) {
    const int32_t kernel = question.be[static_cast<size_t>(b)].kernel;
    if (kernel >= kMaxPairKernels) {
      evaluation.SplitValue(arrangement.split, Mechanism::kBest, Speeds::kPlanned, &arrangement);
      return;
    }
    arrangement.sides[static_cast<size_t>(kernel)] =
        parts_[static_cast<size_t>(kernel)].splits.sides[static_cast<size_t>(arrangement.split)];
  }
}

}  // namespace gpushare::core
