// Turns of LC kernels (tacker_turn.h).

#include "src/core/policies/papers/tacker_turn.h"

#include <algorithm>

#include "src/core/base/tuning.h"
#include "src/core/policies/papers/overlap_pair.h"
#include "src/core/policies/parts/launch_form.h"

namespace gpushare::core {
namespace {

// One BE task of each kernel that is ready or running: one that is followed, where there is one.
using BeKernels = BoundedList<const HeadView*, kMaxHeads>;

void AddKernel(const HeadView& task, BeKernels& kernels) {
  if (!IsBeCompute(task) || task.kernel == nullptr) return;
  for (const HeadView*& known : kernels) {
    if (known->kernel != task.kernel) continue;
    if (task.followed) known = &task;
    return;
  }
  kernels.TryAdd(&task);
}

// Whether the task is a part of a fused launch, and its rest is predicted to take at most so long.
// T_k_fuse is charged until both parts have ended, so the wait is paid for.
bool FusedEndsWithin(const RunningView& running, int64_t bound_ns) {
  return running.task.remaining.duration_ns <= bound_ns &&
         std::any_of(running.parts.begin(), running.parts.end(),
                     [](const PartView& part) { return part.form == Form::kFused; });
}

KernelRow MainKernel(const Snapshot& snapshot, const LcAppView& app) {
  KernelRow row{app.main_kernel, -1};
  const auto rows = snapshot.co_schedules.rows;
  for (size_t i = 0; i < rows.size() && app.main_kernel; ++i) {
    if (rows[i]->id == app.main_kernel) row.overlap_index = static_cast<int32_t>(i);
  }
  return row;
}

// Whether a fused kernel of the node and a BE task saves more than a cut costs. Workers beside the
// node's grid are no reason to cut.
bool GainsByCut(const Snapshot& snapshot, const GraphPiece& piece, const HeadView& be) {
  if (!piece.is_node) return false;
  return std::any_of(snapshot.fused.begin(), snapshot.fused.end(), [&](const FusedView& fused) {
    const KernelId tensor = fused.kernel->tensor_part;
    const KernelId cuda = fused.kernel->cuda_part;
    const bool joins = (tensor == piece.kernel && cuda == be.kernel->id) ||
                       (cuda == piece.kernel && tensor == be.kernel->id);
    return joins &&
           FusedGainNs(fused, piece.kernel, piece.solo_ns, be.remaining.duration_ns, be.followed) >
               snapshot.cut_node_ns &&
           !IsPruned(snapshot, fused);
  });
}

}  // namespace

bool IsNode(const Snapshot& snapshot, const HeadView& lc) {
  const auto& pieces = snapshot.lc_apps[static_cast<size_t>(lc.app)].pieces;
  return std::any_of(pieces.begin(), pieces.end(), [&](const GraphPiece& piece) {
    return piece.is_node && piece.kernel == lc.kernel->id;
  });
}

TackerTurn::TackerTurn(const Snapshot& snapshot) : snapshot_(snapshot) {
  // With more active queries than a snapshot holds the last one is not known.
  if (!snapshot.queries.empty() && !snapshot.queries_left_out) {
    last_ = &snapshot.queries.back();
  }
  BeKernels kernels;
  for (const HeadView& head : snapshot.heads) AddKernel(head, kernels);
  for (const RunningView& running : snapshot.running) AddKernel(running.task, kernels);
  const auto gains = [&](const KernelRow& lc) {
    const OverlapFinder finder(snapshot, lc);
    return std::any_of(kernels.begin(), kernels.end(),
                       [&](const HeadView* be) { return finder.EverGains(*be); });
  };
  for (size_t app = 0; app < snapshot.lc_apps.size() && !kernels.empty(); ++app) {
    const LcAppView& view = snapshot.lc_apps[app];
    cuts_graph_[app] =
        std::any_of(view.pieces.begin(), view.pieces.end(), [&](const GraphPiece& piece) {
          return std::any_of(kernels.begin(), kernels.end(),
                             [&](const HeadView* be) { return GainsByCut(snapshot, piece, *be); });
        });
    may_overlap_[app] = cuts_graph_[app] || gains(MainKernel(snapshot, view));
  }
  for (const HeadView& head : snapshot.heads) {
    if (head.app_class != AppClass::kLatencyCritical) continue;
    earlier_waits_ = earlier_waits_ || (last_ != nullptr && !IsOfLast(head));
    const auto app = static_cast<size_t>(head.app);
    if (may_overlap_[app] || kernels.empty() || head.kernel == nullptr) continue;
    may_overlap_[app] = gains({head.kernel->id, head.overlap_index});
  }
}

bool TackerTurn::IsOfLast(const HeadView& lc) const {
  return last_ != nullptr && lc.query == last_->query;
}

bool TackerTurn::GivesWay(const HeadView& lc) const {
  return IsOfLast(lc) && last_->headroom_ns > kTackerHeadroomNsMin && !earlier_waits_;
}

bool TackerTurn::CanWait(const HeadView& lc) const {
  const LcAppView& app = snapshot_.lc_apps[static_cast<size_t>(lc.app)];
  if (!GivesWay(lc) || lc.kernel == nullptr) return false;
  const bool has_work =
      app.tasks_in_flight >= kTackerTasksAhead && last_->issued_ns >= kTackerAheadNs;
  const OverlapFinder finder(snapshot_, {lc.kernel->id, lc.overlap_index});
  const bool node = IsNode(snapshot_, lc);
  return std::any_of(
      snapshot_.running.begin(), snapshot_.running.end(), [&](const RunningView& running) {
        return running.task.app_class == AppClass::kBestEffort && running.task.followed &&
               (has_work || FusedEndsWithin(running, lc.remaining.duration_ns)) &&
               (node ? finder.FusedEverGains(running.task) : finder.EverGains(running.task));
      });
}

int32_t TackerTurn::Undecided(const HeadView& lc) const {
  if (last_ == nullptr || !MayOverlap(lc.app)) return lc.ready_count;
  // Tasks of the last query may stand behind this one.
  const bool may_be_followed = last_->lc_app == lc.app && last_->headroom_ns > kTackerHeadroomNsMin;
  return may_be_followed ? 1 : lc.ready_count;
}

}  // namespace gpushare::core
