// Trials: a split that nobody measured beside a BE kernel is used to measure it.
//
// A pair that nobody measured has a pessimistic speed. Where a trial may be made, a split that by
// the hoped speeds is better than the best arrangement by kGainMin is used instead. BE stays on
// its side: a sample needs the neighbour from the query's start. Threads: the planner's.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CANDIDATES_TRIAL_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CANDIDATES_TRIAL_H_

#include <cstdint>

#include "src/core/policies/adaptive/arrangement/arrangement.h"
#include "src/core/policies/adaptive/arrangement/question.h"
#include "src/core/policies/adaptive/arrangement/value.h"

namespace gpushare::core {

// The split to try instead of an arrangement of the value `known`; kNoSplit: none.
int32_t TrialSplit(const Question& question, SplitValues& values, double known);

// The arrangement of a trial on this split.
void AnswerTrial(const Question& question, SplitValues& values, int32_t split,
                 Arrangement& arrangement);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CANDIDATES_TRIAL_H_
