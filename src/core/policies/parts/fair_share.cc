// Start tags of BE apps, and the order that they give (fair_share.h).

#include "src/core/policies/parts/fair_share.h"

#include <algorithm>

#include "src/core/base/tuning.h"

namespace gpushare::core {
namespace {

size_t AppOf(const HeadView& head) { return static_cast<size_t>(head.app); }
bool IsBe(const HeadView& head) { return head.app_class == AppClass::kBestEffort; }
static_assert(kMaxApps <= 64);

}  // namespace

FairShare::FairShare(const Snapshot& snapshot) : snapshot_(snapshot) {
  for (size_t app = 0; app < snapshot.be_apps.size(); ++app) {
    tags_ns_[app] = snapshot.be_apps[app].attained_ns;
  }
  if (snapshot.be_apps.size() < 2) return;
  for (const HeadView& head : snapshot.heads) {
    if (snapshot.now_ns - head.ready_ns <= kBeWaitNsMax) continue;
    any_overdue_ = any_overdue_ || (IsBe(head) && WaitsTooLong(head));
  }
}

double FairShare::Weight(const HeadView& head) const {
  return std::max(snapshot_.be_apps[AppOf(head)].fair_weight, kFairWeightMin);
}

double FairShare::Cost(const HeadView& head) const {
  return static_cast<double>(std::max<int64_t>(head.remaining.duration_ns, 1)) / Weight(head);
}

TimeNs FairShare::WaitsSince(const HeadView& head) const {
  return std::max(head.ready_ns, snapshot_.be_apps[AppOf(head)].served_ns);
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
  return tags_ns_[AppOf(a)] < tags_ns_[AppOf(b)];
}

bool FairShare::LeavesTo(const HeadView& head, int32_t app) const {
  if (app < 0 || app == head.app || IsOverdue(head)) return false;
  const double slack_ns = std::min(kFairSlack * Cost(head), kFairSlackNsMax / Weight(head));
  return tags_ns_[static_cast<size_t>(app)] + slack_ns < tags_ns_[AppOf(head)];
}

bool FairShare::Displaces(const HeadView& head, const HeadView& running) const {
  if (head.app == running.app) return head.sequence < running.sequence;
  if (IsOverdue(head)) return true;
  // A tag counts all of a task on the device. What is left of it is not yet got.
  double got_ns = tags_ns_[AppOf(running)];
  for (const RunningView& each : snapshot_.running) {
    if (IsBe(each.task) && each.task.app == running.app) got_ns -= Cost(each.task);
  }
  return tags_ns_[AppOf(head)] + kFairSlackNsMax / Weight(head) < got_ns;
}

void FairShare::Charge(const HeadView& head) { tags_ns_[AppOf(head)] += Cost(head); }

void FairShare::Order(BeOrder& order) const {
  struct Key {
    double at_ns;  // start tag; of an overdue head since when it waits, below all tags
    const HeadView* head;
  };
  std::array<Key, kMaxHeads> keys;  // ascending
  std::array<double, kMaxApps> next_ns;
  std::array<const HeadView*, kMaxApps> before;  // last head of each app
  uint64_t seen = 0;
  size_t count = 0;
  const bool one_app = snapshot_.be_apps.size() < 2;
  for (const HeadView& head : snapshot_.heads) {
    if (!IsBe(head) || count == keys.size()) continue;
    Key key{0, &head};
    if (!one_app) {
      const size_t app = AppOf(head);
      const bool first = (seen >> app & 1) == 0;
      seen |= uint64_t{1} << app;
      next_ns[app] = first ? tags_ns_[app] : next_ns[app] + Cost(*before[app]);
      before[app] = &head;
      key.at_ns = IsOverdue(head) ? static_cast<double>(WaitsSince(head) - kNever) : next_ns[app];
    }
    size_t at = count++;
    for (; at > 0 && key.at_ns < keys[at - 1].at_ns; --at) keys[at] = keys[at - 1];
    keys[at] = key;
  }
  for (size_t i = 0; i < count; ++i) order.Add(keys[i].head);
}

}  // namespace gpushare::core
