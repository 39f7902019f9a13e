// Counts the steps of the analyses of one kernel, so that no text makes them slow.
//
// Where in the flow: below the analyses. One that runs out assumes the worst and stays right.

#ifndef GPUSHARE_SRC_PTX_BASE_STEP_BUDGET_H_
#define GPUSHARE_SRC_PTX_BASE_STEP_BUDGET_H_

#include <cstdint>

#include "src/ptx/base/limits.h"

namespace gpushare::ptx {

class StepBudget {
 public:
  explicit StepBudget(uint64_t steps = kAnalysisStepsMax) : left_(steps) {}

  // False once the steps are used up, and from then on.
  bool Take(uint64_t steps) {
    if (left_ < steps) {
      left_ = 0;
      return false;
    }
    left_ -= steps;
    return true;
  }
  bool exhausted() const { return left_ == 0; }

 private:
  uint64_t left_;
};

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_BASE_STEP_BUDGET_H_
