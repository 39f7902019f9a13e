// Partial eviction of BE workers, shortest eviction latency first (capsm_eviction.h).

#include "src/core/policies/parts/capsm_eviction.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/core/policies/parts/launch_form.h"
#include "src/core/seams/launch_claims.h"

namespace gpushare::core {
namespace {

// Workers of the task's parts on one place; 0 when one of them is leaving or cannot.
int32_t EvictableWorkers(const Snapshot& snapshot, const RunningView& task, PlaceIndex place) {
  int32_t workers = 0;
  for (int32_t i = 0; i < task.parts.size(); ++i) {
    const PartView& part = task.parts[i];
    if (part.place != place) continue;
    if (part.evicting || !ClaimsBlockTasks(part.form)) return 0;
    const int32_t sms = snapshot.places[static_cast<size_t>(place)].sms;
    workers += part.workers > 0 ? part.workers : sms * WorkersPerCapSm(task.task);
  }
  return workers;
}

}  // namespace

CapSmEvictor::CapSmEvictor(const Snapshot& snapshot) : snapshot_(snapshot) {
  if (!snapshot.eviction_available) return;
  for (size_t r = 0; r < snapshot.running.size(); ++r) {
    const RunningView& task = snapshot.running[r];
    if (task.task.app_class != AppClass::kBestEffort) continue;
    uint64_t seen = 0;
    for (int32_t i = 0; i < task.parts.size(); ++i) {
      const PlaceIndex place = task.parts[i].place;
      if (place < 0 || (seen >> place & 1) != 0 || count_ == candidates_.size()) continue;
      seen |= uint64_t{1} << place;
      const int32_t workers = EvictableWorkers(snapshot, task, place);
      if (workers == 0) continue;
      size_t at = count_++;
      candidates_[at] = {static_cast<int32_t>(r), place, workers, -1};
      for (; at > 0; --at) {
        const auto leaves_ns = [&](size_t c) {
          return snapshot.running[static_cast<size_t>(candidates_[c].running)].task.eviction_ns;
        };
        if (leaves_ns(at - 1) <= leaves_ns(at)) break;
        std::swap(candidates_[at - 1], candidates_[at]);
      }
    }
  }
}

double CapSmEvictor::Free(const Shortage& shortage, const Tasks& stay, Plan& plan) {
  double freed = 0;
  for (size_t c = 0; c < count_ && freed < shortage.capsms; ++c) {
    Candidate& candidate = candidates_[c];
    const HeadView& task = snapshot_.running[static_cast<size_t>(candidate.running)].task;
    if (candidate.workers == 0 || stay.test(static_cast<size_t>(candidate.running))) continue;
    if (shortage.app >= 0 && task.app != shortage.app) continue;
    const double per_capsm = WorkersPerCapSm(task);
    int32_t leaving = static_cast<int32_t>(std::min<double>(
        candidate.workers, std::ceil((shortage.capsms - freed) * per_capsm - 1e-9)));
    if (leaving > 0 && RunsInSegments(snapshot_, task)) leaving = candidate.workers;
    if (leaving <= 0) break;
    if (candidate.planned < 0) {
      candidate.planned = plan.evictions.size();
      if (!plan.evictions.TryAdd(
              {.task = task.task, .place = candidate.place, .reason = shortage.reason}))
        break;
    }
    candidate.workers -= leaving;
    plan.evictions[candidate.planned].workers_to_keep = candidate.workers;
    freed += leaving / per_capsm;
  }
  return freed;
}

}  // namespace gpushare::core
