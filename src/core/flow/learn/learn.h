// Stage 7, learn: hands measured times, with what ran beside, to the cost model.
//
// The complete stage takes the samples. The model decides what each sample trains
// (src/models/online/online_model.cc): only samples without co-residents train durations. Threads:
// the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_LEARN_LEARN_H_
#define GPUSHARE_SRC_CORE_FLOW_LEARN_LEARN_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

void Learn(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_LEARN_LEARN_H_
