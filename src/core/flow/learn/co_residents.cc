// Which tasks run beside each other. See co_residents.h.

#include "src/core/flow/learn/co_residents.h"

#include "src/core/seams/width.h"

namespace gpushare::core {
namespace {

// Of these is known what they take of an LC kernel.
bool IsPinnedBeCopy(const Task& task) {
  return !IsLc(task) && task.work.kind == TaskKind::kMemcpy && task.work.copy.pinned &&
         LinkUseOf(task.work.copy.direction) != 0;
}

// `other` was there first. What is no pinned BE copy ends a measurement beside copies.
void LinkCoResidents(Task& task, Task& other) {
  if (!IsPinnedBeCopy(other)) task.progress.copies_beside = 0;
  if (!IsPinnedBeCopy(task)) other.progress.copies_beside = 0;
  task.progress.had_co_residents = other.progress.had_co_residents = true;
  if (!task.record.beside) task.record.beside = other.record.kernel;
  if (!other.record.beside) other.record.beside = task.record.kernel;
}

// Directions of the pinned BE copies on the device; 0 where other BE work runs too.
LinkUse CopiesAlone(const Flow& flow) {
  LinkUse copies = 0;
  for (const Task* other : flow.running_be) {
    if (!IsPinnedBeCopy(*other)) return 0;
    copies |= LinkUseOf(other->work.copy.direction);
  }
  return copies;
}

}  // namespace

bool IsNarrow(const Flow& flow, const Task& task, const Part& part) {
  return task.work.kernel != nullptr && SaysWhatFewerWorkersDo(*task.work.kernel) &&
         HasFewerWorkers(*task.work.kernel, part.form, part.workers,
                         flow.lanes.place(part.place).sms, task.work.block_tasks);
}

void RecordCoResidents(Flow& flow, Task& task, Part& part) {
  if (flow.lanes_busy <= 1) return;
  Progress& progress = task.progress;
  const uint64_t own = flow.lanes.place(part.place).overlaps;
  bool one_neighbour = true;
  if (IsLc(task)) progress.copies_beside = CopiesAlone(flow);
  for (Task* other : flow.running_be) {
    if (other == &task) continue;
    for (Part& its : other->progress.parts) {
      if (its.lane == part.lane) continue;
      LinkCoResidents(task, *other);
      part.had_co_residents = true;
      if (!IsLeaving(flow.gate, its)) its.had_co_residents = true;
      one_neighbour =
          one_neighbour && other->record.kernel && task.record.beside == other->record.kernel;
      if ((own >> its.place & 1) != 0) {
        // What fewer workers add to a query says nothing of an eviction of all of them.
        one_neighbour = one_neighbour && !IsNarrow(flow, *other, its);
        progress.beside_overlaps = true;
      } else {
        progress.beside_sms = flow.lanes.place(its.place).sms;
      }
    }
  }
  for (Task* other : flow.running_lc) {
    if (other == &task || other->progress.parts.empty()) continue;
    const LaneIndex its = other->progress.parts[0].lane;
    const bool before_us = its == part.lane || its == part.after_lane;
    if (!before_us) {
      LinkCoResidents(task, *other);
      part.had_co_residents = true;
    }
    // With two causes of delay the sample cannot be attributed; drop it.
    one_neighbour = one_neighbour && before_us && !progress.beside_overlaps;
  }
  if (!one_neighbour) {
    progress.beside_sms = 0;
    progress.beside_overlaps = false;
  }
}

LinkUse CopiesAllAlong(const Flow& flow, const Task& task) {
  if (task.record.beside) return 0;
  LinkUse now = 0;
  for (const CopyDirection direction :
       {CopyDirection::kHostToDevice, CopyDirection::kDeviceToHost}) {
    const CopyState& state = flow.copies[static_cast<size_t>(direction)];
    if (state.be_active > 0) now |= LinkUseOf(direction);
  }
  return now == task.progress.copies_beside ? now : LinkUse{0};
}

WorkersOf CoRunWorkers(const Flow& flow, const Task& task, const Part& part) {
  if (task.work.kind != TaskKind::kKernel || part.form != Form::kWorkers) return {};
  const int32_t sms = flow.device->capabilities().profile.sm_count;
  if (part.place != kWholeDevice || part.workers < sms || part.workers % sms != 0) return {};
  return {task.record.kernel, part.workers / sms};
}

}  // namespace gpushare::core
