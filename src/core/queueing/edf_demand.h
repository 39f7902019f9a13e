// Whether earliest deadline first keeps every deadline of periodic tasks on one serial resource.
//
// Processor demand (Baruah, Rosier and Howell, 1990), with one blocking term (Jeffay, Stanat and
// Martel, 1991): every deadline is kept if, for each interval t from the shortest deadline on,
//
//   h(t) = sum over D_i <= t of (floor((t - D_i) / T_i) + 1) C_i  +  max over D_j > t of b_j  <= t
//
// with b_j the longest that a job of j keeps a job of an earlier deadline waiting: 0 where a job
// may be preempted at once, C_j where it runs to its end, its eviction latency where it is evicted.
// QPA (Zhang and Burns, 2009) visits few t; it needs an h that does not fall, so it runs once for
// each value of the blocking term.
//
// Deadlines are at most the periods. Sporadic tasks are covered: T is the least distance. A yes is
// a proof. A no is one too, except next to a utilisation of 1, where the interval to search is
// beyond 46 days or takes more than kDemandStepsMax steps. Times are nanoseconds. Pure; nothing
// allocates; any thread.

#ifndef GPUSHARE_SRC_CORE_QUEUEING_EDF_DEMAND_H_
#define GPUSHARE_SRC_CORE_QUEUEING_EDF_DEMAND_H_

#include <cstdint>
#include <span>

namespace gpushare::core {

// Tasks of one period and one deadline. A task is a class of one.
struct DemandClass {
  int64_t period_ns = 0;
  int64_t deadline_ns = 0;  // at most the period
  int64_t work_ns = 0;      // of one job of each task of the class, together
  int64_t blocking_ns = 0;  // b: the longest of the class
};

// Steps of QPA in one test. A test of 50 classes takes about 20; only a utilisation within 1e-6 of
// 1 takes thousands.
inline constexpr int kDemandStepsMax = 100'000;
// Above it no sum of the analysis overflows: 1,024 tasks of one hour each.
inline constexpr int64_t kDemandTimeNsMax = int64_t{3600} * 1'000'000'000;

// How many jobs of the class have their release and their deadline in an interval.
constexpr int64_t JobsWithin(const DemandClass& one, int64_t interval_ns) {
  if (interval_ns < one.deadline_ns) return 0;
  return (interval_ns - one.deadline_ns) / one.period_ns + 1;
}

// h(t), and its two terms. `classes` in the order of their deadlines.
int64_t DemandNs(std::span<const DemandClass> classes, int64_t interval_ns);
int64_t WorkWithinNs(std::span<const DemandClass> classes, int64_t interval_ns);
int64_t BlockingNs(std::span<const DemandClass> classes, int64_t interval_ns);

// sum of work / period.
double DemandUtilisation(std::span<const DemandClass> classes);

// The interval from which on h(t) <= t holds by itself, kNever where there is none: the utilisation
// is 1 or more, or so close to it that the interval is beyond 46 days. Never below the longest
// deadline.
int64_t DemandHorizonNs(std::span<const DemandClass> classes);

// A quick yes: h(t) bounded by a line for each class from its first deadline on (Devi, 2003).
// `classes` in the order of their deadlines. False says nothing.
bool DemandHoldsByLines(std::span<const DemandClass> classes);

// The test. `classes` in the order of their deadlines, each at most kDemandTimeNsMax long.
//
// `suspect_ns` is an interval that is tried first, 0: none. A no leaves the interval there whose
// demand was too large: in a search, the next no often has the same one.
bool DemandHolds(std::span<const DemandClass> classes, int64_t& suspect_ns);
bool DemandHolds(std::span<const DemandClass> classes);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_QUEUEING_EDF_DEMAND_H_
