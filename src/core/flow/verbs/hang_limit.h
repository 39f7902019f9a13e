// How long a launch may show no progress before it counts as hung.
//
// The larger of hang_floor_ns and hang_factor x T. T is the predicted time of the launch as it was
// made: on its place, with its workers. Of a launch whose claims the device reads, T is the
// predicted time of one of its block tasks, because each claim shows progress (hangs.cc).
// Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_VERBS_HANG_LIMIT_H_
#define GPUSHARE_SRC_CORE_FLOW_VERBS_HANG_LIMIT_H_

#include <cstdint>

#include "src/core/state/flow.h"

namespace gpushare::core {

// Whether the device can say how far this launch has come.
bool ShowsClaims(const Flow& flow, const Part& part);

int64_t HangLimitNs(const Flow& flow, const Task& task, const Part& part);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_HANG_LIMIT_H_
