// Stage 3, predict: durations with error bars, eviction latencies, and the speeds of pairs.
//
// Every admitted task gets its prediction once (verbs/predict_task.h). The pair table (LC app x BE
// kernel x split) is rebuilt only when an app, a kernel or the model changed. Threads: the one that
// runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_PREDICT_H_
#define GPUSHARE_SRC_CORE_FLOW_PREDICT_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

void Predict(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_PREDICT_H_
