// Limits, homes and workers of BE work (be_quota.h).

#include "src/core/policies/parts/be_quota.h"

#include <algorithm>
#include <cmath>

#include "src/core/policies/parts/capsm_eviction.h"
#include "src/core/policies/parts/launch_form.h"

namespace gpushare::core {

int32_t ReservedCapSms(const Snapshot& snapshot) {
  int32_t reserved = 0;
  for (const LcAppView& app : snapshot.lc_apps) reserved += app.reserved_capsms;
  return reserved;
}

int32_t SplitWithin(const Snapshot& snapshot, int32_t sms) {
  int32_t best = -1;
  if (!snapshot.partitions_available) return best;
  for (size_t s = 0; s < snapshot.splits.size(); ++s) {
    const int32_t be_sms = snapshot.splits[s].be_sms;
    if (be_sms > sms) continue;
    if (best < 0 || be_sms > snapshot.splits[static_cast<size_t>(best)].be_sms) {
      best = static_cast<int32_t>(s);
    }
  }
  return best;
}

BeQuotas::BeQuotas(const Snapshot& snapshot, int32_t split)
    : snapshot_(snapshot),
      be_sms_(split < 0 ? snapshot.sm_count : snapshot.splits[static_cast<size_t>(split)].be_sms),
      sms_{snapshot.sm_count, snapshot.sm_count - ReservedCapSms(snapshot)} {
  any_ = sms_.unreserved < sms_.device;
  for (const BeAppView& app : snapshot.be_apps) any_ = any_ || app.quota_capsms > 0;
  if (!any_) return;
  for (size_t a = 0; a < snapshot.be_apps.size(); ++a) used_[a] = snapshot.be_apps[a].used_capsms;
  FindBounds();
  // The ledger does not count opaque work: it has no workers.
  for (const RunningView& running : snapshot.running) {
    if (!IsBeCompute(running.task) || running.task.kind != TaskKind::kOpaque) continue;
    for (const PartView& part : running.parts) {
      if (part.place < 0) continue;
      used_[static_cast<size_t>(running.task.app)] +=
          snapshot.places[static_cast<size_t>(part.place)].sms;
    }
  }
  for (size_t a = 0; a < snapshot.be_apps.size(); ++a) all_used_ += used_[a];
}

BeQuotas::Bound BeQuotas::MakeBound(int32_t quota_capsms, bool evictable) const {
  Bound bound;
  bound.sms = SmLimit(sms_, quota_capsms, evictable);
  bound.home = kNoPlace;
  bound.limited = bound.sms < snapshot_.sm_count;
  const int32_t split = SplitWithin(snapshot_, std::min(bound.sms, be_sms_));
  if (split >= 0) bound.home = snapshot_.splits[static_cast<size_t>(split)].be_place;
  return bound;
}

BeQuotas::Bounds BeQuotas::MakeBounds(const BeAppView& app) const {
  Bounds bounds;
  bounds[kStays] = MakeBound(app.quota_capsms, false);
  bounds[kWorkers] = MakeBound(app.quota_capsms, true);
  bounds[kSegments] = bounds[kWorkers];
  if (QuotaBoundsWorkers(app.quota_capsms, app.packed, true)) bounds[kWorkers].limited = false;
  return bounds;
}

// Apps with the same quota have the same bounds, and most apps have the quota of another.
void BeQuotas::FindBounds() {
  const auto same = [](const BeAppView& a, const BeAppView& b) {
    return a.quota_capsms == b.quota_capsms && a.packed == b.packed;
  };
  for (size_t a = 0; a < snapshot_.be_apps.size(); ++a) {
    const BeAppView& app = snapshot_.be_apps[a];
    bounds_[a] = a > 0 && same(app, snapshot_.be_apps[a - 1]) ? bounds_[a - 1] : MakeBounds(app);
  }
}

int32_t BeQuotas::LimitOf(const HeadView& task) const {
  return any_ ? BoundOf(task).sms : sms_.device;
}

bool BeQuotas::BoundsWorkers(const HeadView& task) const {
  const BeAppView& app = AppOf(task);
  return QuotaBoundsWorkers(app.quota_capsms, app.packed,
                            EvictableForm(snapshot_, task) == Form::kWorkers);
}

double BeQuotas::LeftOf(const HeadView& task) const {
  return AppOf(task).quota_capsms - used_[static_cast<size_t>(task.app)];
}

int32_t BeQuotas::WorkersLeft(const HeadView& task) const {
  const double workers = std::floor(LeftOf(task) * WorkersPerCapSm(task) + kCapSmEpsilon);
  const double blocks = static_cast<double>(std::max<int64_t>(task.blocks_left, 1));
  return static_cast<int32_t>(std::clamp(workers, 0.0, blocks));
}

bool BeQuotas::HasRoom(const HeadView& task, PlaceIndex place) const {
  if (!any_ || AppOf(task).quota_capsms <= 0 || IsUnbounded(task)) return true;
  if (BoundsWorkers(task)) return WorkersLeft(task) > 0;
  return LeftOf(task) >= snapshot_.places[static_cast<size_t>(place)].sms - kCapSmEpsilon;
}

PlannedHold BeQuotas::HoldOf(const HeadView& task) const {
  PlannedHold hold{task.task, Reason::kHoldCapSm, snapshot_.sm_count, LimitOf(task)};
  if (IsUnbounded(task)) {
    for (const SplitView& split : snapshot_.splits) {
      if (!task.confinable || !snapshot_.partitions_available) break;
      hold.value_ns = std::min<int64_t>(hold.value_ns, split.be_sms);
    }
  } else {
    hold.value_ns = static_cast<int64_t>(std::ceil(used_[static_cast<size_t>(task.app)]));
  }
  return hold;
}

void BeQuotas::Take(const HeadView& task, PlaceIndex place) {
  if (!any_) return;
  double capsms = snapshot_.places[static_cast<size_t>(place)].sms;
  if (BoundsWorkers(task)) {
    capsms = std::min(capsms, static_cast<double>(WorkersLeft(task)) / WorkersPerCapSm(task));
  }
  used_[static_cast<size_t>(task.app)] += capsms;
  all_used_ += capsms;
}

void EvictOverQuotas(const Snapshot& snapshot, Plan& plan) {
  const auto over = [](const BeAppView& app) {
    return app.quota_capsms > 0 ? app.used_capsms - app.quota_capsms : 0;
  };
  if (!plan.evictions.empty() ||
      std::none_of(snapshot.be_apps.begin(), snapshot.be_apps.end(),
                   [&](const BeAppView& app) { return over(app) > kCapSmEpsilon; })) {
    return;
  }
  constexpr int32_t kWhole = -1;
  const BeQuotas quotas(snapshot, kWhole);
  CapSmEvictor::Tasks unbounded;  // an eviction would launch them again
  for (size_t r = 0; r < snapshot.running.size(); ++r) {
    const HeadView& task = snapshot.running[r].task;
    unbounded[r] = IsBeCompute(task) && quotas.IsUnbounded(task);
  }
  CapSmEvictor evictor(snapshot);
  for (size_t a = 0; a < snapshot.be_apps.size(); ++a) {
    const double capsms = over(snapshot.be_apps[a]);
    if (capsms > kCapSmEpsilon) {
      evictor.Free({capsms, static_cast<int32_t>(a), Reason::kEvictForQuota}, unbounded, plan);
    }
  }
}

}  // namespace gpushare::core
