// The interference model: how co-residents of an SM, and neighbours on other SMs, slow each other.
//
// Pure functions over plain numbers, called by speeds.cc whenever the set of resident launches
// changes. Equations and sources: README.md, "Interference".

#ifndef GPUSHARE_SRC_SIM_INTERFERENCE_H_
#define GPUSHARE_SRC_SIM_INTERFERENCE_H_

#include "absl/types/span.h"

namespace gpushare::sim {

// What one launch asks of an SM that it runs on: demand x occupancy speed.
struct SmClient {
  double issue = 0;
  double tensor = 0;
  double special = 0;
  double speed = 1;  // occupancy speed, 0 to 1: the share of the SM's time it would need
};

// Factor on the speed of every client of the SM, in (0, 1]. One client alone is undisturbed.
double SharedSmFactor(absl::Span<const SmClient> clients);

// What one launch asks of the memory system, all SMs together, at the speed it would have there.
struct MemoryClient {
  double dram = 0;         // share of the device's bandwidth
  double l2 = 0;           // share of the device's L2 throughput
  double sensitivity = 0;  // own DRAM demand at full speed: how much an L2 miss more hurts
  double weight = 0;       // outstanding requests: SMs x memory_parallelism
  double factor = 1;       // out: factor on its speed
};

// Fills in the factors. Neighbours on disjoint SMs meet here and only here.
void ShareMemory(absl::Span<MemoryClient> clients);

}  // namespace gpushare::sim

#endif  // GPUSHARE_SRC_SIM_INTERFERENCE_H_
