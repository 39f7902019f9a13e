// Judges what runs of held-out pairs teach the scheduler's co-schedules.
//
// Threads: any.

#ifndef GPUSHARE_SRC_MODELS_EVALUATION_JUDGE_LEARNED_RUNS_H_
#define GPUSHARE_SRC_MODELS_EVALUATION_JUDGE_LEARNED_RUNS_H_

#include <cstdint>
#include <vector>

#include "src/models/co_resident/model.h"
#include "src/models/evaluation/counted_kernels.h"
#include "src/models/evaluation/judged.h"

namespace gpushare::models {

// The runs of which the effect is judged.
inline constexpr size_t kLearnedRuns = 200;

// `state`: a fit to other pairs than those of `rows`. All repeats of a row but the last are runs of
// it, until kLearnedRuns are learned, at the first numbers of workers of each kernel and neighbour.
// Judged are the last repeats of these rows, and the rows of the same pairs with other workers,
// before and after.
void JudgeLearnedRuns(const co_resident::State& state, const std::vector<SharedSm>& rows,
                      int32_t sm_count, std::vector<Judged>& out);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_EVALUATION_JUDGE_LEARNED_RUNS_H_
