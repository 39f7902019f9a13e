// Candidate: a BE kernel as the fused partner of LC kernels.
//
// Where a fused kernel of an LC app's main kernel and of BE work is registered, the LC kernels of a
// query take BE work along, one launch each (carry_out/fused_heads.h). Between queries BE work has
// the whole device. Of one pair, by its curve t over the load ratio (Tacker eq. 1 to 6), with r0
// the opportune ratio, e the curve's error, and LC in the Tensor-core part:
//
//   slowdown  t(r0) (1 + e)               of the LC kernel; in the CUDA-core part over r0
//   work      r0                          BE work in an LC kernel's time alone; 1 / r0
//   alone     t(0), at least 1            of a Tensor-core part; slowdown and work are over it
//   gain      work - (slowdown - 1)       a share of LC's time; less than 0: not fused
//   turn      kFusedTurnNs / duration     added to the slowdown where the LC kernel is known
//   absent    work x LeavesWithin / (duration x slowdown), off the app's gain: a BE task that is
//             longer than the LC kernel leaves before its end
//   graph     of an LC app whose graph has pieces (seams/node_cut.h): slowdown and gain of its
//             nodes, by their share of the graph; each node costs cut_node_ns, fused or not
//
//   value     the whole device's, and load x share x gain
//   share     of LC's time that is fused: the largest that the queue of every LC app keeps its
//             promise with, or the lag a target: each launch is judged by itself again, by the lag
//   shift     of the LC app that this brings closest to its limit
//
// BE work stays within its quota by its own eviction word, so that the gain counts only the quota's
// part of the workers. An LC app keeps its reservation: its part alone has as many CapSMs. Chosen
// where it beats the best of the other arrangements; it gives way to a trial that hopes for more.
//
// Threads: the planner's. Pure; nothing allocates.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CANDIDATES_FUSED_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CANDIDATES_FUSED_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/limits.h"
#include "src/core/policies/adaptive/arrangement/arrangement.h"
#include "src/core/policies/adaptive/arrangement/shift.h"
#include "src/core/policies/adaptive/arrangement/worst_latency.h"
#include "src/core/policies/parts/be_quota.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// How an LC kernel and a BE task fare in one fused kernel.
struct FusedWay {
  const FusedView* view = nullptr;  // null: in none
  double slowdown = 1;              // of the LC kernel, with the error and a turn
  double work = 0;                  // of the BE task, in the LC kernel's time alone
  // The LC kernel's time alone over its prediction, as the curve of a Tensor-core part begins. A
  // kernel that never runs alone is measured no other way.
  double alone = 1;
  int32_t partner_workers = 0;  // that its quota leaves the BE task; 0: all
  double gain() const { return work - (slowdown - 1); }
};

// Whether the running task is a part of a fused launch that it was not told to leave.
inline bool IsFusedPart(const RunningView& running) {
  return std::any_of(running.parts.begin(), running.parts.end(), [](const PartView& part) {
    return part.form == Form::kFused && !part.evicting;
  });
}
bool AnyFusedPart(const Snapshot& snapshot);

class FusedPartners {
 public:
  // `apart`: the best split, or the whole device. `other_value`: of the best of all the others.
  // Without `allowed` they never apply. `shifts` follow the snapshot.
  FusedPartners(const Snapshot& snapshot, const Arrangement& apart, double other_value,
                Shifts& shifts, bool allowed);

  bool applies() const { return applies_; }
  // What follows is for partners that apply.
  double value() const { return value_; }
  double other_value() const { return other_value_; }
  LatencyShift shift() const { return shift_; }
  // Whether kernels of this LC app may have a partner among the BE work that is there.
  bool MayFuse(int32_t lc_app) const { return apps_[static_cast<size_t>(lc_app)].gain > 0; }
  // Whether these are nodes of the app's graph, which has to be submitted in pieces for it.
  bool CutsGraph(int32_t lc_app) const {
    return MayFuse(lc_app) && !snapshot_.lc_apps[static_cast<size_t>(lc_app)].pieces.empty();
  }
  // The largest slowdown of its kernels by a partner.
  double SlowdownOf(int32_t lc_app) const { return apps_[static_cast<size_t>(lc_app)].slowdown; }

  // The fused kernel of this LC head and BE task that gains most, both at their predicted
  // durations; without one that gains, or where the BE task may not be a partner, none. Of a task
  // that `runs`: as if its rest or the task behind it were ready, with all of its quota.
  FusedWay WayOf(const HeadView& lc, const HeadView& be, bool runs) const;
  // The same of the app's main kernel and a BE task without an end, and without a turn. Of a graph
  // with pieces, of the node that gains most.
  FusedWay MainWayOf(int32_t lc_app, const HeadView& be) const;
  // Whether a partner whose LC kernel has ended does better as workers on the whole device, after
  // an eviction and a launch.
  bool IsFasterAlone(const HeadView& be) const;
  // What the BE task's eviction from the launch adds to a query, and the p99 of the time until it
  // has left.
  static int64_t EvictionOf(const FusedWay& way, const HeadView& be);
  static int64_t LeavesWithin(const FusedWay& way, const HeadView& be);
  // How long the BE task, or its rest, takes beside an LC kernel, from its launch on.
  static int64_t TimeOf(const FusedWay& way, const HeadView& be);

 private:
  // The kernels of an LC app beside the BE work that is there.
  struct App {
    double slowdown;
    double gain;  // of its time; the mean over the BE tasks
  };
  static constexpr double kEndless = std::numeric_limits<double>::infinity();

  // One LC kernel beside a BE task.
  struct Pair {
    KernelId lc;
    const KernelDesc* lc_kernel = nullptr;  // null: its description is not at hand
    const HeadView* be = nullptr;
    double ratio = kEndless;   // the BE task's time alone over the LC kernel's
    double turn = 0;           // over the LC kernel's time
    bool is_rest = false;      // of a BE task that was on the device before
    int32_t workers_left = 0;  // that the quota leaves the BE task, where one bounds its workers
  };
  FusedWay WayAt(const FusedView& view, const Pair& pair) const;
  FusedWay BestWay(const Pair& pair) const;
  // The way of each kernel of the app's nodes beside the BE task, in front of any cost of a cut.
  struct NodeKernelWay {
    KernelId kernel;
    FusedWay way;
  };
  using NodeKernelWays = BoundedList<NodeKernelWay, kMaxCutNodes>;
  void FindNodeWays(const LcAppView& app, const HeadView& be, NodeKernelWays& ways) const;
  FusedWay NodeWayOf(const GraphPiece& node, const NodeKernelWays& ways) const;
  App KernelBeside(const LcAppView& view, const HeadView& be) const;
  App AppBeside(int32_t lc_app, const HeadView& be) const;
  static double StretchOf(const FusedWay& way, const HeadView& be);
  int32_t QuotaWorkers(const HeadView& be) const;
  bool MayBePartner(const HeadView& be) const;
  bool KeepsReservation(const FusedView& view, bool lc_is_tensor, const KernelDesc* lc) const;
  FusedWay WithinQuota(const FusedView& view, bool lc_is_tensor, const Pair& pair) const;
  void ReadApps();
  bool IsInUse() const;
  int64_t LongestEviction() const;
  LatencyAtSlowdowns LatencyOfShare(double share, int64_t delay_ns) const;
  double LagSlackOf(const LcAppView& app, double load) const;
  bool LagKeeps(double share) const;
  double LargestShare();
  void Judge(const Arrangement& apart);

  const Snapshot& snapshot_;
  Shifts& shifts_;
  std::optional<BeQuotas> quotas_;  // where partners are compared
  std::array<App, kMaxApps> apps_;  // of the snapshot's LC apps, where partners are compared
  double other_value_;
  double value_ = 0;
  LatencyShift shift_;
  bool applies_ = false;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CANDIDATES_FUSED_H_
