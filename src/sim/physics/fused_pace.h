// How fast the two parts of a fused kernel run, from its measured points or its registration.
//
// A fused kernel's duration over its TC part's follows two lines that meet (Tacker VI). Left of the
// meeting point the CD part ends first and the TC part goes on alone; right of it the TC part ends
// first. So two paces together and two alone give both lines. Pure.

#ifndef GPUSHARE_SRC_SIM_PHYSICS_FUSED_PACE_H_
#define GPUSHARE_SRC_SIM_PHYSICS_FUSED_PACE_H_

#include "src/core/seams/kernel.h"

namespace gpushare::sim {

// Durations of a part, over its duration alone in its ordinary form.
struct PartPace {
  double together = 1;  // while both parts of a fused block work
  double alone = 1;     // in a fused block whose other part has ended
};

struct FusedPace {
  PartPace tensor;
  PartPace cuda;
};

// With four points or more, the lines that fit them best, by least squares of relative errors. With
// fewer, the paper's lines through the opportune ratios.
FusedPace PaceOf(const core::FusedKernelDesc& fused);

}  // namespace gpushare::sim

#endif  // GPUSHARE_SRC_SIM_PHYSICS_FUSED_PACE_H_
