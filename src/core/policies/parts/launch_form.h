// The form in which a task is launched, by its kind.
//
// Used by every policy. Pure functions; any thread.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PARTS_LAUNCH_FORM_H_
#define GPUSHARE_SRC_CORE_POLICIES_PARTS_LAUNCH_FORM_H_

#include "src/core/base/types.h"
#include "src/core/seams/ordinary_form.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// BE work for the SMs. Copies are planned by be_copies.h.
inline bool IsBeCompute(const HeadView& task) {
  return task.app_class == AppClass::kBestEffort && task.kind != TaskKind::kMemcpy;
}

// Whether this task can be evicted while it runs.
inline bool CanBeEvicted(const Snapshot& snapshot, const HeadView& task) {
  return snapshot.eviction_available && task.evictable;
}

// A graph in segments: one launch of it runs at a time.
inline bool RunsInSegments(const Snapshot& snapshot, const HeadView& task) {
  return CanBeEvicted(snapshot, task) && task.kind == TaskKind::kGraph;
}

// Workers or segments where they can be evicted, else as CUDA would.
inline Form EvictableForm(const Snapshot& snapshot, const HeadView& task) {
  return CanBeEvicted(snapshot, task) ? EvictableForm(task.kind) : OrdinaryForm(task.kind);
}

inline PlannedLaunch MakeLaunch(TicketId task, Form form, PlaceIndex place, LaneClass lane_class,
                                Reason reason) {
  PlannedLaunch launch;
  launch.task = task;
  launch.form = form;
  launch.place = place;
  launch.lane_class = lane_class;
  launch.reason = reason;
  return launch;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PARTS_LAUNCH_FORM_H_
