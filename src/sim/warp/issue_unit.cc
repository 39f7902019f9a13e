#include "src/sim/warp/issue_unit.h"

#include <algorithm>

namespace gpushare::sim::warp {

IssueUnit::IssueUnit(WarpPolicy policy, IssueRules rules, std::array<int64_t, kGroups> priorities)
    : policy_(policy), rules_(rules), priorities_(priorities) {
  state_.budget = priorities;
}

WarpQueue IssueUnit::Gto(const Pool& pool, uint64_t warps, int group) const {
  WarpQueue queue;
  queue.first = warps;
  queue.first_group = group;
  const int slot = state_.greedy_slot;
  // A slot whose warp has ended may hold another warp by now.
  if (slot != kNone && ((warps >> slot) & 1) != 0 &&
      pool.id[static_cast<size_t>(slot)] == state_.greedy_id) {
    queue.greedy = slot;
  }
  return queue;
}

// Algorithm 5. The line numbers are the thesis's.
WarpQueue IssueUnit::SortRtPaws(const Pool& pool) {
  const auto has_group = [&pool](int group) {
    return (pool.live & pool.group[static_cast<size_t>(group)]) != 0;
  };
  if (!has_group(0) || !has_group(1)) return Gto(pool, pool.live, has_group(1) ? 1 : 0);  // 7-9
  const int g0 = rules_.fixed_first_group ? 0 : state_.first_group;                       // 11
  const auto first = static_cast<size_t>(g0);
  const uint64_t first_warps = pool.live & pool.group[first];
  const uint64_t second_warps = pool.live & pool.group[1 - first];
  const bool head_stalled = state_.head_id != state_.greedy_id;  // 14
  if (head_stalled) {
    const bool from_first = state_.greedy_id != kNone && state_.greedy_group == g0;
    if (from_first) --state_.budget[first];  // 18-20
    if (state_.budget[first] <= 0) {         // 24-27: swapped
      state_.budget[first] = priorities_[first];
      return {.first = second_warps, .second = first_warps, .first_group = 1 - g0};
    }
  }
  WarpQueue queue = Gto(pool, first_warps, g0);  // 16, 23
  queue.second = second_warps;
  return queue;
}

WarpQueue IssueUnit::Sort(const Pool& pool) {
  switch (policy_) {
    case WarpPolicy::kLrr:
      return {.first = pool.live, .rotates = true, .last = state_.greedy_slot};
    case WarpPolicy::kGto:
      return Gto(pool, pool.live, 0);
    case WarpPolicy::kRtPaws:
      return SortRtPaws(pool);
  }
  return {};
}

void IssueUnit::Remember(const Pool& pool, const WarpQueue& queue) {
  const int head = queue.First(pool, pool.live);
  state_.head_id = head == kNone ? kNone : pool.id[static_cast<size_t>(head)];
  state_.first_group = queue.first_group;
}

int IssueUnit::Issue(const Pool& pool, uint64_t ready) {
  if (ready != 0) {
    settled_at_ = kNone;
    return IssueFirst(pool, ready);
  }
  if (settled_at_ == pool.changes) return kNone;
  if (policy_ == WarpPolicy::kRtPaws) {
    const State before = state_;
    IssueFirst(pool, 0);
    if (state_ == before) settled_at_ = pool.changes;
  } else if (policy_ == WarpPolicy::kGto && !rules_.keeps_greedy) {
    state_.greedy_id = kNone;
  }
  return kNone;
}

int IssueUnit::IssueFirst(const Pool& pool, uint64_t ready) {
  const WarpQueue queue = Sort(pool);
  const int slot = queue.First(pool, ready);
  if (policy_ == WarpPolicy::kRtPaws) {
    const bool head_issues = slot != kNone && slot == queue.First(pool, pool.live);
    if (!rules_.remembers_in_loop || !head_issues) Remember(pool, queue);
  }
  if (slot != kNone) {
    state_.greedy_slot = slot;
    state_.greedy_id = pool.id[static_cast<size_t>(slot)];
    state_.greedy_group = ((pool.group[1] >> slot) & 1) != 0 ? 1 : 0;
  } else if (!rules_.keeps_greedy) {
    state_.greedy_id = kNone;
  }
  return slot;
}

void IssueUnit::Idle(const Pool& pool, int64_t cycles) {
  if (policy_ != WarpPolicy::kRtPaws) cycles = std::min<int64_t>(cycles, 1);
  for (int64_t cycle = 0; cycle < cycles && settled_at_ != pool.changes; ++cycle) Issue(pool, 0);
}

}  // namespace gpushare::sim::warp
