// All judges; see judged.h.

#include "src/models/evaluation/judged.h"

namespace gpushare::models {

std::vector<Judged> JudgeModels(const Samples& samples) {
  std::vector<Judged> all;
  JudgeKernels(samples, all);
  JudgeCopies(samples, all);
  JudgeCopyContention(samples, all);
  JudgeQueries(samples, all);
  JudgeLibraryCalls(samples, all);
  JudgeFused(samples, all);
  JudgeNeighbours(samples, all);
  JudgeScaling(samples, all);
  JudgeMarkov(samples, all);
  JudgeMarkovPipes(samples, all);
  JudgeCoResident(samples, all);
  return all;
}

}  // namespace gpushare::models
