// Which LC grids wait for empty SMs (empty_sms.h).

#include "src/core/policies/adaptive/empty_sms.h"

#include "src/core/base/tuning.h"
#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/seams/launch_claims.h"

namespace gpushare::core {
namespace {

// What a query would find on its SMs.
struct Neighbours {
  bool all_leave = true;  // an eviction makes all of them leave
  bool take_l1 = false;   // one of them leaves little of an SM's memory to L1

  void Add(const HeadView& task, Form form) {
    all_leave = all_leave && ClaimsBlockTasks(form);
    take_l1 = take_l1 || (task.kind == TaskKind::kKernel && !task.kernel->keeps_l1);
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

}  // namespace

void LetGridsWait(const Snapshot& snapshot, Plan& plan) {
  // Of several apps, one could take the SMs that another one's grid waits for.
  if (snapshot.lc_apps.size() != 1 || snapshot.lc_apps[0].solo_ns < kEmptySmsQueryNs) return;
  LcRoute& route = plan.routes[0];
  if (!route.evict_overlapping || route.place < 0) return;
  const uint64_t near = snapshot.places[static_cast<size_t>(route.place)].overlaps;
  Neighbours found;
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
  route.waits_for_empty_sms = found.all_leave && found.take_l1;
}

}  // namespace gpushare::core
