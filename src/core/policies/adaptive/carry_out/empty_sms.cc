// Which LC grids wait for empty SMs (empty_sms.h).

#include "src/core/policies/adaptive/carry_out/empty_sms.h"

#include <algorithm>

#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/seams/launch_claims.h"

namespace gpushare::core {
namespace {

// What a query would find on its SMs.
struct Occupants {
  bool all_leave = true;  // an eviction makes all of them leave, in a time that is known
  bool take_l1 = false;   // a kernel among them leaves little of an SM's memory to L1
  int64_t leave_ns = 0;   // until the last of them has left

  void Add(const HeadView& task, Form form) {
    all_leave = all_leave && ClaimsBlockTasks(form) && task.eviction_known;
    take_l1 = take_l1 || (task.kind == TaskKind::kKernel && !task.kernel->resources.keeps_l1);
    leave_ns = std::max(leave_ns, task.eviction_p99_ns);
  }
};

// A head, or a running task that gets one more part; null for another one.
const HeadView* FindBeTask(const Snapshot& snapshot, TicketId task) {
  for (const HeadView& head : snapshot.heads) {
    if (head.task == task) return IsBeCompute(head) ? &head : nullptr;
  }
  for (const RunningView& running : snapshot.running) {
    if (running.task.task == task) return IsBeCompute(running.task) ? &running.task : nullptr;
  }
  return nullptr;
}

// The BE work that runs on the place's SMs, or is launched there by this plan.
Occupants OccupantsOn(const Snapshot& snapshot, const Plan& plan, PlaceIndex place) {
  const uint64_t near = snapshot.places[static_cast<size_t>(place)].overlaps;
  Occupants found;
  for (const RunningView& running : snapshot.running) {
    if (!IsBeCompute(running.task)) continue;
    for (const PartView& part : running.parts) {
      if ((near & PlaceBit(part.place)) != 0) found.Add(running.task, part.form);
    }
  }
  for (const PlannedLaunch& launch : plan.launches) {
    if ((near & PlaceBit(launch.place)) == 0) continue;
    const HeadView* const task = FindBeTask(snapshot, launch.task);
    if (task != nullptr) found.Add(*task, launch.form);
  }
  return found;
}

}  // namespace

void LetGridsWait(const Snapshot& snapshot, Plan& plan) {
  // Of several apps, one could take the SMs that another one's grid waits for.
  if (snapshot.lc_apps.size() != 1) return;
  const int64_t query_ns = snapshot.lc_apps[0].solo_ns;
  LcRoute& route = plan.routes[0];
  if (query_ns < kEmptySmsQueryNs || !route.evict_overlapping || route.place < 0) return;
  const Occupants found = OccupantsOn(snapshot, plan, route.place);
  route.waits_for_empty_sms =
      found.all_leave && found.take_l1 &&
      static_cast<double>(found.leave_ns) <= kEmptySmsWaitMax * static_cast<double>(query_ns);
}

}  // namespace gpushare::core
