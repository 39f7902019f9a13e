// What reservations and quotas leave to BE work under adaptive and smguard
// (gpushare_reserve_capsm).
//
// A reservation leaves LC its CapSMs free, or freed within an eviction; a quota bounds its app
// (sm_limit.h). Work that is bounded by a place is *confined*: it runs in its home, the largest BE
// side within the limit that does not reach into the arrangement's LC side. All BE sides lie in
// each other, so what runs in two homes holds no more SMs than the larger one. Homes are found
// once.
//
// Work that no place holds within its limit is *unbounded*. A submit of it is refused; what was
// accepted before the quota or reservation takes its turn alone, while no query is active.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PARTS_BE_QUOTA_H_
#define GPUSHARE_SRC_CORE_POLICIES_PARTS_BE_QUOTA_H_

#include <array>
#include <cstdint>

#include "src/core/base/limits.h"
#include "src/core/base/types.h"
#include "src/core/checks/sm_limit.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// Rounding of sums of 1/M; far below the smallest worker.
inline constexpr double kCapSmEpsilon = 1e-6;

// Of all LC apps: one side holds them.
int32_t ReservedCapSms(const Snapshot& snapshot);

// The split with the largest BE side of at most `sms` SMs; -1: none is so small.
int32_t SplitWithin(const Snapshot& snapshot, int32_t sms);

class BeQuotas {
 public:
  // `split`: an index into snapshot.splits, or negative for the whole device.
  BeQuotas(const Snapshot& snapshot, int32_t split);

  bool any() const { return any_; }
  // SMs that the task may hold; the device's when nothing bounds it.
  int32_t LimitOf(const HeadView& task) const;
  bool IsConfined(const HeadView& task) const {
    if (!any_) return false;
    const Bound& bound = BoundOf(task);
    return bound.limited && task.confinable && bound.home != kNoPlace;
  }
  // Of a confined task.
  PlaceIndex HomeOf(const HeadView& task) const {
    return any_ && task.confinable ? BoundOf(task).home : kNoPlace;
  }
  // Whether the task has a limit that neither workers nor a place keep.
  bool IsUnbounded(const HeadView& task) const {
    if (!any_) return false;
    const Bound& bound = BoundOf(task);
    return bound.limited && !(task.confinable && bound.home != kNoPlace);
  }
  // Whether a spread quota bounds the task's workers.
  bool BoundsWorkers(const HeadView& task) const;
  // Workers that its quota leaves to a launch of it.
  int32_t WorkersLeft(const HeadView& task) const;
  // Whether a launch of the task on the place stays within its app's quota.
  bool HasRoom(const HeadView& task, PlaceIndex place) const;
  // Whether a spread quota bounds the task, and the device has its CapSMs beside all others' use.
  bool FitsBeside(const HeadView& task) const {
    return any_ && BoundsWorkers(task) && all_used_ + LeftOf(task) <= sms_.device + kCapSmEpsilon;
  }
  // What its app holds of its quota; an unbounded task: the SMs that it needs, and its limit.
  PlannedHold HoldOf(const HeadView& task) const;
  void Take(const HeadView& task, PlaceIndex place);

 private:
  const BeAppView& AppOf(const HeadView& task) const {
    return snapshot_.be_apps[static_cast<size_t>(task.app)];
  }
  // Tasks of one app that have the same bound: by whether, and how, they leave when evicted.
  enum Leaving : size_t { kStays, kWorkers, kSegments, kLeavings };
  Leaving LeavingOf(const HeadView& task) const {
    if (!CanBeEvicted(snapshot_, task)) return kStays;
    return task.kind == TaskKind::kGraph ? kSegments : kWorkers;
  }
  struct Bound {  // without initial values: three arrays of them are made each plan
    int32_t sms;
    PlaceIndex home;  // of tasks that a partition holds
    bool limited;     // a place keeps the bound, not the number of workers
  };
  using Bounds = std::array<Bound, kLeavings>;
  Bound MakeBound(int32_t quota_capsms, bool evictable) const;
  Bounds MakeBounds(const BeAppView& app) const;
  void FindBounds();
  const Bound& BoundOf(const HeadView& task) const {
    return bounds_[static_cast<size_t>(task.app)][LeavingOf(task)];
  }
  double LeftOf(const HeadView& task) const;

  const Snapshot& snapshot_;
  int32_t be_sms_;  // of the arrangement's BE side; of the device without one
  SmCounts sms_;
  bool any_ = false;
  std::array<Bounds, kMaxApps> bounds_;  // by BE app
  std::array<double, kMaxApps> used_;
  double all_used_ = 0;
};

// Evicts what an app uses beyond a quota that shrank. Does nothing beside other evictions: their
// end asks for the next plan.
void EvictOverQuotas(const Snapshot& snapshot, Plan& plan);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PARTS_BE_QUOTA_H_
