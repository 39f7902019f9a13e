// Start tags of BE apps, and the order that they give (fair_share.h).

#include "src/core/policies/parts/fair_share.h"

#include <algorithm>
#include <limits>

#include "src/core/base/tuning.h"

namespace gpushare::core {
namespace {

size_t AppOf(const HeadView& head) { return static_cast<size_t>(head.app); }
bool IsBe(const HeadView& head) { return head.app_class == AppClass::kBestEffort; }
size_t ResourceOf(const HeadView& head) { return core::ResourceOf(head.kind, head.direction); }
static_assert(kMaxApps <= 64);

}  // namespace

FairShare::FairShare(const Snapshot& snapshot) : snapshot_(snapshot) {
  for (size_t app = 0; app < snapshot.be_apps.size(); ++app) {
    for (size_t resource = 0; resource < kSharedResources; ++resource) {
      tags_ns_[resource][app] = snapshot.be_apps[app].attained_ns[resource];
    }
  }
  if (snapshot.be_apps.size() < 2) return;
  for (const HeadView& head : snapshot.heads) {
    if (snapshot.now_ns - head.ready_ns <= kBeWaitNsMax) continue;
    any_overdue_ = any_overdue_ || (IsBe(head) && WaitsTooLong(head));
  }
}

double FairShare::Tag(const HeadView& head) const {
  return tags_ns_[ResourceOf(head)][AppOf(head)];
}

double FairShare::Weight(const HeadView& head) const {
  return std::max(snapshot_.be_apps[AppOf(head)].fair_weight, kFairWeightMin);
}

double FairShare::Cost(const HeadView& head) const {
  return static_cast<double>(std::max<int64_t>(head.remaining.duration_ns, 1)) / Weight(head);
}

TimeNs FairShare::WaitsSince(const HeadView& head) const {
  return std::max(head.ready_ns, snapshot_.be_apps[AppOf(head)].served_ns[ResourceOf(head)]);
}

bool FairShare::WaitsTooLong(const HeadView& head) const {
  return snapshot_.now_ns - WaitsSince(head) > kBeWaitNsMax;
}

bool FairShare::IsOverdue(const HeadView& head) const { return any_overdue_ && WaitsTooLong(head); }

bool FairShare::GoesBefore(const HeadView& a, const HeadView& b) const {
  if (a.app == b.app) return false;
  const bool overdue = IsOverdue(a);
  if (overdue != IsOverdue(b)) return overdue;
  if (overdue) return WaitsSince(a) < WaitsSince(b);
  return Tag(a) < Tag(b);
}

bool FairShare::LeavesTo(const HeadView& head, int32_t app) const {
  if (app < 0 || app == head.app || IsOverdue(head)) return false;
  const double slack_ns = std::min(kFairSlack * Cost(head), kFairSlackNsMax / Weight(head));
  return tags_ns_[ResourceOf(head)][static_cast<size_t>(app)] + slack_ns < Tag(head);
}

bool FairShare::Displaces(const HeadView& head, const HeadView& running) const {
  if (head.app == running.app) return head.sequence < running.sequence;
  if (IsOverdue(head)) return true;
  // A tag counts all of a task on the device. What is left of it is not yet got.
  double got_ns = Tag(running);
  for (const RunningView& each : snapshot_.running) {
    const bool same = IsBe(each.task) && each.task.app == running.app;
    if (same && ResourceOf(each.task) == ResourceOf(running)) got_ns -= Cost(each.task);
  }
  return Tag(head) + kFairSlackNsMax / Weight(head) < got_ns;
}

void FairShare::Charge(const HeadView& head) {
  tags_ns_[ResourceOf(head)][AppOf(head)] += Cost(head);
}

FairShare::FirstTags FairShare::FindFirstTags(const BeOrder& heads) const {
  FirstTags first_ns;
  first_ns.fill(std::numeric_limits<double>::infinity());
  for (const HeadView* const head : heads) {
    first_ns[ResourceOf(*head)] = std::min(first_ns[ResourceOf(*head)], Tag(*head));
  }
  return first_ns;
}

void FairShare::Order(BeOrder& order) const {
  for (const HeadView& head : snapshot_.heads) {
    if (IsBe(head)) order.TryAdd(&head);
  }
  Sort(order);
}

void FairShare::Sort(BeOrder& order) const {
  if (snapshot_.be_apps.size() < 2) return;
  struct Key {
    double at_ns;  // start tag; of an overdue head since when it waits, below all tags
    const HeadView* head;
  };
  std::array<Key, kMaxHeads> keys;  // ascending
  // By resource and app.
  std::array<std::array<double, kMaxApps>, kSharedResources> next_ns;
  std::array<std::array<const HeadView*, kMaxApps>, kSharedResources> before;  // the last head
  std::array<uint64_t, kSharedResources> seen{};
  size_t count = 0;
  const FirstTags first_ns = FindFirstTags(order);
  for (const HeadView* const head : order) {
    const size_t app = AppOf(*head);
    const size_t resource = ResourceOf(*head);
    double& tag_ns = next_ns[resource][app];
    const bool first = (seen[resource] >> app & 1) == 0;
    seen[resource] |= uint64_t{1} << app;
    tag_ns = first ? Tag(*head) : tag_ns + Cost(*before[resource][app]);
    before[resource][app] = head;
    const Key key = {IsOverdue(*head) ? static_cast<double>(WaitsSince(*head) - kNever)
                                      : tag_ns - first_ns[resource],
                     head};
    size_t at = count++;
    for (; at > 0 && key.at_ns < keys[at - 1].at_ns; --at) keys[at] = keys[at - 1];
    keys[at] = key;
  }
  for (size_t i = 0; i < count; ++i) order[static_cast<int>(i)] = keys[i].head;
}

}  // namespace gpushare::core
