// Algorithm 4, the issue unit of one scheduler, and the policies that sort its warps.
//
//   lrr      loose round robin: from the warp behind the last issued one
//   gto      greedy-then-oldest: the last issued warp, then by age
//   rt-paws  algorithm 5: two priorities, a budget each; with one priority, gto
//
// The printed algorithms leave three things open or wrong (docs/warp-simulator.md). IssueRules says
// which reading holds; the worked example of 4.4.3 needs the printed one.
// Each cycle of the SM is one call of Issue, or is counted by Idle. Threads: one at a time.

#ifndef GPUSHARE_SRC_SIM_WARP_ISSUE_UNIT_H_
#define GPUSHARE_SRC_SIM_WARP_ISSUE_UNIT_H_

#include <array>
#include <cstdint>

#include "src/sim/warp/warp_queue.h"

namespace gpushare::sim::warp {

enum class WarpPolicy : uint8_t { kLrr, kGto, kRtPaws };

struct IssueRules {
  // Algorithm 4, line 14: the previous queue is remembered in each round of the loop that does not
  // issue, so a cycle whose head issues keeps an older one. Otherwise every cycle remembers its.
  bool remembers_in_loop = false;
  // The last issued warp stays W_greedy over cycles that issue nothing.
  bool keeps_greedy = false;
  // Algorithm 5, line 11: g0 is always the first launch's group. Otherwise the text's: the group
  // whose warps stood first in the previous queue.
  bool fixed_first_group = false;

  static constexpr IssueRules Printed() { return {true, true, true}; }
  static constexpr IssueRules Corrected() { return {}; }
};

class IssueUnit {
 public:
  // The priorities of the two groups are their budgets.
  IssueUnit(WarpPolicy policy, IssueRules rules, std::array<int64_t, kGroups> priorities);

  // The slot that issues in this cycle, or kNone. `ready`: warps that are ready and whose unit is.
  int Issue(const Pool& pool, uint64_t ready);
  // As many calls of Issue with no warp ready.
  void Idle(const Pool& pool, int64_t cycles);

  // SortWarps.
  WarpQueue Sort(const Pool& pool);

 private:
  struct State {
    int64_t greedy_id = kNone;  // W_greedy; no warp has this identifier
    int greedy_slot = kNone;
    int greedy_group = 0;
    int64_t head_id = kNone;  // head of Q_prev
    int first_group = 0;      // g0 of Q_prev
    std::array<int64_t, kGroups> budget = {};
    bool operator==(const State&) const = default;
  };

  WarpQueue SortRtPaws(const Pool& pool);
  WarpQueue Gto(const Pool& pool, uint64_t warps, int group) const;
  void Remember(const Pool& pool, const WarpQueue& queue);
  int IssueFirst(const Pool& pool, uint64_t ready);

  WarpPolicy policy_;
  IssueRules rules_;
  std::array<int64_t, kGroups> priorities_;
  State state_;
  int64_t settled_at_ = kNone;  // Pool::changes for which a cycle without an issue changes nothing
};

}  // namespace gpushare::sim::warp

#endif  // GPUSHARE_SRC_SIM_WARP_ISSUE_UNIT_H_
