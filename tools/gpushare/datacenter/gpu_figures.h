// What one GPU showed: its co-locations, one a slot, and its LC app over all of them.
//
// Pure. Threads: any.

#ifndef GPUSHARE_TOOLS_GPUSHARE_DATACENTER_GPU_FIGURES_H_
#define GPUSHARE_TOOLS_GPUSHARE_DATACENTER_GPU_FIGURES_H_

#include <cstdint>
#include <vector>

namespace gpushare::tool {

// The p99 of a set of queries and what it must not exceed.
struct Latency {
  int64_t queries = 0;
  int64_t late = 0;  // above the limit
  int64_t p99_ns = 0;
  int64_t limit_ns = 0;

  bool Violated() const { return p99_ns > limit_ns; }
  // How far the p99 is above the limit, as a share of it; below 0: within. Without a query the
  // limit may be 0 too, and nothing is violated.
  double Excess() const {
    if (queries == 0) return -1;
    return static_cast<double>(p99_ns) / static_cast<double>(limit_ns) - 1;
  }
  bool operator==(const Latency&) const = default;
};

struct ColocationFigures {
  Latency latency;
  double be_time = 0;  // what the BE work takes alone, over the time of the co-location
  bool operator==(const ColocationFigures&) const = default;
};

struct GpuFigures {
  int32_t service = 0;
  Latency latency;  // of the LC app over all its co-locations
  std::vector<ColocationFigures> colocations;

  // The mean BE time of the co-locations, each with the same weight. A run ends at its last
  // arrival, so the times they are over differ by a few gaps between arrivals.
  double BeTime() const;
  bool operator==(const GpuFigures&) const = default;
};

using SortedLatencies = std::vector<int64_t>;

// Quantile (metrics.h) of all samples together. Each entry is ascending. Takes time in proportion
// to the samples above the quantile.
int64_t PooledQuantile(const std::vector<const SortedLatencies*>& parts, double fraction);

// Judges the queries of `parts` together against a limit.
Latency LatencyOf(const std::vector<const SortedLatencies*>& parts, int64_t limit_ns);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_DATACENTER_GPU_FIGURES_H_
