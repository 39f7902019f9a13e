// The verb "predict" of one task: its duration, its eviction latency, its row in the pair table.
//
// The predict stage calls it for admitted tasks, and adoption for a task that its submitter
// launched. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_VERBS_PREDICT_TASK_H_
#define GPUSHARE_SRC_CORE_FLOW_VERBS_PREDICT_TASK_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Predicts the task and counts the prediction in its query and its app.
void PredictTask(Flow& flow, Task& task);

// The task's prediction, scaled to the block tasks that are left.
Prediction RemainingOf(const Task& task);

// The task's speed in the place, relative to the whole device, which the prediction is for. 1 where
// nobody knows.
double SpeedOn(const Flow& flow, const Task& task, PlaceIndex place);

// The speed of a part of the task, relative to one that has all of its SMs' room (seams/width.h).
// Beside other work on these SMs, and where nobody knows, its share of that room.
double RoomSpeed(const Flow& flow, const Task& task, const Part& part);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_PREDICT_TASK_H_
