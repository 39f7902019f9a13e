// Random task sets as the thesis makes them (3.6.1).
//
// Utilisations by UUniFast-Discard (Bini and Buttazzo; Davis and Burns), a period from a list, a
// deadline of 0.75 T, a = u T, C^n(m) = a / m + b and C^c = k C^n. A vector of utilisations is
// discarded where a task would not meet its deadline on the whole device alone. The thesis prints
// b = 0.02 a or 0.1 a; only b over the SMs of the device gives the curve of 1G that it draws, so
// both readings exist. Seeded; any thread.

#ifndef GPUSHARE_SRC_MODELS_PARTITION_GENERATE_H_
#define GPUSHARE_SRC_MODELS_PARTITION_GENERATE_H_

#include <cstdint>

#include "src/core/base/random.h"
#include "src/models/partition/task_set.h"

namespace gpushare::models::partition {

enum class SerialShare : uint8_t { kPerSm, kPrinted };

struct GeneratorOptions {
  int tasks = 50;
  double utilisation = 20;
  int32_t sms = 68;
  int32_t grain = 1;
  SerialShare serial_share = SerialShare::kPerSm;
  double memory_share = 0.5;  // prm
  // Of every task; the eviction takes this share of the shortest period.
  bool evictable = true;
  double eviction_share = 0.05;
};

// UUniFast-Discard's tries. Sets near what the device can hold need a few hundred.
inline constexpr int kGeneratorTriesMax = 100'000;

// Empty: no try gave tasks that all run by themselves.
TaskSet Generate(const GeneratorOptions& options, core::Random& random);

}  // namespace gpushare::models::partition

#endif  // GPUSHARE_SRC_MODELS_PARTITION_GENERATE_H_
