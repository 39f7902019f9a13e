// What fused partners gain, and whether every LC app keeps its promise beside them
// (candidates/fused.h).

#include "src/core/policies/adaptive/candidates/fused.h"

#include <algorithm>

#include "absl/types/span.h"
#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "src/core/policies/adaptive/arrangement/worst_latency.h"
#include "src/core/policies/parts/bounds.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/promise/tuning.h"
#include "src/core/queueing/queue_tail.h"

namespace gpushare::core {
namespace {

// The LC kernel's slowdown and the BE task's work. A BE task that is longer than the opportune
// ratio makes it slows the LC kernel as at this ratio, and then goes on alone.
FusedWay AtRatio(const FusedView& view, bool lc_is_tensor, double ratio) {
  const FusedCurveView& curve = view.curve;
  FusedWay way;
  if (!(curve.inflection > 0)) return way;
  way.view = &view;
  if (lc_is_tensor) {
    way.work = std::min(ratio, curve.inflection);
    way.alone = std::max(1.0, curve.intercept);
    way.slowdown = curve.At(way.work) / way.alone;
    way.work /= way.alone;
  } else {
    way.work = std::min(ratio, 1 / curve.inflection);
    way.slowdown = curve.At(1 / way.work) * way.work;
  }
  way.slowdown = std::max(1.0, way.slowdown * (1 + curve.error));
  return way;
}

bool Joins(const FusedKernelDesc& kernel, KernelId one, KernelId other) {
  return (kernel.tensor_part == one && kernel.cuda_part == other) ||
         (kernel.cuda_part == one && kernel.tensor_part == other);
}

// Of one part in a fused block.
int32_t BlocksOf(const FusedKernelDesc& kernel, bool tensor) {
  return std::max(1, tensor ? kernel.tensor_blocks : kernel.cuda_blocks);
}

int64_t FusedBlocks(const Snapshot& snapshot, const FusedKernelDesc& kernel) {
  return int64_t{snapshot.sm_count} * std::max(1, kernel.blocks_per_sm);
}

int32_t WorkersOfSm(const KernelDesc* kernel) {
  return kernel == nullptr ? 1 : std::max(1, kernel->resources.workers_per_sm_max);
}

int64_t Stretched(int64_t ns, double stretch) {
  return static_cast<int64_t>(static_cast<double>(std::min(ns, kMaxDurationNs)) * stretch);
}

}  // namespace

bool AnyFusedPart(const Snapshot& snapshot) {
  return std::any_of(snapshot.running.begin(), snapshot.running.end(), IsFusedPart);
}

FusedPartners::FusedPartners(const Snapshot& snapshot, const Arrangement& apart, double other_value,
                             Shifts& shifts, bool allowed)
    : snapshot_(snapshot), shifts_(shifts), other_value_(other_value) {
  if (!allowed || snapshot.fused.empty() || !snapshot.eviction_available) return;
  quotas_.emplace(snapshot, kNoSplit);
  ReadApps();
  Judge(apart);
}

// Whether the task may share a launch with LC work: it leaves alone, and nothing keeps it to itself
// or to a part of the device.
bool FusedPartners::MayBePartner(const HeadView& be) const {
  return IsBeCompute(be) && be.kind == TaskKind::kKernel && be.kernel != nullptr &&
         be.whole_ns > 0 && CanBeEvicted(snapshot_, be) && !be.runs_alone &&
         !quotas_->IsConfined(be) && !quotas_->IsUnbounded(be);
}

bool FusedPartners::KeepsReservation(const FusedView& view, bool lc_is_tensor,
                                     const KernelDesc* lc) const {
  const int32_t reserved = ReservedCapSms(snapshot_);
  if (reserved == 0) return true;
  const int64_t workers =
      FusedBlocks(snapshot_, *view.kernel) * BlocksOf(*view.kernel, lc_is_tensor);
  return workers >= int64_t{reserved} * WorkersOfSm(lc);
}

// BE work goes on with as many workers as its quota has left, and slows the LC kernel in
// proportion: its other fused blocks have no partner, and all blocks share one counter of block
// tasks. Fewer workers have more of the BE task each: its load ratio in their blocks is larger.
FusedWay FusedPartners::WithinQuota(const FusedView& view, bool lc_is_tensor,
                                    const Pair& pair) const {
  const int64_t all = FusedBlocks(snapshot_, *view.kernel) * BlocksOf(*view.kernel, !lc_is_tensor);
  if (!quotas_->BoundsWorkers(*pair.be) || pair.workers_left >= all) {
    return AtRatio(view, lc_is_tensor, pair.ratio);
  }
  if (pair.workers_left <= 0) return {};
  const double share = static_cast<double>(pair.workers_left) / static_cast<double>(all);
  FusedWay way = AtRatio(view, lc_is_tensor, pair.ratio / share);
  way.partner_workers = pair.workers_left;
  way.work *= share;
  way.slowdown = 1 + share * (way.slowdown - 1);
  return way;
}

// With nothing of it in use.
int32_t FusedPartners::QuotaWorkers(const HeadView& be) const {
  return snapshot_.be_apps[static_cast<size_t>(be.app)].quota_capsms * WorkersOfSm(be.kernel);
}

FusedWay FusedPartners::WayAt(const FusedView& view, const Pair& pair) const {
  const bool lc_is_tensor = view.kernel->tensor_part == pair.lc;
  FusedWay way = WithinQuota(view, lc_is_tensor, pair);
  if (way.view != nullptr) way.slowdown += pair.turn;
  return way;
}

// The rest of a task is judged by what the pair gains with all workers of the quota, however short
// it is: the app's next task is behind it, and without it all LC kernels that wait would go alone.
FusedWay FusedPartners::BestWay(const Pair& pair) const {
  FusedWay best;
  double most = 0;
  if (!pair.lc || !(pair.ratio > 0)) return best;
  Pair judged = pair;
  if (pair.is_rest) {
    judged.ratio = kEndless;
    judged.workers_left = QuotaWorkers(*pair.be);
  }
  for (const FusedView& view : snapshot_.fused) {
    const bool lc_is_tensor = view.kernel->tensor_part == pair.lc;
    if (!Joins(*view.kernel, pair.lc, pair.be->kernel->id)) continue;
    if (!KeepsReservation(view, lc_is_tensor, pair.lc_kernel)) continue;
    const double gain = WayAt(view, judged).gain();
    if (gain <= most) continue;
    const FusedWay way = WayAt(view, pair);
    if (way.view == nullptr) continue;
    most = gain;
    best = way;
  }
  // What it takes to send the partner away must fit the budgets as any eviction.
  const bool leaves =
      best.view != nullptr && shifts_.ShareOf({.eviction_ns = EvictionOf(best, *pair.be)}) >= 1;
  return leaves ? best : FusedWay();
}

FusedWay FusedPartners::WayOf(const HeadView& lc, const HeadView& be, bool runs) const {
  if (lc.kind != TaskKind::kKernel || lc.kernel == nullptr || lc.remaining.duration_ns <= 0) {
    return {};
  }
  if (!MayBePartner(be) || (!runs && !quotas_->HasRoom(be, kWholeDevice))) return {};
  const auto lc_ns = static_cast<double>(lc.remaining.duration_ns);
  const int64_t be_ns = runs ? be.whole_ns : be.remaining.duration_ns;
  return BestWay({.lc = lc.kernel->id,
                  .lc_kernel = lc.kernel,
                  .be = &be,
                  .ratio = static_cast<double>(be_ns) / lc_ns,
                  .turn = kFusedTurnNs / lc_ns,
                  .is_rest = runs || be.resumed,
                  .workers_left = runs ? QuotaWorkers(be) : quotas_->WorkersLeft(be)});
}

FusedWay FusedPartners::MainWayOf(int32_t lc_app, const HeadView& be) const {
  if (!MayBePartner(be)) return {};
  const LcAppView& app = snapshot_.lc_apps[static_cast<size_t>(lc_app)];
  if (app.pieces.empty()) {
    return BestWay({.lc = app.main_kernel, .be = &be, .workers_left = QuotaWorkers(be)});
  }
  NodeKernelWays ways;
  FindNodeWays(app, be, ways);
  FusedWay best;
  double best_ns = 0;
  for (const GraphPiece& piece : app.pieces) {
    const FusedWay way = NodeWayOf(piece, ways);
    const double gain_ns = way.gain() * static_cast<double>(piece.solo_ns);
    if (way.view == nullptr || gain_ns <= best_ns) continue;
    best = way;
    best_ns = gain_ns;
  }
  return best;
}

// The nodes of a network are launches of a few kernels. What a cut costs is the same in each way of
// a kernel, so it does not change which one is the best.
void FusedPartners::FindNodeWays(const LcAppView& app, const HeadView& be,
                                 NodeKernelWays& ways) const {
  for (const GraphPiece& piece : app.pieces) {
    if (!piece.is_node) continue;
    const bool known = std::any_of(ways.begin(), ways.end(), [&](const NodeKernelWay& other) {
      return other.kernel == piece.kernel;
    });
    if (known) continue;
    const FusedWay way = BestWay({.lc = piece.kernel, .be = &be, .workers_left = QuotaWorkers(be)});
    ways.TryAdd({piece.kernel, way});
  }
}

// With what the cut costs. None where that is more than it gains.
FusedWay FusedPartners::NodeWayOf(const GraphPiece& node, const NodeKernelWays& ways) const {
  if (!node.is_node || node.solo_ns <= 0) return {};
  const auto* const found = std::find_if(ways.begin(), ways.end(), [&](const NodeKernelWay& other) {
    return other.kernel == node.kernel;
  });
  if (found == ways.end() || found->way.view == nullptr) return {};
  FusedWay way = found->way;
  way.slowdown += static_cast<double>(snapshot_.cut_node_ns) / static_cast<double>(node.solo_ns);
  return way.gain() > 0 ? way : FusedWay();
}

// Of tasks of its main kernel. A BE task that is longer than the LC kernel leaves before the end,
// and is not there while it does.
FusedPartners::App FusedPartners::KernelBeside(const LcAppView& view, const HeadView& be) const {
  if (!MayBePartner(be)) return {1, 0};
  Pair pair = {.lc = view.main_kernel, .be = &be, .workers_left = QuotaWorkers(be)};
  const auto lc_ns = static_cast<double>(view.main_kernel_ns);
  if (lc_ns > 0) {
    pair.ratio = static_cast<double>(be.whole_ns) / lc_ns;
    pair.turn = kFusedTurnNs / lc_ns;
  }
  const FusedWay way = BestWay(pair);
  if (way.view == nullptr) return {1, 0};
  App app{way.slowdown, way.gain()};
  if (lc_ns > 0 && pair.ratio > way.work * way.alone) {
    const double absent_ns = static_cast<double>(LeavesWithin(way, be));
    app.gain -= way.work * std::min(1.0, absent_ns / (lc_ns * way.alone * way.slowdown));
  }
  return app.gain > 0 ? app : App{1, 0};
}

// The app's time beside the BE task. gain 0: it takes no partner along.
FusedPartners::App FusedPartners::AppBeside(int32_t lc_app, const HeadView& be) const {
  const LcAppView& view = snapshot_.lc_apps[static_cast<size_t>(lc_app)];
  if (view.pieces.empty()) return KernelBeside(view, be);
  App app{1, 0};
  double whole_ns = 0;
  for (const GraphPiece& piece : view.pieces) whole_ns += static_cast<double>(piece.solo_ns);
  if (!MayBePartner(be) || !(whole_ns > 0)) return app;
  NodeKernelWays ways;
  FindNodeWays(view, be, ways);
  for (const GraphPiece& piece : view.pieces) {
    if (!piece.is_node) continue;
    const FusedWay way = NodeWayOf(piece, ways);
    const double share = static_cast<double>(piece.solo_ns) / whole_ns;
    const double cut = static_cast<double>(snapshot_.cut_node_ns) / whole_ns;
    app.slowdown += way.view == nullptr ? cut : share * (way.slowdown - 1);
    app.gain += way.view == nullptr ? -cut : share * way.gain();
  }
  return app.gain > 0 ? app : App{1, 0};
}

// In its fused blocks it has fewer workers: beyond the opportune ratio the curve says how slow it
// is.
bool FusedPartners::IsFasterAlone(const HeadView& be) const {
  for (size_t a = 0; a < snapshot_.lc_apps.size(); ++a) {
    const FusedWay way = MainWayOf(static_cast<int32_t>(a), be);
    if (way.view == nullptr) continue;
    const FusedCurveView& curve = way.view->curve;
    const bool is_tensor = way.view->kernel->tensor_part == be.kernel->id;
    const double pace = is_tensor ? curve.intercept : curve.slope + curve.bend;
    const double saved_ns = static_cast<double>(be.remaining.duration_ns) * (1 - 1 / pace);
    return pace > 1 && saved_ns > static_cast<double>(SumNs(be.eviction_ns, kReturnGapNs));
  }
  return false;
}

// Beside the LC part a block task takes longer, by the speed of a worker: the task's own speed over
// its part of the workers that it has alone.
double FusedPartners::StretchOf(const FusedWay& way, const HeadView& be) {
  const FusedKernelDesc& kernel = *way.view->kernel;
  const bool tensor = kernel.tensor_part == be.kernel->id;
  const double share =
      static_cast<double>(std::max(1, kernel.blocks_per_sm) * BlocksOf(kernel, tensor)) /
      WorkersOfSm(be.kernel);
  const FusedWay all = AtRatio(*way.view, !tensor, kEndless);
  return std::max(1.0, share * all.slowdown / std::max(all.work, kTie));
}

int64_t FusedPartners::EvictionOf(const FusedWay& way, const HeadView& be) {
  return Stretched(be.eviction_ns, StretchOf(way, be));
}

int64_t FusedPartners::TimeOf(const FusedWay& way, const HeadView& be) {
  const double alone_ns = static_cast<double>(be.blocks_left) * be.block_ns;
  const double pace = way.work * (1 + way.view->curve.error) / way.slowdown;
  return Stretched(static_cast<int64_t>(alone_ns), 1 / std::max(pace, kTie));
}

int64_t FusedPartners::LeavesWithin(const FusedWay& way, const HeadView& be) {
  return Stretched(be.eviction_p99_ns, StretchOf(way, be));
}

// Of each app, by its main kernel beside all BE work, ready or running: while a queue's task runs,
// the next one is no head. Of kernels that cannot be fused nothing is gained.
void FusedPartners::ReadApps() {
  const size_t apps = snapshot_.lc_apps.size();
  std::fill_n(apps_.begin(), apps, App{1, 0});
  int32_t tasks = 0;
  const auto read = [&](const HeadView& be) {
    if (!IsBeCompute(be)) return;
    ++tasks;
    for (size_t a = 0; a < apps; ++a) {
      const App beside = AppBeside(static_cast<int32_t>(a), be);
      apps_[a].slowdown = std::max(apps_[a].slowdown, beside.slowdown);
      apps_[a].gain += beside.gain;
    }
  };
  for (const HeadView& head : snapshot_.heads) read(head);
  for (const RunningView& running : snapshot_.running) read(running.task);
  for (size_t a = 0; a < apps && tasks > 0; ++a) apps_[a].gain /= tasks;
}

// Not where all queries that are active take no partner along, unless partners are in force. Those
// stay so while the last kernel of a query runs alone: else the queries behind it would be launched
// at once, and hold BE work until the queue is empty.
bool FusedPartners::IsInUse() const {
  const bool active = std::any_of(snapshot_.lc_apps.begin(), snapshot_.lc_apps.end(),
                                  [](const LcAppView& app) { return app.active_queries > 0; });
  if (!active || snapshot_.in_force.fused || AnyFusedPart(snapshot_)) return true;
  return std::any_of(snapshot_.heads.begin(), snapshot_.heads.end(), [&](const HeadView& head) {
    return head.app_class == AppClass::kLatencyCritical && MayFuse(head.app);
  });
}

// Between queries BE work is evicted for them, so that an eviction delays them on top.
int64_t FusedPartners::LongestEviction() const {
  int64_t longest_ns = 0;
  const auto read = [&](const HeadView& be) {
    if (MayBePartner(be)) longest_ns = std::max(longest_ns, be.eviction_ns);
  };
  for (const HeadView& head : snapshot_.heads) read(head);
  for (const RunningView& running : snapshot_.running) read(running.task);
  return longest_ns;
}

LatencyAtSlowdowns FusedPartners::LatencyOfShare(double share, int64_t delay_ns) const {
  std::array<double, kMaxApps> slowdowns;
  for (size_t a = 0; a < snapshot_.lc_apps.size(); ++a) {
    slowdowns[a] = 1 + share * (apps_[a].slowdown - 1);
  }
  return LatencyAt(snapshot_, {slowdowns.data(), snapshot_.lc_apps.size()}, delay_ns);
}

// The slack of an app's lag. Before its shadow's p99 is known no launch is judged by the lag, and
// the slack is that of a target beside the p99 of a queue at the load. None where the target is
// missed alone.
double FusedPartners::LagSlackOf(const LcAppView& app, double load) const {
  if (app.shadow_p99_ns >= app.promise.target_ns) return 0;
  const int64_t slack_ns = app.promise.LagSlack(app.solo_ns, app.shadow_p99_ns);
  if (slack_ns != kNever) return static_cast<double>(slack_ns);
  double service_ns = 0;
  for (const LcAppView& other : snapshot_.lc_apps) {
    service_ns = std::max(service_ns, static_cast<double>(other.solo_ns));
  }
  const auto target_ns = static_cast<double>(app.promise.target_ns);
  const double alone_ns =
      QueueP99(static_cast<double>(app.solo_ns), service_ns, std::min(load, kLoadMax));
  return kBoundShareOfSplit * (target_ns - alone_ns);
}

// Each launch is judged by the lag, so that no query is later than its slack
// (carry_out/fused_heads.cc). So the queue of an app that has a target alone need not keep it as if
// all launches had partners.
// As on a split, two queries may not take the slack, and the load stays below what is judged.
// The pieces of a cut graph took more than they were judged by: at a load of 0.7 the p99 was 16 %
// above the target.
bool FusedPartners::LagKeeps(double share) const {
  double load = 0;
  double longer_load = 0;
  for (size_t a = 0; a < snapshot_.lc_apps.size(); ++a) {
    load += snapshot_.lc_apps[a].load;
    longer_load += snapshot_.lc_apps[a].load * share * (apps_[a].slowdown - 1);
  }
  for (size_t a = 0; a < snapshot_.lc_apps.size(); ++a) {
    const LcAppView& app = snapshot_.lc_apps[a];
    if (HasNeverSent(app) || app.solo_ns <= 0) continue;
    if (!app.promise.HasOnlyATarget() || !app.pieces.empty()) return false;
    const double longer_ns = share * (apps_[a].slowdown - 1) * static_cast<double>(app.solo_ns);
    if (2 * longer_ns > LagSlackOf(app, load)) return false;
  }
  return load + longer_load <= kQueueLoadMax;
}

// Of LC's time that may be fused, with its shift; 0: none.
double FusedPartners::LargestShare() {
  const int64_t delay_ns = LongestEviction();
  double largest = 0;
  double share = 1;
  for (double step = 1; step >= kIdleShareMin && largest < 1; step /= 2) {
    const LatencyAtSlowdowns latency = LatencyOfShare(share, delay_ns);
    const bool kept = latency.kept || LagKeeps(share);
    if (kept) {
      largest = share;
      shift_ = latency.shift;
      shift_.shift_ns = std::min(shift_.shift_ns, shift_.limit_ns);  // the lag ends it there
    }
    share += (kept ? step : -step) / 2;
  }
  return largest;
}

void FusedPartners::Judge(const Arrangement& apart) {
  double load = 0;
  double gain = 0;
  for (size_t a = 0; a < snapshot_.lc_apps.size(); ++a) {
    load += snapshot_.lc_apps[a].load;
    gain += snapshot_.lc_apps[a].load * apps_[a].gain;
  }
  if (!(gain > kTie) || !IsInUse()) return;
  const double share = LargestShare();
  if (!(share > 0)) return;
  const double whole = snapshot_.splits.empty() ? 1 - std::min(load, kLoadMax) : apart.whole_value;
  const bool in_force = snapshot_.in_force.fused || AnyFusedPart(snapshot_);
  value_ = whole + share * gain;
  applies_ = value_ + (in_force ? kLayoutHysteresis : 0) > other_value_;
}

}  // namespace gpushare::core
