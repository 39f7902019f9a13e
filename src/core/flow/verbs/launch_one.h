// Stage 5, launch: one task by itself, and the steps that it shares with a fused launch.
//
// A launch takes what it needs (a lane, an identifier, a counter), passes the gate, is handed to
// the device and enters the tables. What is missing makes it wait for the next plan, and nothing of
// it has happened. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_VERBS_LAUNCH_ONE_H_
#define GPUSHARE_SRC_CORE_FLOW_VERBS_LAUNCH_ONE_H_

#include "src/core/flow/launch.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

// Adds a part of the task to the device. False: the task stays where it was, or the device refused
// it and it has failed.
bool LaunchOne(Flow& flow, Task& task, const PlannedLaunch& planned);

// The lane that the plan asks for, or that the queue's order prescribes; kNoLane: not now.
LaneIndex PickLane(const Flow& flow, const Task& task, const PlannedLaunch& planned);

// Whether the task has its claim counter, a new one if need be.
bool HasCounter(Flow& flow, Task& task);

// Workers to ask for, and how many the ledger is charged: an ordinary grid fills what it can.
void SizePart(const Flow& flow, const Task& task, const PlannedLaunch& planned, Part& part);

// The LC task is inside the gate from here on, and what may not stay beside it is told to leave.
void EnterGate(Flow& flow, Task& task, PlaceIndex place);

// The device has accepted the part: from the queue to the tables.
void TakeOff(Flow& flow, Task& task, const Part& part, Reason reason);

// Into the event log.
void EmitLaunched(const Flow& flow, const Task& task, const Part& part, Reason reason,
                  EventType type);
void Hold(Flow& flow, Task& task, const PlannedHold& hold);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_LAUNCH_ONE_H_
