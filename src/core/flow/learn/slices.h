// Part of the learn stage: what slices of two kernels do beside each other (Kernelet).
//
// A table of co-schedules has the speeds of steady workers. A slice also has a gap before it, a
// ramp and a tail, and the time from the end of a slice to the end of the next one has all of them.
// So a slice is a sample of its side of their option (SlicedPair) if it waited on its lane for the
// one before it, and if slices of one other kernel ran beside it at its end and at the end of the
// one before. What ran between these two ends is not compared. The kernel's duration alone must be
// known from runs: against a guess the sample would have the error of the guess. Other slices teach
// nothing.
//
// Threads: the one that runs Tick. Nothing allocates.

#ifndef GPUSHARE_SRC_CORE_FLOW_LEARN_SLICES_H_
#define GPUSHARE_SRC_CORE_FLOW_LEARN_SLICES_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Of a launch that has ended, before its part is dropped. Other forms than slices are ignored.
void LearnSlice(Flow& flow, Task& task, const Part& part, const DeviceCompletion& completion);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_LEARN_SLICES_H_
