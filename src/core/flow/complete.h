// Stage 6, complete: from device completions to finished tickets.
//
// A launch that ends frees its part. A task whose block tasks are all done finishes; an evicted one
// returns to the front of its queue with the rest. Each ticket completes exactly once: a second
// completion of a launch is counted and ignored, and a launch that never completes is timed out
// (hangs.h). Callbacks are queued here and run after Tick, with no lock held. Threads: the one that
// runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_COMPLETE_H_
#define GPUSHARE_SRC_CORE_FLOW_COMPLETE_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Returns whether anything completed.
bool Complete(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_COMPLETE_H_
