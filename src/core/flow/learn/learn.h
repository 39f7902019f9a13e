// Stage 7, learn: what queries, tasks and launches show goes to the cost model and to the evidence.
//
// Other stages and verbs say what happened as it happens, because the next plan reads the evidence:
//
//   LearnApp, LearnAppUpdated   an app was created, or states another promise
//   LearnYields                 a plan: whether it yields to LC apps of higher priority
//   LearnQueryBegan       a query is active; flow/verbs/queries/queries
//   LearnPrediction       a task has a duration; flow/verbs/predict_task
//   LearnRegionBegan, LearnRegionEnded   a BE region; admit, flow/verbs/finish
//   LearnPartBegan        the device accepted a launch; flow/verbs/running
//   LearnPartEnded        it has ended, and its work is accounted; complete
//   LearnQueryTask, LearnQueryEnded   a task of the query, or the query, is complete
//   LearnQueryLeft, LearnQueryReturned   a query counts as no load (flow/verbs/queries/idle), or
//   again ViewEvidence, LearnPlan   before and after the policy's plan Learn                 the
//   stage itself: hands the samples of the Tick to the model
//
// This room alone writes Flow::evidence and App::evidence. The model decides what each sample
// trains (src/models/online/online_model.cc): only samples without co-residents train durations.
// Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_LEARN_LEARN_H_
#define GPUSHARE_SRC_CORE_FLOW_LEARN_LEARN_H_

#include <cstdint>

#include "src/core/state/flow.h"

namespace gpushare::core {

void Learn(Flow& flow);

// The policy is another one: what it teaches, and what is kept for it.
void FollowPolicy(Flow& flow);

void LearnApp(App& app, TimeNs now_ns);
// The app states another promise than `before`.
void LearnAppUpdated(App& app, const Promise& before, TimeNs now_ns);
// `from_ns`: since when it has yielded, where that was not known; kNever: it has not.
void LearnYields(App& app, bool stands_still, TimeNs from_ns, TimeNs now_ns);
// The kernel takes the place of a released one: what was learned of that is forgotten.
void LearnKernelReplaced(Flow& flow, KernelId id);
// `since_ns`: when the device got its first task; now: it has none yet.
void LearnQueryBegan(Flow& flow, QueryState& query, TimeNs since_ns);
void LearnQueryTask(QueryState& query, bool ran_alone);
// The query is no longer in the list. `queries_before`: its app's active ones, itself included.
void LearnQueryEnded(Flow& flow, const QueryState& query, int32_t queries_before);
// The same of one that says nothing of latencies: it is idle, was so, or was abandoned.
void LearnQueryLeft(Flow& flow, const QueryState& query, int32_t queries_before);
// An idle query is in the list again.
void LearnQueryReturned(Flow& flow, const QueryState& query);

void LearnPrediction(Flow& flow, Task& task);

// Whether a BE task that is about to begin is to be measured by itself (evidence/solo_runs.h).
bool AsksForSoloRun(const Flow& flow, const Task& task);

// A BE region has begun, and is complete: whether queries meet work on credit.
void LearnRegionBegan(Flow& flow, Task& task);
void LearnRegionEnded(Flow& flow, Task& task);
// The part is in the tables, and marked with what runs beside it (co_residents.h). `begins`: none
// of its task was on the device.
void LearnPartBegan(Flow& flow, Task& task, Reason reason, bool begins);
// A part in segments leaves the tables.
void LearnSegmentsDropped(Flow& flow, const Task& task, const Part& part);

// What an ended launch did.
struct PartWork {
  int64_t span_ns = 0;  // on the device
  double work_ns = 0;   // what that takes alone, as predicted
};
// `part` is no longer in the tables. Its task is, and is not settled yet.
void LearnPartEnded(Flow& flow, Task& task, const Part& part, const DeviceCompletion& completion,
                    const PartWork& work);
// Parts were dropped without an end, as their lane was given up.
void LearnPartsLost(Flow& flow);

// Fills the serial headrooms of the snapshot's queries, if the policy asks for them
// (evidence/serial_headroom.h). Their headrooms are there.
void ViewSerialHeadrooms(Flow& flow);

// For a plan, whose views of LC apps have what the flow knows of each: ends a trial that is over,
// and fills in what the evidence says.
EvidenceView ViewEvidence(Flow& flow);
// The policy has answered.
void LearnPlan(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_LEARN_LEARN_H_
