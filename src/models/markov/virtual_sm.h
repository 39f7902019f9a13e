// The SM that the chain models: one warp scheduler with its share of the SM and of the bandwidth.
//
// Kernelet 4.4, "Adaptation to GPUs with multiple warp schedulers". Threads: any.

#ifndef GPUSHARE_SRC_MODELS_MARKOV_VIRTUAL_SM_H_
#define GPUSHARE_SRC_MODELS_MARKOV_VIRTUAL_SM_H_

#include <cstdint>

namespace gpushare::models::markov {

// What one SM has for block tasks, and what the device's memory gives.
struct GpuShape {
  int32_t sms = 0;
  // Schedulers that each issue one instruction a cycle. Fermi's two, which issue half a warp a
  // cycle each, count as one.
  int32_t schedulers_per_sm = 1;
  int32_t warps_per_sm = 0;
  int32_t blocks_per_sm = 0;
  int64_t registers_per_sm = 0;
  int64_t shared_bytes_per_sm = 0;
  double clock_hz = 0;
  double bandwidth_bytes_per_s = 0;
  double request_bytes = 128;  // one coalesced access of a warp
  double latency_cycles = 0;   // L0: an access without contention
  // The line of contention over outstanding requests (a0 and b0 of the paper), fitted per GPU.
  double contention_slope = 1;
  double contention_offset = 0;
};

// One scheduler of one SM.
struct VirtualSm {
  int32_t schedulers = 1;         // the SM's IPC is this many times the virtual SM's
  double latency_cycles = 0;      // L0
  double contention_slope = 1;    // a0
  double contention_offset = 0;   // b0
  double requests_per_cycle = 0;  // B, of this scheduler
};

// B is the device's bandwidth in requests a cycle, divided by SMs and schedulers (docs/errata.md).
VirtualSm MakeVirtualSm(const GpuShape& gpu);

// Whether the latency of every number of outstanding requests is finite and positive.
bool IsUsable(const VirtualSm& sm);

// L = L0 + (a0 x requests + b0) / B cycles, at least one cycle. As printed, the paper divides B by
// a0 x S + b0, which makes latency fall under load; docs/models.md explains the correction.
double MemoryLatency(const VirtualSm& sm, double outstanding_requests);

}  // namespace gpushare::models::markov

#endif  // GPUSHARE_SRC_MODELS_MARKOV_VIRTUAL_SM_H_
