// The measurements of a completion, for the cost model.
//
// Samples wait in Flow::samples for the learn stage at the end of the Tick. One that finds the list
// full is dropped, and a policy whose runs teach nothing (PolicyProperties::learns) leaves none.
//
// Sequence, for each completion: SampleLaunch while the part is still in the tables, SampleTask
// once its task's work is accounted. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_LEARN_SAMPLES_H_
#define GPUSHARE_SRC_CORE_FLOW_LEARN_SAMPLES_H_

#include <cstdint>

#include "src/core/state/flow.h"

namespace gpushare::core {

inline constexpr int64_t kNotEvicted = -1;

// A launch has ended: its eviction, its longest segment, the fused run that it completes, or its
// speed beside another kernel's workers.
// `eviction_ns`: how long its eviction took, or kNotEvicted.
void SampleLaunch(Flow& flow, const Task& task, const Part& part,
                  const DeviceCompletion& completion, int64_t eviction_ns);

// All block tasks of the task have ended, the last ones in `part`. Returns whether it says how long
// a BE task takes by itself.
bool SampleTask(Flow& flow, const Task& task, const Part& part, const DeviceCompletion& completion);

// A query has ended.
void SampleQuery(Flow& flow, const QueryState& query);

// A query of a busy period that began with an eviction has ended.
void SampleDelay(Flow& flow, const EvictionDelay& delay);

// Whether the task ran in one launch on the whole device, with nothing beside it.
bool RanAlone(const Task& task);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_LEARN_SAMPLES_H_
