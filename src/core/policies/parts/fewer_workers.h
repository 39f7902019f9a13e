// Fewer workers an SM for a kernel that would leave later than LC work can wait (SMGuard 6.3.1:
// little of the device for kernels with long block tasks).
//
// It gets the most workers whose eviction LC work allows in each idle period, where their speed
// (seams/width.h) is above the share of the idle periods in which it allows that of all workers. It
// gets all of them where that is each one, where no width leaves in time, and where the profile
// does not say how the kernel runs with fewer. Widths that would be allowed in a share of the
// periods only were tried: the prediction is no measurement, and a service of DISB had a p99 of
// 1.067 where its bound is 1.05.
//
// Used by adaptive. Pure; nothing allocates.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PARTS_FEWER_WORKERS_H_
#define GPUSHARE_SRC_CORE_POLICIES_PARTS_FEWER_WORKERS_H_

#include <cstdint>

#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/seams/snapshot.h"
#include "src/core/seams/width.h"

namespace gpushare::core {

// Whether the task may have fewer workers: it has some, and its record says what they do.
inline bool MayHaveFewerWorkers(const Snapshot& snapshot, const HeadView& task) {
  return IsBeCompute(task) && task.kind == TaskKind::kKernel && task.kernel != nullptr &&
         CanBeEvicted(snapshot, task) && task.eviction_known &&
         SaysWhatFewerWorkersDo(*task.kernel);
}

// `share_of`: the share of idle periods that may end with an eviction of so many nanoseconds.
template <class ShareOf>
Width ChooseWidth(const Snapshot& snapshot, const HeadView& task, const ShareOf& share_of) {
  if (!MayHaveFewerWorkers(snapshot, task)) return {};
  const double share_of_all = share_of(task.eviction_ns);
  if (share_of_all >= 1) return {};
  const auto fits = [&](const Width& width) {
    return share_of(EvictionOf(task.eviction_ns, width, snapshot.eviction_write_ns)) >= 1;
  };
  if (!fits(WidthOf(*task.kernel, 1))) return {};  // none leaves sooner
  for (int32_t w = task.kernel->resources.workers_per_sm_max - 1; w > 0; --w) {
    const Width width = WidthOf(*task.kernel, w);
    if (width.speed <= share_of_all) break;  // narrower ones are slower still
    if (fits(width)) return width;
  }
  return {};
}

// Whether another BE part is on SMs of the running part.
inline bool SharesSms(const Snapshot& snapshot, const PartView& part) {
  const uint64_t shared = snapshot.places[static_cast<size_t>(part.place)].overlaps;
  for (const RunningView& running : snapshot.running) {
    if (!IsBeCompute(running.task)) continue;
    for (const PartView& other : running.parts) {
      if (&other == &part || other.place < 0) continue;
      if ((shared & PlaceBit(other.place)) != 0) return true;
    }
  }
  return false;
}

// How many workers the part of a running task has, on some SMs at least. Beside other parts its
// block tasks take as long as with all workers: all, then.
inline Width WidthOfPart(const Snapshot& snapshot, const HeadView& task, const PartView& part) {
  if (task.kernel == nullptr || part.place < 0 || !SaysWhatFewerWorkersDo(*task.kernel)) return {};
  const int32_t sms = snapshot.places[static_cast<size_t>(part.place)].sms;
  const bool fewer = HasFewerWorkers(*task.kernel, part.form, part.workers, sms, task.blocks_left);
  if (!fewer || SharesSms(snapshot, part)) return {};
  return WidthOf(*task.kernel, (part.workers + sms - 1) / sms);
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PARTS_FEWER_WORKERS_H_
