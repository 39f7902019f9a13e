// Part of the learn stage: what slices of two kernels do beside each other (Kernelet).
//
// A table of co-schedules has the speeds of steady workers. A slice also has a gap before it, a
// ramp and a tail, and the time from the end of a slice to the end of the next one has all of them.
// So a slice that waited on its lane for the one before it, with slices of one other kernel beside
// it all along, is a sample of its side of their option (SlicedPair). Other slices teach nothing.
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
