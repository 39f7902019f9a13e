// Stage 7, learn: predicted against measured, and what ran beside, into the cost model.
//
// Only samples without co-residents, on the whole device, train solo models; the model decides with
// what it is told. Thread: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_LEARN_H_
#define GPUSHARE_SRC_CORE_FLOW_LEARN_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

void Learn(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_LEARN_H_
