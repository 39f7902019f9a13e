// Part of stage 4, plan: the heads of the snapshot, in order, and the views of tasks.
//
//   ViewHeads(flow, tail_rate);              // fills PlanBuffers::heads
//   ViewBeTask(flow, task, tail_rate, view); // of a task that runs
//
// Most plans change one or two heads. So a queue keeps the view of its head from one plan to the
// next, and a plan makes only those views anew that are not current. Invariant: a view that is
// current equals a new one, except that its wait to run alone may be over (CheckHeadViews).
// What a kept view depends on changes in three ways:
//
// - the first or second task of the queue is another one: backlog.cc
// - the rows of apps move: ForgetHeadViews
// - the wait to run alone ends: each plan looks
//
// Views of LC work and of graphs are not kept: they depend on the queue's window, on the tail of
// latencies and on measured gains. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_PLANNING_HEAD_VIEWS_H_
#define GPUSHARE_SRC_CORE_FLOW_PLANNING_HEAD_VIEWS_H_

#include "absl/status/status.h"
#include "src/core/seams/snapshot.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

// `tail_rate`: the steepest tail of the LC apps that limit BE work; 0: unknown.
void ViewHeads(Flow& flow, double tail_rate);
void ViewBeTask(const Flow& flow, Task& task, double tail_rate, HeadView& view);

// No view is current any more.
void ForgetHeadViews(Flow& flow);

// For tests: an error for a view that is current and differs from one that is made now.
absl::Status CheckHeadViews(const Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_PLANNING_HEAD_VIEWS_H_
