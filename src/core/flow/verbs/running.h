// The verbs "enter running" and "leave running": a launch enters the tables when the device accepts
// it, and leaves them when the device reports it.
//
// Tables: running lists, T_q (of a graph in segments, what an eviction still has to wait for),
// CapSM ledger, busy lanes, hang clock, copies in flight, and which tasks ran beside each other.
// Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_VERBS_RUNNING_H_
#define GPUSHARE_SRC_CORE_FLOW_VERBS_RUNNING_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Sets the part's workers and block tasks: what the plan asks for, at most what the place holds.
void SizePart(const Flow& flow, const Task& task, const PlannedLaunch& planned, Part& part);

// The task's first part also enters the running list of its class. `part` is one of task's parts.
void EnterRunning(Flow& flow, Task& task, Part& part, Reason reason);

// Drops the part at `index`: its lane, launch slot and CapSMs. The task stays in its list.
void DropPart(Flow& flow, Task& task, int index);

// Drops every part.
void DropParts(Flow& flow, Task& task);

// Takes the task out of its running list. Does nothing when it is in none.
void LeaveRunning(Flow& flow, Task& task);

// A task that its submitter launched enters the flow's tables. Does nothing the second time: its
// completion may come before its started-record.
void Adopt(Flow& flow, Task& task);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_RUNNING_H_
