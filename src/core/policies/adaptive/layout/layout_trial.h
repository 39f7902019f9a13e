// Trials: a split that nobody measured beside a BE kernel is used to measure it.
//
// A pair that nobody measured has a pessimistic speed. Where a trial may be made, a split that by
// the hoped speeds is better than the best layout by kTrialGain is used instead. BE stays on its
// side: a sample needs the neighbour from the query's start. Threads: the planner's.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_LAYOUT_LAYOUT_TRIAL_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_LAYOUT_LAYOUT_TRIAL_H_

#include <cstdint>

#include "src/core/policies/adaptive/layout/layout.h"
#include "src/core/policies/adaptive/layout/layout_question.h"
#include "src/core/policies/adaptive/layout/layout_value.h"

namespace gpushare::core {

// The split to try instead of a layout of the value `known`; kWholeLayout: none.
int32_t TrialSplit(const LayoutQuestion& question, const LayoutEvaluation& evaluation,
                   double known);

// The layout of a trial on this split.
void AnswerTrial(const LayoutQuestion& question, const LayoutEvaluation& evaluation, int32_t split,
                 Layout& layout);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_LAYOUT_LAYOUT_TRIAL_H_
