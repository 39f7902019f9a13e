// The interference model: how much co-residents of an SM, and neighbours on other SMs, slow each
// other.
//
// Pure functions of plain numbers. speeds.cc calls them when the set of resident launches changes.
// Equations and sources: README.md, "Interference".

#ifndef GPUSHARE_SRC_SIM_PHYSICS_INTERFERENCE_H_
#define GPUSHARE_SRC_SIM_PHYSICS_INTERFERENCE_H_

#include "absl/types/span.h"

namespace gpushare::sim {

// The demand of one launch on an SM: its resource demand times its occupancy speed.
struct SmClient {
  double issue = 0;
  double tensor = 0;
  double special = 0;
  double speed = 1;  // occupancy speed, 0 to 1: the share of the SM's time it needs
};

// The factor in (0, 1] on the speed of every client of the SM; 1 for a single client. `counted`:
// the demands are counters of a GPU, which leave out what the clients wait for each other
// elsewhere.
double SharedSmFactor(absl::Span<const SmClient> clients, bool counted = false);

// The demand of one launch on the memory system from all of its SMs, at its speed without
// neighbours.
struct MemoryClient {
  double dram = 0;         // share of the device's bandwidth
  double l2 = 0;           // share of the device's L2 throughput
  double sensitivity = 0;  // own DRAM demand at full speed; L2 misses slow it by as much more
  double weight = 0;       // outstanding requests: SMs x memory_parallelism
  double factor = 1;       // output: factor on its speed
};

// Sets the factors. Neighbours on disjoint SMs interact only here.
void ShareMemory(absl::Span<MemoryClient> clients);

}  // namespace gpushare::sim

#endif  // GPUSHARE_SRC_SIM_PHYSICS_INTERFERENCE_H_
