// Which layout adaptive uses: the whole device for both, or one of the splits.
//
// A layout says where LC is routed (place 0, or the LC side of a split) and on which sides each BE
// kernel may run. Its value is the predicted BE throughput; it counts only where every LC app keeps
// its bound beside the kernel:
//
//   rho, v     load of an LC app; its speed on the split beside the kernel
//   inflation  (1 / v) (1 - rho) / (1 - sum rho / v): service and queueing, all LC apps on one side
//   bound      inflation + blocking / p99 alone <= p99 bound; target: p99 x inflation + blocking,
//              with an unknown p99 the tail of the queue on the split (queue_tail.h) + blocking
//   whole      1 - rho                                  where the blocking time fits every budget
//   elastic    (1 - rho') (lc side + be side) + rho' be side         rho' = sum rho / v; fits too
//   static     be side                                   any blocking time: BE never waits for LC
//
// An LC side holds at least the reserved CapSMs, and a value counts what a quota leaves BE.
//
// A pair that nobody measured has a pessimistic speed. Where a trial may be made, a split that by
// the hoped speeds is better than the best layout by kTrialGain is used instead, and BE stays on
// its side: a sample needs the neighbour from the query's start.
//
// The choice is a pure function of a small question: loads are rounded, blocking times rounded up.
// The last few answers are remembered, so most plans only build the question and compare it.
// Threads: the planner's.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_LAYOUT_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_LAYOUT_H_

#include <array>
#include <cstdint>
#include <vector>

#include "src/core/base/tuning.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// kBest compares all mechanisms; the others force one, also where LC apps then miss their bounds.
enum class Mechanism : uint8_t { kBest, kEvict, kPartition, kElastic };

inline constexpr int32_t kWholeLayout = -1;    // else an index into snapshot.splits
inline constexpr int32_t kUnknownLayout = -2;  // no running task shows it

// Where a BE kernel may run under a split.
enum class Sides : uint8_t {
  kNone = 0,    // LC beside it would miss its bound
  kBeSide = 1,  // on the BE side always
  kBoth = 2,    // and on the LC side while no query is active
};

struct Layout {
  int32_t split = kWholeLayout;
  std::array<Sides, kMaxKernels> sides;  // by kernel index; meaningful under a split
  int32_t trial_kernel = -1;  // nobody measured it on this split, which is on trial; -1: none
};

// One LC app in the question.
struct LcTerm {
  double load = 0;
  double p99_bound = 0;
  double p50_bound = 0;
  int64_t p99_ns = 0;  // alone: p99, or the solo duration where that is not known
  int64_t target_ns = 0;
  int64_t solo_ns = 0;
  // With a target and an unknown p99: factor on what the load gives (queue_tail.h), rounded up.
  double target_tail = 0;
  double peak_load = 0;  // then, rounded: what its side must carry
  bool operator==(const LcTerm&) const = default;
};

// One BE kernel that has a head or runs.
struct BeTerm {
  static constexpr double kUnbounded = 1e9;
  int32_t kernel = -1;
  bool fits = false;  // its blocking time fits every blocking budget
  double share = 0;   // of the idle periods in which it runs on the whole device; 1 if it fits
  bool evictable = false;
  int64_t blocking_ns = 0;  // rounded up; 0 unless it fits
  double weight = 1;
  double most = kUnbounded;  // throughput that its quota or a reservation leaves it
  bool confined = false;     // it has one place, never the LC side (be_quota.h)
  bool operator==(const BeTerm&) const = default;
};

struct LayoutQuestion {
  uint64_t pairs_version = 0;
  int32_t current = kUnknownLayout;
  double load_margin = 0;   // the LC load may be that much higher; rounded up
  int32_t splits = 0;       // 0: no partitions
  int32_t first_split = 0;  // the first whose LC side holds the reservations
  TrialView trial;
  int32_t lc_count = 0;
  int32_t be_count = 0;
  std::array<LcTerm, kMaxApps> lc;
  std::array<BeTerm, kMaxHeads + kMaxRunning> be;  // ascending kernel index
  bool operator==(const LayoutQuestion& other) const;
  void CopyFrom(const LayoutQuestion& other);  // only what counts
};

class LayoutChooser {
 public:
  explicit LayoutChooser(Mechanism mechanism);

  // The answer is valid until the next call.
  const Layout& Choose(const Snapshot& snapshot, int32_t current);

 private:
  struct Remembered {
    bool used = false;
    LayoutQuestion question;
    Layout answer;
  };

  void Ask(const Snapshot& snapshot, int32_t current);

  Mechanism mechanism_;
  LayoutQuestion question_;
  std::array<BeTerm, kMaxKernels> by_kernel_;  // scratch of Ask
  std::vector<Remembered> remembered_;         // kLayoutsRemembered, allocated once
  size_t next_ = 0;
};

// The layout in force: where BE kernels run shows it, else where evicted ones still are, else where
// LC tasks run.
int32_t CurrentLayout(const Snapshot& snapshot);

struct LatencyEstimate {
  int64_t value_ns = 0;
  int64_t limit_ns = 0;  // by the app's bound or target
};
// Predicted p99 of the LC app that comes closest to its limit, or furthest beyond it, while
// `kernel` runs on `split`. Zeros when no app has a limit.
LatencyEstimate WorstLatency(const Snapshot& snapshot, int32_t kernel, int32_t split);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_LAYOUT_H_
