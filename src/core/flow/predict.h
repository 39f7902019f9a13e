// Stage 3, predict: durations with error bars, eviction latencies, and what pairs do to each other.
//
// Every admitted task gets its prediction once; the pair table (LC app x BE kernel x split) is
// rebuilt only when an app, a kernel or the model changed. Thread: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_PREDICT_H_
#define GPUSHARE_SRC_CORE_FLOW_PREDICT_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

void Predict(Flow& flow);

// Prediction of one task, counted in its query and its app.
void PredictTask(Flow& flow, Task& task);

TaskFeatures FeaturesOf(const Task& task);

// The same for what is left of it.
Prediction RemainingOf(const Task& task);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_PREDICT_H_
