// Ways to a plan, from the cheapest to the longest, until one fits.
//
// One partition of everything (1G), one for each task, the heuristic in every order with both
// lists, then moves and swaps from the best of these. So no set that 1G or a heuristic schedules is
// refused. Bounded by tests, never by time: a plan is the same on every machine. Threads: one a
// call.

#ifndef GPUSHARE_SRC_MODELS_PARTITION_PORTFOLIO_H_
#define GPUSHARE_SRC_MODELS_PARTITION_PORTFOLIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/models/partition/heuristic.h"
#include "src/models/partition/lemmas.h"

namespace gpushare::models::partition {

// Tests of one search. 200 tasks need about 20,000 for one order; 40,000 tests take about 10 to 18
// ms.
inline constexpr int64_t kSearchTestsMax = 40'000;

struct SearchOptions {
  int64_t tests_max = kSearchTestsMax;
  uint64_t seed = 1;
  // What the sizes shall be at most; 0: the sizes of the workload. Less leaves SMs to BE work.
  int size_goal = 0;
};

struct Found {
  bool fits = false;
  std::vector<Partition> partitions;  // the smallest, whether or not they fit
  std::string by;                     // what found them: "1G", "one-each", "SMS-INA", "moves", ...
  int unrunnable = -1;                // a task that no size runs within its deadline
  double least_sms = 0;               // lemma 1
};

Found Search(Tester& tester, const SearchOptions& options);

// "SMS", "BF", "SAVE" or "FULL".
const char* NameOf(Order order);

}  // namespace gpushare::models::partition

#endif  // GPUSHARE_SRC_MODELS_PARTITION_PORTFOLIO_H_
