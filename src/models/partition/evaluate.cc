// One point of the figures. See evaluate.h.

#include "src/models/partition/evaluate.h"

#include <time.h>  // NOLINT(modernize-deprecated-headers): clock_gettime is POSIX's

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "src/core/base/random.h"
#include "src/models/partition/exact.h"
#include "src/models/partition/forbidden.h"
#include "src/models/partition/heuristic.h"
#include "src/models/partition/lemmas.h"
#include "src/models/partition/portfolio.h"
#include "src/models/partition/workload.h"

namespace gpushare::models::partition {
namespace {

// CPU time, so that a busy machine does not count.
double ThreadMs() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (static_cast<double>(now.tv_sec) * 1e3) + (static_cast<double>(now.tv_nsec) * 1e-6);
}

bool HoldsAsOne(Tester& tester) {
  TaskList all(static_cast<size_t>(tester.workload().tasks()));
  std::iota(all.begin(), all.end(), 0);
  return tester.Holds(all, tester.workload().sizes());
}

// What a way left behind.
struct Outcome {
  int size = 0;  // of all partitions; 0: a task has no size, or the set is not one partition
  double pairs_ms = 0;
};

Outcome RunOneEach(Tester& tester) {
  int unrunnable = -1;
  return {.size = SizeOf(OneEach(tester, unrunnable))};
}

// The heuristic until its sizes are at most `goal`.
Outcome RunMerges(Tester& tester, Order order, bool act, int goal) {
  int unrunnable = -1;
  const std::vector<Partition> singles = OneEach(tester, unrunnable);
  if (singles.empty()) return {};
  const HeuristicOptions options = {.order = order, .size_goal = goal};
  if (!act) return {.size = SizeOf(MergePartitions(tester, singles, nullptr, options))};
  const double start_ms = ThreadMs();
  const PairFlags pairs = TestAllPairs(tester, singles);
  const double pairs_ms = ThreadMs() - start_ms;
  return {.size = SizeOf(MergePartitions(tester, singles, &pairs, options)), .pairs_ms = pairs_ms};
}

Outcome Run(size_t way, Tester& tester, int goal) {
  switch (way) {
    case 0:
      return {.size = HoldsAsOne(tester) ? tester.workload().sizes() : 0};
    case 1:
      return RunOneEach(tester);
    case 6: {
      const Found found = Search(tester, {.size_goal = goal});
      return {.size = SizeOf(found.partitions)};
    }
    default:
      break;
  }
  return RunMerges(tester, way < 4 ? Order::kSmallest : Order::kBestFit, way % 2 == 0, goal);
}

// How far each way stays from the least size when it goes on for as long as it can.
void CompareWithExact(const Workload& workload, Analysis analysis, PointResult& point) {
  if (workload.tasks() > kExactTasksMax) return;
  Tester exact_tester(workload, analysis, Priorities::kDeadlines);
  const Exact exact = SearchExact(exact_tester, {}, 0);
  point.exact = std::max(point.exact, 0);
  if (exact.size == 0) return;
  point.exact += exact.size <= workload.sizes() ? 1 : 0;
  for (size_t way = 1; way < kWays.size(); ++way) {
    Tester tester(workload, analysis, Priorities::kDeadlines);
    const int extra = Run(way, tester, exact.size).size - exact.size;
    point.ways[way].extra_sms += extra * workload.SmsOf(1);
  }
}

void AddSet(const TaskSet& set, Analysis analysis, PointResult& point) {
  const Workload workload(set, Beside::kNothing);
  bool one = false;
  double prefill_ms = 0;
  for (size_t way = 0; way < kWays.size(); ++way) {
    Tester tester(workload, analysis, Priorities::kDeadlines);
    const double start_ms = ThreadMs();
    const Outcome outcome = Run(way, tester, workload.sizes());
    const double ms = ThreadMs() - start_ms - outcome.pairs_ms;
    const bool holds = outcome.size > 0 && outcome.size <= workload.sizes();
    prefill_ms += outcome.pairs_ms / 2;  // both ACT ways fill the same list
    if (way == 0) one = holds;
    WayResult& result = point.ways[way];
    result.schedulable += holds ? 1 : 0;
    result.lost_to_one += one && !holds ? 1 : 0;
    result.ms += ms;
    result.ms_max = std::max(result.ms_max, ms);
  }
  point.prefill_ms += prefill_ms;
  ++point.sets;
  CompareWithExact(workload, analysis, point);
}

}  // namespace

PointResult EvaluatePoint(const EvaluationOptions& options) {
  PointResult point;
  point.utilisation = options.generator.utilisation;
  for (int i = 0; i < options.sets; ++i) {
    // A set is the same whatever the number of sets and the other points are.
    const auto place = static_cast<uint64_t>(std::llround(point.utilisation * 1'000));
    core::Random random((options.seed * 1'000'000'007) + (place * 1'000'003) +
                        static_cast<uint64_t>(i));
    const TaskSet set = Generate(options.generator, random);
    if (!set.tasks.empty()) AddSet(set, options.analysis, point);
  }
  if (point.sets == 0) return point;
  for (WayResult& way : point.ways) {
    way.ms /= point.sets;
    way.extra_sms /= point.sets;
  }
  point.prefill_ms /= point.sets;
  return point;
}

}  // namespace gpushare::models::partition
