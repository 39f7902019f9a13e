// The value of an arrangement, and whether every LC app keeps its promise in it.
//
// The value is the predicted BE throughput; it counts only where every LC app keeps its bounds and
// target beside the kernel:
//
//   rho, v     load of an LC app; its speed on the split beside the kernel
//   inflation  (1 / v) (1 - rho) / (1 - sum rho / v): service and queueing, all LC apps on one side
//   kept       PlannedPromise::Keeps(inflation, blocking); with a target also by the tail of a
//              queue of random arrivals on the split (queueing/queue_tail.h)
//   whole      1 - rho                                  where the blocking time fits every budget
//   elastic    (1 - rho') (lc side + be side) + rho' be side         rho' = sum rho / v; fits too
//   static     be side                                   any blocking time: BE never waits for LC
//
// A value counts what a quota leaves BE. Everything is an array over the splits, so that the
// compiler judges several at once. What one BE kernel adds is kept from one question to the next
// while neither its term nor the LC apps change; its speeds are kept while the pair table does not.
// Threads: the planner's. Nothing allocates after construction.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_VALUE_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_VALUE_H_

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/core/policies/adaptive/arrangement/arrangement.h"
#include "src/core/policies/adaptive/arrangement/question.h"
#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "src/core/promise/promise.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// Which LC speed counts: with the BE side busy, busy and as a trial hopes, or empty.
enum class Speeds : uint8_t { kPlanned, kHoped, kAlone };

// The factor on the p99 of a queue whose load rises from `load` to `split_load`. The smoothed load
// errs, and near a load of 1 a small error is a long queue: both are taken as higher by `margin`.
constexpr double Queueing(double load, double split_load, double margin) {
  const double raised = split_load / (load > kTie ? load : kTie) * (load + margin);
  const double above = raised < kLoadMax ? (1 - load - margin) / (1 - raised) : kUnboundedInflation;
  return split_load <= load ? (1 - load) / (1 - split_load) : above;
}

// By how much the p99, or what else the promise limits, moves towards its limit.
LatencyShift ShiftOf(const PlannedPromise::Closest& worst);

using BySplit = std::array<double, kMaxSplits>;

// What one BE kernel adds to the value of each split, over its weight, and where it may run there.
struct PlannedSplits {
  BySplit values;
  std::array<Sides, kMaxSplits> sides;
};

class SplitValues {
 public:
  SplitValues();

  // The question that the calls below answer. Both must outlive them.
  void Ask(const Question& question, const PairTable& pairs);

  // Of the whole device.
  double Whole() const;
  // Of each split, by the planned speeds.
  BySplit Planned();
  // Where each kernel of the question may run on the split that was chosen by its planned value.
  void FillSides(Arrangement& arrangement);
  // Of each split under a mechanism and speeds. A forced mechanism runs every kernel, but a kernel
  // adds to the value only where the LC apps keep their promises beside it (kAlone: beside an empty
  // BE side).
  BySplit Under(Mechanism mechanism, Speeds speeds);
  // The same of one split; the arrangement gets the sides of each kernel there.
  double Fill(int32_t split, Mechanism mechanism, Speeds speeds, Arrangement& arrangement);
  // Whether nobody measured some pair of the table, and a BE kernel of such a pair on the split;
  // -1: none.
  bool any_unknown() const { return any_unknown_; }
  int32_t UnknownOn(int32_t split) const;
  // What the BE kernels on the split, or on the whole device (kNoSplit), do to the LC app that they
  // bring closest to its limit. To explain a choice.
  LatencyShift ShiftOn(int32_t split);
  // The same of a split on trial, as the trial hopes.
  LatencyShift ShiftOnTrial(int32_t split) const;
  // The least LC speed on the split with the BE side empty.
  double Knee(int32_t split) const;

 private:
  // Speeds of one BE kernel and of the LC apps beside it, by split.
  struct Row {
    bool judged = false;  // an LC app counts
    BySplit be_side;      // the worst over the LC apps
    BySplit lc_side;
  };
  // 1 / speed of one LC app; very large where it would stand still.
  using Slowdowns = BySplit;
  // The loads of all LC apps on the LC side of each split.
  struct SideLoads {
    BySplit load;      // rho'
    BySplit judged;    // at which promises are judged
    BySplit service;   // mean service time, weighted by load; only with targets
    BySplit queueing;  // factor on a p99; kUnboundedInflation where the side is overloaded
  };
  struct Kept {
    bool has_row = false;
    bool has_loads = false;
    bool known = false;  // `splits` is the answer to `term`
    Row row;
    SideLoads loads;
    BeTerm term;
    PlannedSplits splits;
  };

  // What the LC apps of the question have together.
  void SumLcApps();
  bool SameRows(const Question& question) const;
  bool SameApps(const Question& question) const;
  // Rows and judgements are filled in place: they are long, and each is kept.
  void ReadRow(int32_t kernel, Speeds speeds, Slowdowns* apps, Row& row) const;
  void Judge(const BeTerm& be, Mechanism mechanism, Speeds speeds, PlannedSplits& out);
  void Judge(const BeTerm& be, const Row& row, const SideLoads& loads, const Slowdowns* apps,
             Mechanism mechanism, PlannedSplits& out) const;
  void FindLoads(const Slowdowns* apps, SideLoads& on_side) const;
  void SetQueueing(const BySplit& peak, SideLoads& on_side) const;
  void AddTargetLoads(const Slowdowns* apps, SideLoads& on_side, BySplit& peak) const;
  // How far the app that is worst off is above what it may be beside work that delays a query by
  // so much, by split: kept where at most 0.
  void FindExcess(const SideLoads& loads, const Slowdowns* apps, int64_t blocking_ns,
                  BySplit& excess) const;
  QueueEffect EffectOnWhole(const LcTerm& lc) const;
  QueueEffect EffectOn(const LcTerm& lc, const SideLoads& loads, size_t split,
                       double slowdown) const;
  PlannedPromise::Closest ClosestBeside(int64_t delay_ns, const SideLoads& loads,
                                        const Slowdowns* apps, size_t split) const;
  PlannedPromise::Closest ClosestPlanned(const BeTerm& be, int32_t split);
  PlannedPromise::Closest ClosestOnWhole() const;
  bool KeepsTarget(const LcTerm& lc, const SideLoads& loads, size_t split, double slowdown,
                   int64_t blocking_ns) const;
  void AddValues(const BeTerm& be, const Row& row, const SideLoads& loads,
                 PlannedSplits& out) const;
  void SubtractReturns(const BeTerm& be, const Row& row, const SideLoads& loads,
                       BySplit& gain) const;
  const PlannedSplits& PlannedOf(const BeTerm& be);
  // Of a kernel below kMaxPairKernels: with its speeds and loads.
  Kept& WithLoads(int32_t kernel);
  Slowdowns* SlowdownsOf(int32_t kernel) {
    return &slowdowns_[static_cast<size_t>(kernel * lc_count_)];
  }

  const Question* question_ = nullptr;
  const PairTable* pairs_ = nullptr;
  double load_ = 0;
  double judged_load_ = 0;
  double queries_per_ns_ = 0;
  double returns_ = 0;  // share of time in which BE work is not yet back after a query
  double weight_sum_ = 1;
  double whole_service_ns_ = 0;  // mean of a query on the whole device, weighted by load
  bool targets_ = false;         // whether some app has one
  bool any_unknown_ = false;

  // What the kept parts belong to.
  uint64_t pairs_version_ = 0;
  int32_t splits_ = -1;
  int32_t first_split_ = 0;
  double load_margin_ = 0;
  int32_t lc_count_ = -1;
  std::array<LcTerm, kMaxApps> lc_;
  std::array<InflationLimit, kMaxApps> limits_;
  std::vector<Kept> kept_;            // by kernel index, kMaxPairKernels
  std::vector<Slowdowns> slowdowns_;  // of each of these kernels, one for each LC app
  PlannedSplits unkept_;              // of a kernel beyond them
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_VALUE_H_
