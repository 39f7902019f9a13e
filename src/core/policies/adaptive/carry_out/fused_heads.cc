// Launches, holds and evictions of fused partners (carry_out/fused_heads.h).

#include "src/core/policies/adaptive/carry_out/fused_heads.h"

#include <algorithm>

#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "src/core/policies/parts/bounds.h"
#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/launch_form.h"

namespace gpushare::core {
namespace {

constexpr uint64_t kAllPlaces = ~uint64_t{0};

bool IsLc(const HeadView& head) { return head.app_class == AppClass::kLatencyCritical; }

int32_t CountLcHeads(const Snapshot& snapshot) {
  int32_t count = 0;
  for (const HeadView& head : snapshot.heads) {
    if (!IsLc(head)) break;  // LC heads come first
    ++count;
  }
  return count;
}

// Whether the device still has a part of a fused launch that BE work left or leaves.
bool HoldsFusedLane(const Snapshot& snapshot) {
  const auto is_fused = [](const PartView& part) { return part.form == Form::kFused; };
  return std::any_of(snapshot.running.begin(), snapshot.running.end(),
                     [&](const RunningView& running) {
                       return std::any_of(running.parts.begin(), running.parts.end(), is_fused);
                     });
}

// The predicted time alone of an app's tasks on the device.
int64_t IssuedNs(const Snapshot& snapshot, int32_t lc_app) {
  int64_t issued_ns = 0;
  for (const QueryView& query : snapshot.queries) {
    if (query.lc_app == lc_app) issued_ns = SumNs(issued_ns, query.issued_ns);
  }
  return issued_ns;
}

int64_t ScaledNs(int64_t ns, double factor) {
  return static_cast<int64_t>(static_cast<double>(ns) * factor);
}

}  // namespace

void FusedHeads::ReadSnapshot() {
  for (const LcAppView& app : snapshot_.lc_apps) lc_in_flight_ += app.tasks_in_flight;
  const int64_t budget_ns = MinBlockingBudget(snapshot_);
  const auto accept = [&](const HeadView& be) {
    const bool fits = IsBeCompute(be) && CanBeEvicted(snapshot_, be) && be.eviction_ns <= budget_ns;
    if (fits) accepted_ns_ = std::max(accepted_ns_, be.eviction_ns / 2);
  };
  for (const HeadView& head : snapshot_.heads) accept(head);
  for (const RunningView& running : snapshot_.running) accept(running.task);
}

int64_t FusedHeads::LagOf(size_t lc_app) const {
  const LcAppView& app = snapshot_.lc_apps[lc_app];
  if (app.active_queries == 0) return 0;
  const double slowdown = partners_.SlowdownOf(static_cast<int32_t>(lc_app));
  const int64_t counted_ns = std::min(app.solo_ns, app.service_age_ns);
  const int64_t served_ns = std::min(app.solo_ns, ScaledNs(app.service_age_ns, 1 / slowdown));
  return std::max<int64_t>(0, SumNs(app.lag_ns, counted_ns - served_ns) - accepted_ns_);
}

// Queries of other apps wait behind the kernel too, and so do those that come now.
bool FusedHeads::HasRoomFor(const HeadView& lc, const FusedWay& way, int turns) const {
  const int64_t charge_ns = ScaledNs(lc.remaining.duration_ns, way.alone * (way.slowdown - 1)) +
                            (turns - 1) * kFusedTurnNs;
  if (charge_ns > MinHeadroom(snapshot_)) return false;
  for (size_t a = 0; a < snapshot_.lc_apps.size(); ++a) {
    const LcAppView& app = snapshot_.lc_apps[a];
    if (HasNeverSent(app) || app.solo_ns <= 0) continue;
    const int64_t slack_ns = app.promise.LagSlack(app.solo_ns, app.shadow_p99_ns);
    if (SumNs(LagOf(a), charge_ns) > slack_ns) return false;
  }
  return true;
}

bool FusedHeads::IsLate() const {
  if (MinHeadroom(snapshot_) < 0) return true;
  for (size_t a = 0; a < snapshot_.lc_apps.size(); ++a) {
    const LcAppView& app = snapshot_.lc_apps[a];
    if (app.active_queries == 0 || app.solo_ns <= 0) continue;
    if (LagOf(a) > app.promise.LagSlack(app.solo_ns, app.shadow_p99_ns)) return true;
  }
  return false;
}

// Equal gains go to the app that is next by weight.
FusedHeads::Partner FusedHeads::FindPartner(const HeadView& lc) const {
  Partner best;
  BeOrder order;
  shares_.Order(order);
  for (const HeadView* be : order) {
    const FusedWay way = partners_.WayOf(lc, *be, /*runs=*/false);
    if (way.view == nullptr) continue;
    if (best.be != nullptr && way.gain() <= best.way.gain()) continue;
    if (HasRoomFor(lc, way, 1)) best = {be, way};
  }
  return best;
}

// Whether BE work that is ready, or on the device until it has left, could go with the head once
// the LC kernel before it has ended.
bool FusedHeads::MayExpectPartner(const HeadView& lc) const {
  const auto fits = [&](const HeadView& be, bool runs) {
    const FusedWay way = partners_.WayOf(lc, be, runs);
    return way.view != nullptr && HasRoomFor(lc, way, 2);
  };
  return std::any_of(snapshot_.heads.begin(), snapshot_.heads.end(),
                     [&](const HeadView& head) { return fits(head, false); }) ||
         std::any_of(snapshot_.running.begin(), snapshot_.running.end(),
                     [&](const RunningView& running) { return fits(running.task, true); });
}

void FusedHeads::LaunchAlone(const HeadView& lc, int32_t count, Plan& plan) const {
  const LcRoute& route = plan.routes[static_cast<size_t>(lc.app)];
  PlannedLaunch launch =
      MakeLaunch(lc.task, OrdinaryForm(lc.kind), kWholeDevice, route.lane_class, Reason::kLcFirst);
  launch.count = count;
  if (!plan.launches.TryAdd(launch)) return;
  if (count < lc.ready_count) plan.replan_at_ns = snapshot_.now_ns;
}

// The partner starts with the workers that its quota leaves: the launch stage writes its eviction
// word before it (flow/fused). The next plan says when it leaves.
void FusedHeads::LaunchFused(const HeadView& lc, Plan& plan) {
  PlannedLaunch launch =
      MakeLaunch(lc.task, Form::kFused, kWholeDevice,
                 plan.routes[static_cast<size_t>(lc.app)].lane_class, Reason::kCoResident);
  launch.fused_with = partner_.be->task;
  launch.fused_kernel = partner_.way.view->kernel->id;
  plan.launches.TryAdd(launch);
  plan.replan_at_ns = snapshot_.now_ns;
  const int32_t workers = partner_.way.partner_workers;
  if (workers > 0) {
    plan.evictions.TryAdd({partner_.be->task, kWholeDevice, workers, Reason::kEvictForQuota});
  }
}

void FusedHeads::PlanLc(Plan& plan) {
  ReadSnapshot();
  for (size_t a = 0; a < snapshot_.lc_apps.size(); ++a) {
    if (partners_.MayFuse(static_cast<int32_t>(a))) plan.routes[a].fast_path = false;
    plan.routes[a].cuts_graphs = partners_.CutsGraph(static_cast<int32_t>(a));
  }
  const bool is_only = CountLcHeads(snapshot_) == 1;
  for (const HeadView& lc : snapshot_.heads) {
    if (!IsLc(lc)) break;
    PlanLcHead(lc, is_only, plan);
  }
}

// A query that runs late, and several heads, go to the device at once.
void FusedHeads::PlanLcHead(const HeadView& lc, bool is_only, Plan& plan) {
  if (!is_only || !partners_.MayFuse(lc.app) || IsLate()) {
    return LaunchAlone(lc, lc.ready_count, plan);
  }
  if (lc_in_flight_ == 0) partner_ = FindPartner(lc);
  if (partner_.be != nullptr) return LaunchFused(lc, plan);
  const int32_t own = snapshot_.lc_apps[static_cast<size_t>(lc.app)].tasks_in_flight;
  const bool behind_own = lc_in_flight_ > 0 && own == lc_in_flight_;
  if (behind_own && (HoldsFusedLane(snapshot_) || MayExpectPartner(lc))) {
    plan.holds.TryAdd({lc.task, Reason::kHoldWindow, lc_in_flight_, 1});
    return;
  }
  LaunchAlone(lc, 1, plan);
}

// When a partner leaves its launch so that it has left it at the LC kernel's predicted end. One
// that ends about then ends by itself: its rest would take the next kernel for itself.
TimeNs FusedHeads::LeavesAt(const RunningView& running) const {
  TimeNs leaves_ns = kNever;
  for (size_t a = 0; a < snapshot_.lc_apps.size(); ++a) {
    const auto lc_app = static_cast<int32_t>(a);
    if (snapshot_.lc_apps[a].tasks_in_flight == 0 || !partners_.MayFuse(lc_app)) continue;
    const FusedWay way = partners_.MainWayOf(lc_app, running.task);
    if (way.view == nullptr) continue;
    const int64_t beside_ns = ScaledNs(IssuedNs(snapshot_, lc_app),
                                       way.alone * way.slowdown / (1 + way.view->curve.error));
    if (FusedPartners::TimeOf(way, running.task) <= SumNs(beside_ns, kFusedTurnNs)) continue;
    const int64_t stays_ns = beside_ns - FusedPartners::LeavesWithin(way, running.task);
    leaves_ns = std::min(leaves_ns, running.parts[0].launched_ns + std::max<int64_t>(0, stays_ns));
  }
  return leaves_ns;
}

void FusedHeads::PlanRunning(const RunningView& running, Plan& plan) const {
  if (IsLate()) {
    EvictTaskParts(running, kAllPlaces, Reason::kEvictForLc, plan);
    return;
  }
  if (CountLcHeads(snapshot_) == 0) return;  // no kernel follows
  const TimeNs leaves_ns = LeavesAt(running);
  if (leaves_ns <= snapshot_.now_ns) {
    EvictTaskParts(running, kAllPlaces, Reason::kEvictForLc, plan);
  } else {
    plan.replan_at_ns = std::min(plan.replan_at_ns, leaves_ns);
  }
}

void FusedHeads::EvictForLc(Plan& plan) const {
  if (!snapshot_.eviction_available) return;
  const bool launches_lc = !plan.launches.empty();
  for (const RunningView& running : snapshot_.running) {
    if (!IsBeCompute(running.task)) continue;
    if (!IsFusedPart(running)) {
      EvictTaskParts(running, kAllPlaces, Reason::kEvictForLc, plan);
    } else if (lc_in_flight_ > 0) {
      PlanRunning(running, plan);
    } else if (launches_lc) {  // its LC part has ended
      EvictTaskParts(running, kAllPlaces, Reason::kEvictForLc, plan);
    }
  }
  // A query runs late by time alone.
  if (AnyFusedPart(snapshot_)) plan.replan_at_ns = std::min(plan.replan_at_ns, LateAt());
}

TimeNs FusedHeads::LateAt() const {
  int64_t left_ns = MinHeadroom(snapshot_);
  for (size_t a = 0; a < snapshot_.lc_apps.size(); ++a) {
    const LcAppView& app = snapshot_.lc_apps[a];
    const int64_t slack_ns = app.promise.LagSlack(app.solo_ns, app.shadow_p99_ns);
    if (app.active_queries > 0 && slack_ns != kNever) {
      left_ns = std::min(left_ns, slack_ns - LagOf(a));
    }
  }
  // What is left shrinks slower than time passes, and a plan takes some us.
  return left_ns < 0 ? kNever : SumNs(snapshot_.now_ns, std::max(left_ns, kFusedTurnNs));
}

bool FusedHeads::PlanBe(const LcActivity& lc, Plan& plan) const {
  if (lc.active) {
    HoldBe(plan);
  } else if (snapshot_.now_ns >= lc.open_at_ns) {
    ReturnAlone(plan);
  }
  return lc.active;
}

void FusedHeads::ReturnAlone(Plan& plan) const {
  for (const RunningView& running : snapshot_.running) {
    if (!IsFusedPart(running) || !partners_.IsFasterAlone(running.task)) continue;
    EvictTaskParts(running, kAllPlaces, Reason::kEvictForLayout, plan);
  }
}

void FusedHeads::HoldBe(Plan& plan) const {
  for (const HeadView& head : snapshot_.heads) {
    if (!IsBeCompute(head) || &head == partner_.be) continue;
    plan.holds.TryAdd({head.task, Reason::kHoldLcActive, 0, 0});
  }
}

}  // namespace gpushare::core
