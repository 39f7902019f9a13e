// The value of an arrangement, and whether every LC app keeps its bound in it.
//
// The value is the predicted BE throughput; it counts only where every LC app keeps its bound
// beside the kernel:
//
//   rho, v     load of an LC app; its speed on the split beside the kernel
//   inflation  (1 / v) (1 - rho) / (1 - sum rho / v): service and queueing, all LC apps on one side
//   bound      inflation + blocking / p99 alone <= p99 bound
//   target     p99 x inflation + blocking <= target, and the same with the tail of a queue of
//              random arrivals on the split (queue_tail.h); with an unknown p99 only that
//   whole      1 - rho                                  where the blocking time fits every budget
//   elastic    (1 - rho') (lc side + be side) + rho' be side         rho' = sum rho / v; fits too
//   static     be side                                   any blocking time: BE never waits for LC
//
// A value counts what a quota leaves BE. Pure functions of the question and the pair table.
// Threads: the planner's.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_VALUE_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_VALUE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "src/core/policies/adaptive/arrangement/arrangement.h"
#include "src/core/policies/adaptive/arrangement/question.h"
#include "src/core/promise/promise.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// Which LC speed counts: with the BE side busy, busy and as a trial hopes, or empty.
enum class Speeds : uint8_t { kPlanned, kHoped, kAlone };

// The factor on the p99 of a queue whose load rises from `load` to `split_load`. The smoothed load
// errs, and near a load of 1 a small error is a long queue: both are taken as higher by `margin`.
double Queueing(double load, double split_load, double margin);

// Predicted speeds and loads while one BE kernel runs beside all LC apps on one split.
struct SplitEffect {
  double load = 0;        // rho of all LC apps on the whole device
  double split_load = 0;  // rho' on the LC side
  double service_ns = 0;  // mean there, weighted by load
  double peak_load = 0;   // there, of apps with targets
  // The two loads at which bounds are judged: an app that states target and p99 counts with its
  // highest load of late.
  double judged_load = 0;
  double judged_split_load = 0;
  double be_side = 0;  // BE speeds, the worst over LC apps
  double lc_side = 0;
  double slowest = 1;  // the least LC speed
  bool stable = true;
};

// What one BE kernel adds to the value of each split, and where it may run there.
struct PlannedSplits {
  std::array<double, kMaxSplits> values;
  std::array<Sides, kMaxSplits> sides;
};

// The inflation from which on some LC app misses its bound or target beside BE work that blocks for
// so long, and that app. Only where no app has a target.
struct InflationLimit {
  double inflation = std::numeric_limits<double>::infinity();
  int32_t app = -1;
};

// What the values of one BE kernel are made of, but the loads of the LC apps. Only where no app has
// a target. By split; speeds are floats, as in the pair table.
struct KernelTerms {
  using Speeds = std::array<float, kMaxSplits>;
  bool judged = false;  // an LC app counts
  Speeds be_side;       // the worst over LC apps
  Speeds lc_side;
  Speeds slowest;
  InflationLimit blocked;  // beside a task of the kernel
  Speeds blocked_speed;    // of its app
  Speeds unblocked_speed;  // of the app of the limit without blocking
};
// The load of one LC app on each split beside one BE kernel, and the load that it is made of.
struct AppLoads {
  double load;
  std::array<double, kMaxSplits> on_split;
};

class Evaluation {
 public:
  Evaluation(const Question& question, const PairTable& pairs);

  double WholeValue() const;
  // A forced mechanism runs every kernel, but a kernel adds to the value only where the LC apps
  // keep their bounds beside it (kAlone: beside an empty BE side).
  double SplitValue(int32_t split, Mechanism mechanism, Speeds speeds,
                    Arrangement* arrangement) const;
  // What one BE kernel adds to a split's value, over its weight, with Mechanism::kBest and
  // Speeds::kPlanned.
  double PlannedValue(const BeTerm& be, int32_t split) const;
  // The same and the sides that it takes, for all splits of the question at once.
  void PlanSplits(const BeTerm& be, PlannedSplits& out) const;
  // The same in three steps, of which a caller may keep the first two; only without targets. The
  // terms and loads stay valid while the pair table and the question's apps do, their loads aside.
  KernelTerms TermsOf(const BeTerm& be) const;
  // One for each LC app of the question. Without `kept` all are made anew, else those of another
  // load.
  void UpdateLoads(int32_t kernel, bool kept, AppLoads* loads) const;
  void PlanSplits(const BeTerm& be, const KernelTerms& terms, const AppLoads* loads,
                  PlannedSplits& out) const;
  bool targets() const { return targets_; }
  // Of the BE kernels; 1 without any weight.
  double WeightSum() const { return weight_sum_; }
  // A BE kernel that nobody measured beside an LC app on the split; -1: none.
  int32_t UnknownOn(int32_t split) const;
  // Whether there is one anywhere in the table.
  bool HasUnknownPair() const;
  // The least LC speed on the split with the BE side empty.
  double Knee(int32_t split) const;

 private:
  // Share of time in which no query is active and BE is back: a busy period begins with an eviction
  // and ends with a return.
  double IdleShare(double load) const;
  SplitEffect EffectOf(int32_t kernel, int32_t split, Speeds speeds) const;
  InflationLimit LimitOf(int64_t blocking_ns) const;
  // Of all splits beside one kernel.
  struct SplitLoads {
    std::array<double, kMaxSplits> load;  // rho' on the LC side
    // The inflation on a side of speed 1 is above / below: infinite where it is unstable, and NaN
    // where rounding may decide which it is.
    std::array<double, kMaxSplits> above;
    std::array<double, kMaxSplits> below;
  };
  using Verdicts = std::array<bool, kMaxSplits>;
  SplitLoads LoadsOf(const KernelTerms& terms, const AppLoads* apps) const;
  SplitEffect EffectAt(const KernelTerms& terms, const SplitLoads& loads, size_t split) const;
  Verdicts JudgeSplits(const BeTerm& be, const KernelTerms& terms, const SplitLoads& loads,
                       const InflationLimit& limit, const KernelTerms::Speeds& speeds,
                       int64_t blocking_ns) const;
  bool AllKeepBounds(const SplitEffect& effect, int32_t kernel, int32_t split, Speeds speeds,
                     int64_t blocking_ns) const;
  Sides AllowedSides(const BeTerm& be, const SplitEffect& effect, int32_t split,
                     Mechanism mechanism, Speeds speeds) const;
  static Sides ForcedSides(const BeTerm& be, Mechanism mechanism);
  // A task that nothing evicts has one launch: its two sides do not add up.
  double ValueOf(const SplitEffect& effect, Sides sides, const BeTerm& be) const;
  double ReturnCost(const SplitEffect& effect, const BeTerm& be) const;

  const Question& question_;
  const PairTable& pairs_;
  double load_ = 0;
  double judged_load_ = 0;
  double queries_per_ns_ = 0;
  double returns_ = 0;  // share of time in which BE work is not yet back after a query
  double weight_sum_ = 0;
  bool targets_ = false;         // whether some app has one
  double whole_service_ns_ = 0;  // mean of a query on the whole device, weighted by load
  InflationLimit unblocked_;     // without any blocking
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_VALUE_H_
