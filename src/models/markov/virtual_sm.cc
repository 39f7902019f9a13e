#include "src/models/markov/virtual_sm.h"

#include <algorithm>
#include <cmath>

namespace gpushare::models::markov {

VirtualSm MakeVirtualSm(const GpuShape& gpu) {
  const double requests_per_cycle = gpu.bandwidth_bytes_per_s / gpu.request_bytes / gpu.clock_hz;
  const double virtual_sms = static_cast<double>(gpu.sms) * gpu.schedulers_per_sm;
  return {.schedulers = gpu.schedulers_per_sm,
          .latency_cycles = gpu.latency_cycles,
          .contention_slope = gpu.contention_slope,
          .contention_offset = gpu.contention_offset,
          .requests_per_cycle = requests_per_cycle / virtual_sms};
}

bool IsUsable(const VirtualSm& sm) {
  return sm.schedulers > 0 && std::isfinite(sm.latency_cycles) && sm.latency_cycles >= 0 &&
         std::isfinite(sm.contention_slope) && sm.contention_slope >= 0 &&
         std::isfinite(sm.contention_offset) && std::isfinite(sm.requests_per_cycle) &&
         sm.requests_per_cycle > 0 && std::isfinite(1 / sm.requests_per_cycle);
}

double MemoryLatency(const VirtualSm& sm, double outstanding_requests) {
  const double contention =
      (sm.contention_slope * outstanding_requests + sm.contention_offset) / sm.requests_per_cycle;
  return std::max(1.0, sm.latency_cycles + contention);
}

}  // namespace gpushare::models::markov
