// One point of figures 3.4 to 3.6: how many random sets of a utilisation each way schedules, and
// the time that it takes. The ways are the bare heuristics, both baselines, and the planner, which
// is what users get. Threads: one a call; points may run in parallel.

#ifndef GPUSHARE_SRC_MODELS_PARTITION_EVALUATE_H_
#define GPUSHARE_SRC_MODELS_PARTITION_EVALUATE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/models/partition/generate.h"
#include "src/models/partition/schedulability.h"

namespace gpushare::models::partition {

inline constexpr std::array<const char*, 7> kWays = {"1G",     "one-each", "SMS-ACT", "SMS-INA",
                                                     "BF-ACT", "BF-INA",   "planner"};

struct EvaluationOptions {
  GeneratorOptions generator;  // its utilisation is the point's
  Analysis analysis = Analysis::kConcurrent;
  int sets = 100;
  uint64_t seed = 1;
};

struct WayResult {
  int schedulable = 0;
  int lost_to_one = 0;  // sets that 1G schedules and this way does not
  double ms = 0;        // mean of a set: CPU time, ACT's pre-fill not included
  double ms_max = 0;
  // Mean of a set: SMs beyond the least that any partitioning needs, where the way merges for as
  // long as it can. 0 for 1G, and where no exact search ran.
  double extra_sms = 0;
};

struct PointResult {
  double utilisation = 0;
  int sets = 0;  // that the generator made
  std::array<WayResult, kWays.size()> ways;
  double prefill_ms = 0;  // mean of a set: ACT's tests of all pairs
  // Sets that any partitioning schedules; -1: they have more than kExactTasksMax tasks.
  int exact = -1;
};

PointResult EvaluatePoint(const EvaluationOptions& options);

}  // namespace gpushare::models::partition

#endif  // GPUSHARE_SRC_MODELS_PARTITION_EVALUATE_H_
