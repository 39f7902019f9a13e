// Metrics by name; see metrics.h.

#include "src/cuda/counters/metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace gpushare::cuda {
namespace {

using core::LaunchCounts;

// Where a metric's value is added. Shares come in per cent. Cycles and shares are of different
// passes, so that a share may come out a little above 1.
struct Metric {
  const char* name;
  double LaunchCounts::*target;
  bool share;
};

#define GPUSHARE_PEAK ".avg.pct_of_peak_sustained_elapsed"
// The first two say for which part of the time something ran: a range begins with the call that
// opens it and ends with the one that closes it, and CUPTI's shares are over all of that.
constexpr size_t kActiveCycles = 0;
constexpr size_t kElapsedCycles = 1;
constexpr Metric kMetrics[] = {
    {"sm__cycles_active.max", nullptr, false},
    {"sm__cycles_elapsed.max", nullptr, false},
    {"smsp__inst_executed.sum", &LaunchCounts::instructions, false},
    {"smsp__inst_executed_op_global_ld.sum", &LaunchCounts::memory_instructions, false},
    {"smsp__inst_executed_op_global_st.sum", &LaunchCounts::memory_instructions, false},
    {"smsp__inst_executed_op_ldgsts.sum", &LaunchCounts::memory_instructions, false},
    {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", &LaunchCounts::requests, false},
    {"l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", &LaunchCounts::requests, false},
    {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", &LaunchCounts::sectors, false},
    {"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", &LaunchCounts::sectors, false},
    {"dram__bytes_read.sum", &LaunchCounts::dram_read_bytes, false},
    {"dram__bytes_write.sum", &LaunchCounts::dram_write_bytes, false},
    {"smsp__issue_active" GPUSHARE_PEAK, &LaunchCounts::issue, true},
    {"sm__pipe_fma_cycles_active" GPUSHARE_PEAK, &LaunchCounts::fma, true},
    {"sm__pipe_alu_cycles_active" GPUSHARE_PEAK, &LaunchCounts::alu, true},
    {"sm__pipe_tensor_cycles_active" GPUSHARE_PEAK, &LaunchCounts::tensor, true},
    {"sm__inst_executed_pipe_xu" GPUSHARE_PEAK, &LaunchCounts::special, true},
    {"sm__inst_executed_pipe_lsu" GPUSHARE_PEAK, &LaunchCounts::lsu, true},
    {"l1tex__data_pipe_lsu_wavefronts_mem_shared" GPUSHARE_PEAK, &LaunchCounts::shared, true},
    {"l1tex__throughput" GPUSHARE_PEAK, &LaunchCounts::l1, true},
    {"lts__throughput" GPUSHARE_PEAK, &LaunchCounts::l2, true},
    {"dram__throughput" GPUSHARE_PEAK, &LaunchCounts::dram, true},
};
#undef GPUSHARE_PEAK

constexpr double kPerCent = 0.01;

constexpr std::array kNames = [] {
  std::array<const char*, std::size(kMetrics)> names = {};
  for (size_t i = 0; i < names.size(); ++i) names[i] = kMetrics[i].name;
  return names;
}();

}  // namespace

absl::Span<const char* const> CountedMetrics() { return kNames; }

absl::StatusOr<LaunchCounts> CountsOf(absl::Span<const double> values) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (i < values.size() && std::isfinite(values[i]) && values[i] >= 0) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "The kernel is not counted: the GPU counted ", i < values.size() ? values[i] : 0, " of ",
        kNames[i], ", which happens when a launch is short or another process uses the GPU."));
  }
  if (!(values[kActiveCycles] > 0 && values[kActiveCycles] <= values[kElapsedCycles])) {
    return absl::FailedPreconditionError(absl::StrCat(
        "The kernel is not counted: SMs were active in ", values[kActiveCycles], " of ",
        values[kElapsedCycles], " cycles, so nothing ran or it was too short to be counted."));
  }
  const double to_share = kPerCent * values[kElapsedCycles] / values[kActiveCycles];
  LaunchCounts counts;
  for (size_t i = 0; i < kNames.size(); ++i) {
    const Metric& metric = kMetrics[i];
    if (metric.target == nullptr) continue;
    double& target = counts.*metric.target;
    target = metric.share ? std::min(1.0, values[i] * to_share) : target + values[i];
  }
  if (counts.instructions > 0 && counts.issue > 0) return counts;
  return absl::FailedPreconditionError(absl::StrCat(
      "The kernel is not counted: the GPU counted ", counts.instructions,
      " instructions and an issue rate of ", counts.issue, ", so the launch was too short."));
}

}  // namespace gpushare::cuda
