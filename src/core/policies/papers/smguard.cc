// smguard: algorithm 1 for each task over one CapSM ledger (smguard.h).

#include "src/core/policies/papers/smguard.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>

#include "src/core/policies/parts/be_quota.h"
#include "src/core/policies/parts/capsm_eviction.h"
#include "src/core/policies/parts/copy_slots.h"
#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/fair_share.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/policies/parts/lc_activity.h"
#include "src/core/policies/parts/lc_first.h"
#include "src/core/policies/parts/quiet.h"
#include "src/core/seams/launch_claims.h"

namespace gpushare::core {
namespace {

// The split whose BE side is the largest within the BE apps' quotas (rounded down) that leaves the
// reservations their SMs; -1 for none. An app without a quota may take all that is not reserved.
int32_t PackedSplit(const Snapshot& snapshot) {
  if (!snapshot.partitions_available) return -1;
  const int32_t reserved = ReservedCapSms(snapshot);
  int32_t allowed = 0;
  for (const BeAppView& app : snapshot.be_apps) {
    allowed += app.quota_capsms > 0 ? app.quota_capsms : snapshot.sm_count - reserved;
  }
  int32_t best = -1;
  for (size_t s = 0; s < snapshot.splits.size(); ++s) {
    const SplitView& split = snapshot.splits[s];
    if (split.be_sms > allowed || split.lc_sms < reserved) continue;
    if (best < 0 || split.be_sms > snapshot.splits[static_cast<size_t>(best)].be_sms) {
      best = static_cast<int32_t>(s);
    }
  }
  return best;
}

// The split of packed reservations: the smallest LC side that holds every reservation; -1 where
// none is packed, or no side is so large.
int32_t SplitOfReservations(const Snapshot& snapshot) {
  const bool any =
      std::any_of(snapshot.lc_apps.begin(), snapshot.lc_apps.end(),
                  [](const LcAppView& app) { return app.packed && app.reserved_capsms > 0; });
  if (!any) return -1;
  return SplitWithin(snapshot, snapshot.sm_count - ReservedCapSms(snapshot));
}

// The split whose BE side the app's work has: of its packed quota, else `bes_split`; -1: none. All
// BE sides lie in each other.
int32_t SplitOf(const Snapshot& snapshot, const BeAppView& app, int32_t bes_split) {
  if (!app.packed || app.quota_capsms <= 0) return bes_split;
  const int32_t own = SplitWithin(snapshot, app.quota_capsms);
  if (own < 0 || bes_split < 0) return std::max(own, bes_split);
  const auto be_sms = [&](int32_t split) {
    return snapshot.splits[static_cast<size_t>(split)].be_sms;
  };
  return be_sms(own) < be_sms(bes_split) ? own : bes_split;
}

bool IsActive(const Snapshot& snapshot, size_t lc_app) {
  const LcAppView& app = snapshot.lc_apps[lc_app];
  if (app.active_queries > 0 || app.tasks_in_flight > 0) return true;
  return std::any_of(snapshot.heads.begin(), snapshot.heads.end(), [&](const HeadView& head) {
    return head.app_class == AppClass::kLatencyCritical && head.app == static_cast<int32_t>(lc_app);
  });
}

// CapSMs that BE work leaves to LC apps now. Whole SMs cannot be freed by a partial eviction, so a
// packed reservation holds in any case.
int32_t HeldCapSms(const Snapshot& snapshot, Reservations reservations) {
  if (reservations == Reservations::kAlways) return ReservedCapSms(snapshot);
  int32_t held = 0;
  for (size_t app = 0; app < snapshot.lc_apps.size(); ++app) {
    const LcAppView& view = snapshot.lc_apps[app];
    if (view.reserved_capsms == 0) continue;
    if (view.packed || IsActive(snapshot, app)) held += view.reserved_capsms;
  }
  return held;
}

// The CapSMs of one plan: what remains for BE, and what each BE app uses.
class CapSms {
 public:
  // `held`: of the reservations, CapSMs that are LC's now.
  CapSms(const Snapshot& snapshot, double place_capsms, int32_t held) : snapshot_(snapshot) {
    double used = 0;
    for (size_t app = 0; app < snapshot.be_apps.size(); ++app) {
      used_[app] = snapshot.be_apps[app].used_capsms;
      used += used_[app];
      if (snapshot.be_apps[app].packed) packed_ += used_[app];
    }
    const double lent = ReservedCapSms(snapshot) - held;
    remaining_ = std::min(snapshot.capsms_free + lent, place_capsms - used);
  }
  // Lines 1, 2, 8 and 9 of algorithm 1: the request, cut to the quota and to what remains. On a
  // side of `side_sms` SMs for packed quotas (0: none), to what the others leave of it: all such
  // sides lie in each other.
  double Grant(size_t app, int32_t side_sms) const {
    const int32_t quota = snapshot_.be_apps[app].quota_capsms;
    double request = quota > 0 ? quota - used_[app] : remaining_;
    if (side_sms > 0) request = std::min(request, side_sms - packed_);
    return std::max(0.0, std::min(request, remaining_));
  }
  void Take(size_t app, double capsms) {
    used_[app] += capsms;
    if (snapshot_.be_apps[app].packed) packed_ += capsms;
    remaining_ -= capsms;
  }
  double used(size_t app) const { return used_[app]; }

 private:
  const Snapshot& snapshot_;
  double remaining_ = 0;
  double packed_ = 0;  // used by apps with packed quotas
  std::array<double, kMaxApps> used_{};
};

// The SMs that the task's next launch would have. `bes_split`: of all BE work; -1: none.
struct NextPlace {
  int32_t sms = 0;
  bool apart_from_lc = false;  // LC work has enough SMs beside them
};
NextPlace NextPlaceOf(const Snapshot& snapshot, const HeadView& head, int32_t bes_split,
                      const BeQuotas& quotas) {
  const bool lc_has_a_side = bes_split >= 0;
  const int32_t split =
      SplitOf(snapshot, snapshot.be_apps[static_cast<size_t>(head.app)], bes_split);
  int32_t sms = snapshot.sm_count;
  if (quotas.IsConfined(head)) {
    sms = snapshot.places[static_cast<size_t>(quotas.HomeOf(head))].sms;
  } else if (quotas.IsUnbounded(head) || split < 0 || !head.confinable) {
    return {sms, false};
  } else {
    sms = snapshot.splits[static_cast<size_t>(split)].be_sms;
  }
  return {sms, lc_has_a_side || sms + ReservedCapSms(snapshot) <= snapshot.sm_count};
}

// The CapSMs that BE apps use and that an eviction could free. Parts that leave are free soon. A
// graph in segments cannot keep some of its workers: where its next launch would have as many SMs,
// it stays, or it would be evicted and launched again and again.
class Evictable {
 public:
  Evictable(const Snapshot& snapshot, int32_t split, const BeQuotas& quotas, bool lc_active)
      : snapshot_(snapshot) {
    for (size_t app = 0; app < snapshot.be_apps.size(); ++app) {
      of_app_[app] = snapshot.be_apps[app].used_capsms;
      all_ += of_app_[app];
    }
    for (size_t r = 0; r < snapshot.running.size(); ++r) {
      const HeadView& task = snapshot.running[r].task;
      if (task.app_class != AppClass::kBestEffort) continue;
      for (const PartView& part : snapshot.running[r].parts) {
        if (part.place < 0) continue;
        const NextPlace next = NextPlaceOf(snapshot, task, split, quotas);
        const bool stays = part.form == Form::kSegments && SmsOf(part) <= next.sms;
        const bool stays_beside_lc = stays && (next.apart_from_lc || !lc_active);
        if (stays) stays_.set(r);
        if (stays_beside_lc) stays_beside_lc_.set(r);
        if (part.evicting || stays) of_app_[static_cast<size_t>(task.app)] -= CapSmsOf(task, part);
        if (part.evicting || stays_beside_lc) all_ -= CapSmsOf(task, part);
      }
    }
  }
  double of_app(size_t app) const { return of_app_[app]; }
  double all() const { return all_; }
  // Tasks that stay, by index into the running ones: whatever the quotas, and the reservations.
  const CapSmEvictor::Tasks& stays() const { return stays_; }
  const CapSmEvictor::Tasks& stays_beside_lc() const { return stays_beside_lc_; }

 private:
  int32_t SmsOf(const PartView& part) const {
    return snapshot_.places[static_cast<size_t>(part.place)].sms;
  }
  double CapSmsOf(const HeadView& task, const PartView& part) const {
    if (!HasWorkers(part.form)) return SmsOf(part);
    return static_cast<double>(part.workers) / WorkersPerCapSm(task);
  }

  const Snapshot& snapshot_;
  std::array<double, kMaxApps> of_app_{};
  double all_ = 0;
  CapSmEvictor::Tasks stays_, stays_beside_lc_;
};

// Evicts what a BE app uses beyond its quota, then R_gap: what the reservations lack.
void EvictShortage(const Snapshot& snapshot, const Evictable& use, int32_t held, Plan& plan) {
  CapSmEvictor evictor(snapshot);
  double used = use.all();
  for (size_t app = 0; app < snapshot.be_apps.size(); ++app) {
    const BeAppView& be = snapshot.be_apps[app];
    const double over = be.quota_capsms > 0 ? use.of_app(app) - be.quota_capsms : 0;
    if (over > kCapSmEpsilon) {
      used -= evictor.Free({over, static_cast<int32_t>(app), Reason::kEvictForQuota}, use.stays(),
                           plan);
    }
  }
  const double gap = used + held - snapshot.sm_count;
  // Work that cannot be bounded may use more than the device has. Without a reservation that evicts
  // nothing.
  if (held > 0 && gap > kCapSmEpsilon) {
    evictor.Free({gap, -1, Reason::kEvictForReservation}, use.stays_beside_lc(), plan);
  }
}

// Work from before a packed reservation leaves the SMs of its LC side.
void EvictFromLcSide(const Snapshot& snapshot, int32_t split, Plan& plan) {
  const auto lc_place = static_cast<size_t>(snapshot.splits[static_cast<size_t>(split)].lc_place);
  EvictBeParts(snapshot, snapshot.places[lc_place].overlaps, Reason::kEvictForReservation, plan);
}

// Work without workers cannot be bounded: it needs all SMs of its place.
bool MayFill(const Snapshot& snapshot, const HeadView& head, int32_t split, double granted) {
  if (split >= 0 && head.confinable) {
    const int32_t sms = snapshot.splits[static_cast<size_t>(split)].be_sms;
    return granted >= sms - kCapSmEpsilon;
  }
  return granted >= snapshot.sm_count - kCapSmEpsilon;
}

// Other apps' workers may keep work without workers from its place for ever. Such work then runs
// one task at a time, while its app uses nothing and no query is active on the SMs of the place.
class Turn {
 public:
  Turn(const Snapshot& snapshot, bool lc_active) : lc_active_(lc_active) {
    for (const RunningView& running : snapshot.running) {
      if (running.task.app_class != AppClass::kBestEffort) continue;
      for (const PartView& part : running.parts) {
        taken_ = taken_ || (part.form != Form::kMemcpy && !HasWorkers(part.form));
      }
    }
  }
  bool Free(double app_holds, bool apart_from_lc) const {
    return !taken_ && app_holds < kCapSmEpsilon && (apart_from_lc || !lc_active_);
  }
  void Take() { taken_ = true; }

 private:
  bool lc_active_;
  bool taken_ = false;
};

// What all tasks of one plan share.
struct BeRules {
  int32_t bes_split = -1;  // of all BE work; -1: none
  int32_t held = 0;        // CapSMs of reservations
};

void PlanKernel(const Snapshot& snapshot, const HeadView& head, const BeRules& rules,
                const BeQuotas& quotas, CapSms& capsms, Turn& turn, std::bitset<kMaxApps>& waiting,
                Plan& plan) {
  const size_t app = static_cast<size_t>(head.app);
  const int32_t split = SplitOf(snapshot, snapshot.be_apps[app], rules.bes_split);
  const bool own_side = split != rules.bes_split;
  const int32_t side_sms = own_side ? snapshot.splits[static_cast<size_t>(split)].be_sms : 0;
  const double granted = capsms.Grant(app, side_sms);
  const NextPlace next = NextPlaceOf(snapshot, head, rules.bes_split, quotas);
  const bool on_split = split >= 0 && head.confinable;
  PlannedLaunch launch;
  launch.task = head.task;
  launch.form = EvictableForm(snapshot, head);
  launch.place = on_split ? snapshot.splits[static_cast<size_t>(split)].be_place : kWholeDevice;
  launch.lane_class = LaneClass::kBe;
  launch.reason = head.resumed ? Reason::kResume : Reason::kQuota;
  double taken = granted;
  bool fits = false;
  if (launch.form == Form::kWorkers) {
    const double per_capsm = WorkersPerCapSm(head);
    const double workers = std::floor(granted * per_capsm + kCapSmEpsilon);
    launch.workers = static_cast<int32_t>(
        std::min(workers, static_cast<double>(std::max<int64_t>(head.blocks_left, 1))));
    taken = launch.workers / per_capsm;
    fits = launch.workers > 0;
  } else if (quotas.IsConfined(head)) {
    // What a quota or a reservation leaves to work that has no workers is a place.
    launch.place = quotas.HomeOf(head);
    taken = next.sms;
    fits = granted >= taken - kCapSmEpsilon || turn.Free(capsms.used(app), rules.bes_split >= 0);
  } else if (quotas.IsUnbounded(head)) {
    launch.place = kWholeDevice;
    fits = turn.Free(capsms.used(app), false);
  } else {
    fits =
        MayFill(snapshot, head, split, granted) || turn.Free(capsms.used(app), next.apart_from_lc);
  }
  // Younger tasks of the app would take the room of a confined one again and again.
  fits = fits && !waiting[app];
  if (!fits && quotas.IsConfined(head)) waiting.set(app);
  if (!fits && quotas.IsUnbounded(head)) {
    plan.holds.TryAdd(quotas.HoldOf(head));
    return;
  }
  if (!fits) {
    // Both in CapSMs: what the app uses, and its quota or, without one, what is not reserved.
    const int32_t quota = snapshot.be_apps[app].quota_capsms;
    plan.holds.TryAdd({head.task, Reason::kHoldCapSm,
                       static_cast<int64_t>(std::ceil(capsms.used(app))),
                       quota > 0 ? quota : snapshot.sm_count - rules.held});
    return;
  }
  if (!plan.launches.TryAdd(launch)) return;
  capsms.Take(app, taken);
  if (launch.form != Form::kWorkers) turn.Take();
}

void PlanCopy(const HeadView& head, CopySlots& slots, FairShare& shares, Plan& plan) {
  if (!slots.Free(head)) {
    plan.holds.TryAdd(slots.Hold(head));
  } else if (plan.launches.TryAdd(MakeLaunch(head.task, Form::kMemcpy, kWholeDevice,
                                             LaneClass::kCopy, Reason::kQuota))) {
    slots.Take(head);
    shares.Charge(head);
  }
}

}  // namespace

absl::string_view SmguardPolicy::name() const {
  if (packed_) return "smguard:packed";
  return reservations_ == Reservations::kAlways ? "smguard" : "smguard:active";
}

// Under smguard:packed LC has the rest of the device. Else an app with a packed reservation is
// sized by the reservations, and the others have the whole device.
void SmguardPolicy::PublishLcRoutes(const Snapshot& snapshot, int32_t split, Plan& plan) const {
  PublishRoutes(snapshot, LcRoute(), plan);
  if (split < 0) return;
  for (size_t app = 0; app < snapshot.lc_apps.size(); ++app) {
    const LcAppView& view = snapshot.lc_apps[app];
    if (!packed_ && !(view.packed && view.reserved_capsms > 0)) continue;
    plan.routes[app].place = snapshot.splits[static_cast<size_t>(split)].lc_place;
    plan.routes[app].lane_class = LaneClass::kLc;  // a side has no other for LC work
  }
}

void SmguardPolicy::MakePlan(const Snapshot& snapshot, Plan& plan) {
  if (PlanQuiesced(snapshot, plan)) return;
  const int32_t split = packed_ ? PackedSplit(snapshot) : SplitOfReservations(snapshot);
  PublishLcRoutes(snapshot, split, plan);
  LaunchLcHeads(snapshot, plan);

  const bool lc_active = FindLcActivity(snapshot, plan).active;
  const BeRules rules = {split, HeldCapSms(snapshot, reservations_)};
  const BeQuotas quotas(snapshot, split);
  if (split >= 0 && !packed_ && lc_active) EvictFromLcSide(snapshot, split, plan);
  if (plan.evictions.empty()) {  // the end of one asks for the next plan
    EvictShortage(snapshot, Evictable(snapshot, split, quotas, lc_active), rules.held, plan);
  }

  const int32_t sms =
      split >= 0 ? snapshot.splits[static_cast<size_t>(split)].be_sms : snapshot.sm_count;
  CapSms capsms(snapshot, sms, rules.held);
  FairShare shares(snapshot);
  CopySlots slots(snapshot, shares);
  std::bitset<kMaxApps> waiting;  // apps whose oldest confined task lacks room
  Turn turn(snapshot, lc_active);
  BeOrder order;
  shares.Order(order);
  for (const HeadView* head : order) {
    if (head->kind == TaskKind::kMemcpy) {
      PlanCopy(*head, slots, shares, plan);
    } else {
      PlanKernel(snapshot, *head, rules, quotas, capsms, turn, waiting, plan);
    }
  }
}

}  // namespace gpushare::core
