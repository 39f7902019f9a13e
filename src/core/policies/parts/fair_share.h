// Weights: which BE app is next by start-time fair queueing (Goyal, Vin and Cheng 1996).
//
// An app's start tag is the whole-device time that it got or has on the device, over its weight;
// the app with the least is next. SM time and the time of copies in each direction are shared
// apart, so an app has a tag for each (ResourceOf). Where a window lets a second task queue behind
// a running one, the running task's app may be next again, with a task that its queue holds until
// the running one is done. The place in the window is then left to it: otherwise two apps with one
// queue each would alternate, whatever their weights. Nothing is left idle but the latency of one
// launch.
//
// The head of an app that had nothing on the device for kBeWaitNsMax goes first. With a single BE
// app the order is that of submission.
//
// Used by adaptive, smguard and baymax while one plan is made. Pure; nothing allocates.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PARTS_FAIR_SHARE_H_
#define GPUSHARE_SRC_CORE_POLICIES_PARTS_FAIR_SHARE_H_

#include <array>
#include <cstdint>

#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/limits.h"
#include "src/core/base/types.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

using BeOrder = BoundedList<const HeadView*, kMaxHeads>;

class FairShare {
 public:
  explicit FairShare(const Snapshot& snapshot);

  // Whether some head waits too long, so that its time decides.
  bool any_overdue() const { return any_overdue_; }
  // Whether BE head `a` goes before BE head `b`, which was submitted earlier. Both need the same
  // resource.
  bool GoesBefore(const HeadView& a, const HeadView& b) const;
  // Whether the place in a window behind a task of `app` that is followed is left to that app. The
  // task needs the head's resource.
  bool LeavesTo(const HeadView& head, int32_t app) const;
  // Whether a running task of BE app leaves for the head: its app got more than the head's, by more
  // than the slack, so that the two do not evict each other in turns.
  bool Displaces(const HeadView& head, const HeadView& running) const;
  // The head is launched.
  void Charge(const HeadView& head);

  // Sorts BE heads, given in the order of the snapshot, as if each were launched in its turn. Those
  // of different resources are compared by how far each is behind the first of its own.
  void Sort(BeOrder& order) const;
  // Adds all BE heads to an empty list and sorts them.
  void Order(BeOrder& order) const;

 private:
  using FirstTags = std::array<double, kSharedResources>;  // the least of the heads
  FirstTags FindFirstTags(const BeOrder& heads) const;
  double Tag(const HeadView& head) const;
  double Weight(const HeadView& head) const;
  double Cost(const HeadView& head) const;
  TimeNs WaitsSince(const HeadView& head) const;
  bool WaitsTooLong(const HeadView& head) const;
  bool IsOverdue(const HeadView& head) const;

  const Snapshot& snapshot_;
  bool any_overdue_ = false;
  // By resource and index into be_apps.
  std::array<std::array<double, kMaxApps>, kSharedResources> tags_ns_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PARTS_FAIR_SHARE_H_
