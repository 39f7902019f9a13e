// Bisection for the stalls and for the costliest pipe; see pre_run.h.

#include "src/models/markov/pipes/pre_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

namespace gpushare::models::markov {
namespace {

// A warp stalls once in 20 instructions at least: for a pipe, an operand or a barrier where it has
// few memory instructions. From 0.002 to 0.25 the errors on training pairs of an H200 hardly move.
constexpr double kStallShareMin = 0.05;
// The L2's counter is the busiest of its parts, which is not the same one for two kernels. Fitted
// to training pairs of an H200, among 0, 0.5, 0.7 to 1.
constexpr double kPartOfL2 = 0.9;
// Range of the factor on the costliest pipe. Below 1 the pipe is not what limits the kernel.
constexpr double kPipeFactorMin = 0.5;
constexpr double kFactorMax = 200;
constexpr double kLatencyMin = 0.01;
constexpr int kBisections = 30;

// The place of issue among the costs that a factor may scale.
constexpr size_t kIssue = kPipes;

struct Trial {
  size_t costliest = kIssue;
  PipeKernel kernel = {};

  PipeKernel With(double factor, double latency_cycles) const {
    PipeKernel scaled = kernel;
    scaled.latency_cycles = latency_cycles;
    if (costliest == kIssue) {
      scaled.issue_cycles = factor;
    } else {
      scaled.pipe_cycles[costliest] *= factor;
    }
    return scaled;
  }
};

double IpcAlone(const PreRun& pre_run, const PipeKernel& kernel, ChainWorkspace& workspace) {
  const PipeResident resident = {kernel, pre_run.blocks, pre_run.warps_per_unit};
  return SolvePipeChain(1, std::span(&resident, 1), {}, workspace).ipc[0];
}

// The largest value of [low, high] at which `ipc_of` is still at least `ipc`; it falls with the
// value.
template <class IpcOf>
double Bisect(double low, double high, double ipc, const IpcOf& ipc_of) {
  for (int i = 0; i < kBisections; ++i) {
    const double middle = (low + high) / 2;
    (ipc_of(middle) < ipc ? high : low) = middle;
  }
  return low;
}

bool IsUsable(const PreRun& pre_run) {
  const auto is_share = [](double value) { return value >= 0 && value <= 1; };
  return is_share(pre_run.issue) && pre_run.issue > 0 && is_share(pre_run.memory_share) &&
         is_share(pre_run.saturating_occupancy) && pre_run.saturating_occupancy > 0 &&
         pre_run.blocks > 0 && std::isfinite(pre_run.warps_per_unit) &&
         pre_run.warps_per_unit > 0 &&
         std::all_of(pre_run.use.begin(), pre_run.use.end(), is_share);
}

}  // namespace

PreRun MakePreRun(const core::KernelCounters& counters, double saturating_occupancy, int32_t blocks,
                  double warps_per_block, int32_t schedulers) {
  PreRun pre_run;
  // A profiler's shares may pass 1 by rounding. NaN stays, and is refused.
  const auto share = [](double value) { return value > 1 ? 1 : value; };
  pre_run.issue = share(counters.issue);
  pre_run.use = {share(counters.alu), share(counters.tensor), share(counters.special),
                 share(counters.lsu), share(counters.l1),     kPartOfL2 * share(counters.l2),
                 share(counters.dram)};
  pre_run.memory_share = share(counters.memory_instructions / counters.instructions);
  pre_run.saturating_occupancy = saturating_occupancy;
  pre_run.blocks = blocks;
  pre_run.warps_per_unit = warps_per_block / schedulers;
  return pre_run;
}

CalibratedKernel Calibrate(const PreRun& pre_run, ChainWorkspace& workspace) {
  CalibratedKernel result;
  if (!IsUsable(pre_run)) return result;
  Trial trial;
  PipeKernel& kernel = trial.kernel;
  kernel.stall_share = std::max(kStallShareMin, pre_run.memory_share);
  double most = pre_run.issue;
  for (size_t pipe = 0; pipe < kPipes; ++pipe) {
    kernel.pipe_cycles[pipe] = pre_run.use[pipe] / pre_run.issue / kernel.stall_share;
    if (pre_run.use[pipe] <= most) continue;
    most = pre_run.use[pipe];
    trial.costliest = pipe;
  }
  // Without a queue a warp issues once in so many cycles: the warps that saturate an SM share its
  // speed.
  const double warps = pre_run.blocks * pre_run.warps_per_unit;
  const double per_instruction = pre_run.saturating_occupancy * warps / pre_run.issue;
  const double latency = std::max(1.0, (per_instruction - 1) / kernel.stall_share);
  const double least = trial.costliest == kIssue ? 1 : kPipeFactorMin;
  const auto ipc_of = [&](double factor, double latency_cycles) {
    return IpcAlone(pre_run, trial.With(factor, latency_cycles), workspace);
  };
  if (ipc_of(least, latency) < pre_run.issue) {
    const double shorter = Bisect(kLatencyMin, latency, pre_run.issue,
                                  [&](double value) { return ipc_of(least, value); });
    result.kernel = trial.With(least, shorter);
  } else {
    const double factor = Bisect(least, kFactorMax, pre_run.issue,
                                 [&](double value) { return ipc_of(value, latency); });
    result.kernel = trial.With(factor, latency);
  }
  result.ipc_alone = IpcAlone(pre_run, result.kernel, workspace);
  result.known = result.ipc_alone > 0;
  return result;
}

}  // namespace gpushare::models::markov
