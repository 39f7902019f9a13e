// Stage 2, admit: from posted words to queues and active queries.
//
// A task enters its queue, or is dropped (late, and its app drops late queries), cancelled or
// refused (shutdown, lost device). A task that its submitter launched is adopted as running.
// Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_ADMIT_H_
#define GPUSHARE_SRC_CORE_FLOW_ADMIT_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

void Admit(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_ADMIT_H_
