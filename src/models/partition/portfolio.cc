// Ways to a plan. See portfolio.h.

#include "src/models/partition/portfolio.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "src/models/partition/forbidden.h"
#include "src/models/partition/improve.h"

namespace gpushare::models::partition {
namespace {

struct Way {
  Order order;
  bool pairs;  // ACT
  bool increasing;
};

// The orders that find most come first. ACT needs a test of each pair, so it comes after INA.
constexpr Way kSearchWays[] = {
    {Order::kMostSaved, false, false}, {Order::kSmallest, false, false},
    {Order::kBestFit, false, false},   {Order::kFullest, false, false},
    {Order::kMostSaved, true, false},  {Order::kSmallest, true, false},
    {Order::kBestFit, true, false},    {Order::kFullest, true, false},
    {Order::kMostSaved, false, true},  {Order::kSmallest, false, true},
    {Order::kBestFit, false, true},    {Order::kFullest, false, true},
    {Order::kMostSaved, true, true},   {Order::kSmallest, true, true},
    {Order::kBestFit, true, true},     {Order::kFullest, true, true},
};

std::string NameOf(const Way& way) {
  return std::string(NameOf(way.order)) + (way.pairs ? "-ACT" : "-INA") +
         (way.increasing ? "-increasing" : "");
}

// Keeps the smaller of what was found and `partitions`.
void Offer(Found& found, std::vector<Partition> partitions, std::string by, int goal) {
  if (!found.partitions.empty() && SizeOf(partitions) >= SizeOf(found.partitions)) return;
  found.fits = SizeOf(partitions) <= goal;
  found.partitions = std::move(partitions);
  found.by = std::move(by);
}

}  // namespace

const char* NameOf(Order order) {
  switch (order) {
    case Order::kSmallest:
      return "SMS";
    case Order::kBestFit:
      return "BF";
    case Order::kMostSaved:
      return "SAVE";
    case Order::kFullest:
      break;
  }
  return "FULL";
}

Found Search(Tester& tester, const SearchOptions& options) {
  const int sizes = tester.workload().sizes();
  const int goal = options.size_goal > 0 ? std::min(options.size_goal, sizes) : sizes;
  Found found;
  found.least_sms = LeastSms(tester);
  if (found.least_sms > tester.workload().SmsOf(sizes)) return found;

  Partition all = {.tasks = TaskList(static_cast<size_t>(tester.workload().tasks()))};
  std::iota(all.tasks.begin(), all.tasks.end(), 0);
  all.size = tester.LeastSize(all.tasks, 1, sizes);
  all.mode = tester.mode();
  if (all.size > 0) Offer(found, {all}, "1G", goal);
  if (found.fits) return found;
  const std::vector<Partition> singles = OneEach(tester, found.unrunnable);
  if (singles.empty()) return found;
  Offer(found, singles, "one-each", goal);
  if (found.fits) return found;

  // Half of the tests are for the orders, so that moves always get the other half.
  const int64_t orders_max = tester.tests() + ((options.tests_max - tester.tests()) / 2);
  std::vector<PairFlags> pairs;
  for (const Way& way : kSearchWays) {
    if (tester.tests() >= orders_max) break;
    if (way.pairs && pairs.empty()) pairs.push_back(TestAllPairs(tester, singles));
    Offer(found,
          MergePartitions(tester, singles, way.pairs ? &pairs.front() : nullptr,
                          {.order = way.order,
                           .increasing = way.increasing,
                           .size_goal = goal,
                           .tests_max = options.tests_max}),
          NameOf(way), goal);
    if (found.fits) return found;
  }
  std::vector<Partition> moved = found.partitions;
  Improve(tester, moved, {.size_goal = goal, .tests_max = options.tests_max, .seed = options.seed});
  Offer(found, std::move(moved), found.by + ", moves", goal);
  return found;
}

}  // namespace gpushare::models::partition
