// tacker: one LC kernel, one BE partner (tacker.h).

#include "src/core/policies/papers/tacker.h"

#include <algorithm>
#include <cstdint>

#include "src/core/base/tuning.h"
#include "src/core/policies/papers/overlap_pair.h"
#include "src/core/policies/papers/tacker_room.h"
#include "src/core/policies/papers/tacker_turn.h"
#include "src/core/policies/parts/bounds.h"
#include "src/core/policies/parts/copy_slots.h"
#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/headroom_ledger.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/policies/parts/lc_first.h"
#include "src/core/policies/parts/quiet.h"
#include "src/core/queueing/headroom.h"

namespace gpushare::core {
namespace {

void PublishTackerRoutes(const Snapshot& snapshot, const TackerTurn& turn, Plan& plan) {
  LcRoute route;
  route.lane_class = LaneClass::kPlain;  // no priorities: order comes from not launching
  PublishRoutes(snapshot, route, plan);
  for (size_t app = 0; app < snapshot.lc_apps.size(); ++app) {
    plan.routes[app].fast_path = !turn.MayOverlap(static_cast<int32_t>(app));
    plan.routes[app].cuts_graphs = turn.CutsGraph(static_cast<int32_t>(app));
  }
}

PlannedLaunch LcLaunch(const HeadView& lc, int32_t count) {
  PlannedLaunch launch =
      MakeLaunch(lc.task, OrdinaryForm(lc.kind), kWholeDevice, LaneClass::kPlain, Reason::kLcFirst);
  launch.count = count;
  return launch;
}

bool AnyFusedInFlight(const Snapshot& snapshot) {
  for (const RunningView& running : snapshot.running) {
    for (const PartView& part : running.parts) {
      if (part.form == Form::kFused) return true;
    }
  }
  return false;
}

// The LC work of the active queries that is not on the device: it goes before the next query's.
int64_t LcAheadNs(const Snapshot& snapshot) {
  int64_t ahead_ns = 0;
  for (const QueryView& query : snapshot.queries) {
    ahead_ns = SumNs(ahead_ns, RemainingNotIssued(query));
  }
  return ahead_ns;
}

// What an overlap may cost. A fused kernel starts behind the kernels of earlier queries: only the
// last query pays for it. Workers start at once, beside those kernels: every query pays, and so
// does the next one.
struct Room {
  int64_t fused_ns = 0;
  int64_t workers_ns = 0;

  int64_t For(const Overlap& overlap) const {
    return overlap.be_workers_per_sm == 0 ? fused_ns : workers_ns;
  }
};

// The BE head whose overlap with an LC head gains most.
struct Partner {
  const HeadView* be = nullptr;
  Overlap overlap;
  int64_t gain_ns = 0;
  const HeadView* runner_up = nullptr;  // the BE head of the next largest gain
  int64_t runner_up_gain_ns = 0;
};

// Eq. 8, and the largest T_gain. Equal gains go to the app that is next by weight. A partner with
// fewer workers, by its quota, gains in proportion.
Partner BestPartner(const Snapshot& snapshot, const HeadView& lc, const BeOrder& order,
                    const Room& room, const TackerRoom& quotas) {
  Partner best;
  if (lc.kernel == nullptr) return best;
  const OverlapFinder finder(snapshot, {lc.kernel->id, lc.overlap_index});
  OverlapFinder::Overlaps overlaps;
  const bool fused_only = IsNode(snapshot, lc);
  for (const HeadView* be : order) {
    finder.Find(lc, *be, overlaps);
    for (const Overlap& overlap : overlaps) {
      if (fused_only && overlap.be_workers_per_sm > 0) continue;
      if (!quotas.Allows(lc, *be, overlap)) continue;
      const auto gain_ns = static_cast<int64_t>(static_cast<double>(overlap.GainNs(lc, *be)) *
                                                quotas.PartnerOf(*be, overlap).share);
      if (gain_ns <= best.runner_up_gain_ns || overlap.ChargeNs(lc) >= room.For(overlap)) {
        continue;
      }
      if (gain_ns > best.gain_ns) {
        if (best.be == be) {  // another form of the same two is no runner-up
          best = {be, overlap, gain_ns, best.runner_up, best.runner_up_gain_ns};
        } else {
          best = {be, overlap, gain_ns, best.be, best.gain_ns};
        }
      } else if (be != best.be) {
        best.runner_up = be;
        best.runner_up_gain_ns = gain_ns;
      }
    }
  }
  return best;
}

// Both launches, or the one of the fused kernel.
void LaunchTogether(const Snapshot& snapshot, const HeadView& lc, const Partner& partner,
                    TackerRoom& quotas, Plan& plan) {
  PlannedLaunch launch = LcLaunch(lc, 1);
  launch.reason = Reason::kFitsHeadroom;
  if (partner.overlap.be_workers_per_sm == 0) {
    launch.form = Form::kFused;
    launch.fused_with = partner.be->task;
    launch.fused_kernel = partner.overlap.fused_kernel;
    // Its eviction word bounds the BE part from the begin on (flow/fused).
    const int32_t workers = quotas.PartnerOf(*partner.be, partner.overlap).workers;
    if (workers > 0) {
      plan.evictions.TryAdd({partner.be->task, kWholeDevice, workers, Reason::kEvictForQuota});
    }
  } else {
    // The workers first: the LC task's grid takes the room that they leave.
    PlannedLaunch workers = MakeLaunch(partner.be->task, Form::kWorkers, kWholeDevice,
                                       LaneClass::kBe, Reason::kFitsHeadroom);
    workers.workers = partner.overlap.be_workers_per_sm * snapshot.sm_count;
    plan.launches.TryAdd(workers);
  }
  plan.launches.TryAdd(launch);
  plan.choice = {.kind = ChoiceKind::kOverlap,
                 .tasks = {lc.task, partner.be->task},
                 .chosen = static_cast<int64_t>(partner.be->task.value),
                 .value = partner.gain_ns};
  if (partner.runner_up == nullptr) return;
  plan.choice.runner_up = static_cast<int64_t>(partner.runner_up->task.value);
  plan.choice.runner_up_value = partner.runner_up_gain_ns;
}

// What one plan decides, LC heads first.
class Decision {
 public:
  Decision(const Snapshot& snapshot, Plan& plan)
      : snapshot_(snapshot),
        plan_(plan),
        turn_(snapshot),
        ledger_(snapshot, MinHeadroom(snapshot), LcAheadNs(snapshot)),
        room_{turn_.headroom_ns(), std::min(turn_.headroom_ns(), ledger_.RoomNs())},
        quotas_(snapshot) {
    PublishTackerRoutes(snapshot, turn_, plan);
    ledger_.shares().Order(order_);
  }

  void PlanLc() {
    for (const HeadView& head : snapshot_.heads) {
      if (head.app_class == AppClass::kLatencyCritical) PlanLcHead(head);
    }
  }

  void PlanBe() {
    CopySlots slots(snapshot_, ledger_.shares());
    if (partner_.be != nullptr) ledger_.DebitHeadroom(partner_.charge_ns);
    for (const HeadView* be : order_) {
      if (be == partner_.be) continue;
      if (be->kind == TaskKind::kMemcpy) {
        PlanCopy(*be, slots, ledger_, plan_);
      } else if (partner_.be != nullptr) {
        plan_.holds.TryAdd({be->task, Reason::kHoldWindow, 1, 1});
      } else if (turn_.EarlierQueryWaits()) {
        plan_.holds.TryAdd({be->task, Reason::kHoldLcActive, 0, 0});
      } else {
        PlanBeAlone(*be);
      }
    }
    PlanRunningSegments(snapshot_, ledger_, plan_);
    EvictLatePartners();
  }

 private:
  void PlanLcHead(const HeadView& lc) {
    if (turn_.MayOverlap(lc.app) && turn_.GivesWay(lc) && partner_.be == nullptr) {
      const Partner best = BestPartner(snapshot_, lc, order_, room_, quotas_);
      if (best.be != nullptr) {
        LaunchTogether(snapshot_, lc, best, quotas_, plan_);
        partner_ = {best.be, best.overlap.ChargeNs(lc)};
        // Behind a fused launch the next kernel waits for this one's end, which is an event.
        if (best.overlap.be_workers_per_sm > 0) AskAgain(lc, 1);
        return;
      }
      if (turn_.CanWait(lc)) {
        const LcAppView& app = snapshot_.lc_apps[static_cast<size_t>(lc.app)];
        plan_.holds.TryAdd({lc.task, Reason::kHoldWindow, app.tasks_in_flight, kTackerTasksAhead});
        return;
      }
    }
    const int32_t count = turn_.Undecided(lc);
    if (!plan_.launches.TryAdd(LcLaunch(lc, count))) return;
    AskAgain(lc, count);
  }

  // The next kernel of the queue is a decision of its own. While a fused launch is in flight this
  // one may still have to wait for it; then planning again at once would never end.
  void AskAgain(const HeadView& lc, int32_t count) {
    if (count >= lc.ready_count) return;
    plan_.replan_at_ns = snapshot_.now_ns + (AnyFusedInFlight(snapshot_) ? kTackerReplanNs : 0);
  }

  void PlanBeAlone(const HeadView& be) {
    PlannedHold hold = ledger_.Judge(be);
    PlannedLaunch launch = BeLaunch(snapshot_, be);
    if (hold.reason == Reason::kNone && quotas_.Fit(be, launch, hold)) {
      plan_.places_wanted |= PlaceBit(launch.place);
      if (!plan_.launches.TryAdd(launch)) return;
      ledger_.Debit(be);
      quotas_.Take(be, launch);
    } else {
      plan_.holds.TryAdd(hold);
    }
  }

  // T_hr below 0 in the middle of a fused launch: the BE part leaves by its own eviction word. T_q
  // has the launch in full until its parts end, so what has passed of it is given back.
  void EvictLatePartners() {
    if (snapshot_.queries.empty() || !snapshot_.eviction_available) return;
    for (const RunningView& running : snapshot_.running) {
      for (const PartView& part : running.parts) {
        if (part.form != Form::kFused || part.evicting) continue;
        const int64_t passed_ns = snapshot_.now_ns - part.launched_ns;
        const int64_t headroom_ns = turn_.headroom_ns();
        if (headroom_ns == kNever) return;
        const int64_t left_ns = headroom_ns + std::min(passed_ns, snapshot_.queued_ns);
        if (left_ns < 0) {
          EvictTaskParts(running, PlaceBit(part.place), Reason::kEvictForLc, plan_);
          break;
        }
        const TimeNs late_ns =
            SumNs(part.launched_ns, SumNs(snapshot_.queued_ns, headroom_ns + passed_ns + 1));
        if (late_ns > snapshot_.now_ns) plan_.replan_at_ns = std::min(plan_.replan_at_ns, late_ns);
      }
    }
  }

  struct Chosen {
    const HeadView* be = nullptr;
    int64_t charge_ns = 0;
  };

  const Snapshot& snapshot_;
  Plan& plan_;
  const TackerTurn turn_;
  HeadroomLedger ledger_;
  const Room room_;
  TackerRoom quotas_;
  BeOrder order_;
  Chosen partner_;  // at most one overlap a plan
};

}  // namespace

void TackerPolicy::MakePlan(const Snapshot& snapshot, Plan& plan) {
  if (PlanQuiesced(snapshot, plan)) return;
  Decision decision(snapshot, plan);
  decision.PlanLc();
  decision.PlanBe();
}

}  // namespace gpushare::core
