// Kernels by their counters; see counted_kernels.h.

#include "src/models/evaluation/counted_kernels.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/models/samples/hold_out.h"
#include "src/models/samples/row_times.h"

namespace gpushare::models {
namespace {

using Counters = std::map<std::string, double>;

// 0 without the counter; `missing` then counts it.
double Take(const Counters& counters, const char* name, int& missing) {
  const auto found = counters.find(name);
  if (found == counters.end()) {
    ++missing;
    return 0;
  }
  return found->second;
}

double Over(double value, double by) { return by > 0 ? value / by : 0; }

std::optional<CountedKernel> KernelOf(const SampleRow& row) {
  Counters all;
  for (const CounterValue& counter : row.counters) all[counter.name] = counter.value;
  int missing = 0;
  const auto take = [&](const char* name) { return Take(all, name, missing); };
  CountedKernel kernel;
  core::KernelCounters& counters = kernel.counters;
  for (const auto& [name, value] :
       {std::pair{"issue", &counters.issue}, std::pair{"fma", &counters.fma},
        std::pair{"alu", &counters.alu}, std::pair{"tensor", &counters.tensor},
        std::pair{"special", &counters.special}, std::pair{"lsu", &counters.lsu},
        std::pair{"shared", &counters.shared}, std::pair{"l1", &counters.l1},
        std::pair{"l2", &counters.l2}, std::pair{"dram", &counters.dram}}) {
    *value = take(name);
  }
  const auto tasks = static_cast<double>(row.block_tasks);
  counters.instructions = Over(take("instructions"), tasks);
  counters.memory_instructions = Over(take("global_instructions"), tasks);
  counters.sectors_per_request = Over(take("global_sectors"), take("global_requests"));
  const double ns = take("duration_ns");
  kernel.cycles_per_ns = Over(take("cycles"), ns);
  kernel.dram_bytes_per_ns = Over(take("dram_bytes"), ns);
  kernel.threads_per_block = static_cast<int32_t>(take("threads"));
  kernel.workers_per_sm_max = static_cast<int32_t>(take("workers_per_sm"));
  const bool usable = missing == 0 && counters.present() && kernel.cycles_per_ns > 0 &&
                      kernel.threads_per_block > 0 && kernel.workers_per_sm_max > 0;
  return usable ? std::optional(kernel) : std::nullopt;
}

// Workers alone by their number, 0 for all that fit.
using SoloTimes = std::map<std::pair<int64_t, int32_t>, double>;

// The occupancy s for which min(1, occupancy / s) is closest to the measured speeds; 1 without any.
double SaturatingOccupancy(const SoloTimes& times, int32_t most) {
  constexpr double kStep = 0.005;
  const auto error = [&](double saturating) {
    double sum = 0;
    for (const auto& [key, ns] : times) {
      const auto full = times.find({key.first, 0});
      if (key.second == 0 || full == times.end()) continue;
      const double model = std::min(1.0, static_cast<double>(key.second) / most / saturating);
      sum += std::pow(full->second / ns - model, 2);
    }
    return sum;
  };
  double best = 1;
  for (double s = 1; s > kStep; s -= kStep) {
    if (error(s) < error(best) - 1e-12) best = s;
  }
  return best;
}

}  // namespace

std::map<std::string, CountedKernel> CountedKernels(const Samples& samples) {
  std::map<std::string, CountedKernel> kernels;
  std::map<std::string, SoloTimes> times;
  for (const SampleRow& row : samples.rows) {
    if (row.what == SampleKind::kCounters) {
      if (const auto kernel = KernelOf(row)) kernels[row.kernel] = *kernel;
    } else if (row.what == SampleKind::kSolo && row.form == core::Form::kWorkers &&
               row.sms == samples.head.sm_count && Median(row.ns) > 0) {
      times[row.kernel][{row.block_tasks, row.workers_per_sm}] = Median(row.ns);
    }
  }
  for (auto& [name, kernel] : kernels) {
    kernel.saturating_occupancy = SaturatingOccupancy(times[name], kernel.workers_per_sm_max);
  }
  return kernels;
}

std::vector<SharedSm> SharedSms(const Samples& samples,
                                const std::map<std::string, CountedKernel>& kernels) {
  std::vector<SharedSm> all;
  for (const SampleRow& row : samples.rows) {
    if (row.what != SampleKind::kBeside || !row.same_sms || row.form != core::Form::kWorkers) {
      continue;
    }
    const auto kernel = kernels.find(row.kernel);
    const auto neighbour = kernels.find(row.neighbour);
    const double speed = MedianRatio(row.alone_ns, row.ns);
    if (kernel == kernels.end() || neighbour == kernels.end() || !(speed > 0)) continue;
    const bool held_out = IsHeldOut(absl::StrCat("pair ", std::min(row.kernel, row.neighbour), " ",
                                                 std::max(row.kernel, row.neighbour)));
    all.push_back({&row, &kernel->second, &neighbour->second, speed, held_out});
  }
  return all;
}

}  // namespace gpushare::models
