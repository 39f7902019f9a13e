// What a device counted of launches: the answer of Device::CountLaunches. Plain data.

#ifndef GPUSHARE_SRC_CORE_SEAMS_LAUNCH_COUNTS_H_
#define GPUSHARE_SRC_CORE_SEAMS_LAUNCH_COUNTS_H_

namespace gpushare::core {

struct LaunchCounts {
  // Totals of all that ran.
  double instructions = 0;         // of warps
  double memory_instructions = 0;  // of these, loads, stores and async copies of global memory
  double requests = 0;             // of such loads and stores to the L1 caches, one a warp
  double sectors = 0;              // of 32 bytes, that these asked for
  double dram_read_bytes = 0;
  double dram_write_bytes = 0;
  // Shares of the peak over the time in which it ran, 0 to 1, as in KernelCounters.
  double issue = 0;
  double fma = 0;
  double alu = 0;
  double tensor = 0;
  double special = 0;
  double lsu = 0;
  double shared = 0;
  double l1 = 0;
  double l2 = 0;
  double dram = 0;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_LAUNCH_COUNTS_H_
