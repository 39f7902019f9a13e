// tacker:direct: LC heads with the first BE head that fits (tacker_direct.h).

#include "src/core/policies/papers/tacker_direct.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "src/core/base/tuning.h"
#include "src/core/policies/parts/bounds.h"
#include "src/core/policies/parts/copy_slots.h"
#include "src/core/policies/parts/headroom_ledger.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/policies/parts/lc_first.h"
#include "src/core/policies/parts/quiet.h"

namespace gpushare::core {
namespace {

bool HasFused(const Snapshot& snapshot, KernelId lc, const HeadView& be) {
  if (!IsBeCompute(be) || be.kernel == nullptr || be.kind != TaskKind::kKernel) return false;
  return std::any_of(snapshot.fused.begin(), snapshot.fused.end(), [&](const FusedView& fused) {
    const KernelId tensor = fused.kernel->tensor_part;
    const KernelId cuda = fused.kernel->cuda_part;
    return (tensor == lc && cuda == be.kernel->id) || (cuda == lc && tensor == be.kernel->id);
  });
}

// Whether BE work that is ready or running has a fused kernel with this one.
bool HasAnyFused(const Snapshot& snapshot, KernelId lc) {
  const auto fits = [&](const HeadView& be) { return HasFused(snapshot, lc, be); };
  return std::any_of(snapshot.heads.begin(), snapshot.heads.end(), fits) ||
         std::any_of(snapshot.running.begin(), snapshot.running.end(),
                     [&](const RunningView& running) { return fits(running.task); });
}

class Decision {
 public:
  Decision(const Snapshot& snapshot, Plan& plan)
      : snapshot_(snapshot), plan_(plan), ledger_(snapshot, MinHeadroom(snapshot), 0) {
    ledger_.shares().Order(order_);
    FindApps();
    LcRoute route;
    route.lane_class = LaneClass::kPlain;
    PublishRoutes(snapshot, route, plan);
    for (size_t app = 0; app < snapshot.lc_apps.size(); ++app) {
      plan.routes[app].fast_path = !may_fuse_[app];  // the scheduler must see each kernel first
    }
  }

  // One fused kernel a plan.
  void PlanLc() {
    for (const HeadView& lc : snapshot_.heads) {
      if (lc.app_class != AppClass::kLatencyCritical) continue;
      const bool may_fuse = may_fuse_[static_cast<size_t>(lc.app)];
      PlannedLaunch launch = MakeLaunch(lc.task, OrdinaryForm(lc.kind), kWholeDevice,
                                        LaneClass::kPlain, Reason::kLcFirst);
      launch.count = may_fuse ? 1 : lc.ready_count;
      const HeadView* partner = may_fuse && partner_ == nullptr ? PartnerOf(lc) : nullptr;
      if (partner != nullptr) {
        launch.form = Form::kFused;
        launch.fused_with = partner->task;
        partner_ = partner;
      }
      plan_.launches.TryAdd(launch);
      if (launch.count < lc.ready_count) {
        plan_.replan_at_ns = snapshot_.now_ns + kTackerReplanNs;
      }
    }
  }

  void PlanBe() {
    CopySlots slots(snapshot_, ledger_.shares());
    const bool lc_active = !snapshot_.queries.empty();
    for (const HeadView* be : order_) {
      if (be == partner_) continue;
      if (be->kind == TaskKind::kMemcpy) {
        PlanCopy(*be, slots, ledger_, plan_);
      } else if (lc_active) {
        plan_.holds.TryAdd({be->task, Reason::kHoldLcActive, 0, 0});
      } else {
        PlanBeCompute(snapshot_, *be, ledger_, plan_);
      }
    }
    if (lc_active) {
      EvictRunningSegments(snapshot_, plan_);
    } else {
      PlanRunningSegments(snapshot_, ledger_, plan_);
    }
  }

 private:
  // The LC apps of which a kernel, the main one or a ready one, has a fused kernel with BE work.
  void FindApps() {
    for (size_t app = 0; app < snapshot_.lc_apps.size(); ++app) {
      const KernelId kernel = snapshot_.lc_apps[app].main_kernel;
      may_fuse_[app] = kernel && HasAnyFused(snapshot_, kernel);
    }
    for (const HeadView& head : snapshot_.heads) {
      if (head.app_class != AppClass::kLatencyCritical || head.kernel == nullptr) continue;
      bool& may_fuse = may_fuse_[static_cast<size_t>(head.app)];
      may_fuse = may_fuse || HasAnyFused(snapshot_, head.kernel->id);
    }
  }

  const HeadView* PartnerOf(const HeadView& lc) const {
    if (lc.kernel == nullptr || lc.kind != TaskKind::kKernel) return nullptr;
    for (const HeadView* be : order_) {
      if (HasFused(snapshot_, lc.kernel->id, *be)) return be;
    }
    return nullptr;
  }

  const Snapshot& snapshot_;
  Plan& plan_;
  HeadroomLedger ledger_;
  BeOrder order_;
  std::array<bool, kMaxApps> may_fuse_{};
  const HeadView* partner_ = nullptr;  // in the fused launch of this plan
};

}  // namespace

void TackerDirectPolicy::MakePlan(const Snapshot& snapshot, Plan& plan) {
  if (PlanQuiesced(snapshot, plan)) return;
  Decision decision(snapshot, plan);
  decision.PlanLc();
  decision.PlanBe();
}

}  // namespace gpushare::core
