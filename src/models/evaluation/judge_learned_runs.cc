// Co-schedules before and after runs; see judge_learned_runs.h.

#include "src/models/evaluation/judge_learned_runs.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/seams/device_profile.h"
#include "src/core/seams/kernel.h"
#include "src/models/online/co_schedules.h"

namespace gpushare::models {
namespace {

using core::CoResidentSide;
using core::KernelDesc;

// The pair as the scheduler asks for it.
struct Asked {
  const SharedSm* shared = nullptr;
  CoResidentSide own;
  CoResidentSide neighbour;

  double SpeedOfRepeat(size_t repeat) const {
    return shared->row->alone_ns[repeat] / shared->row->ns[repeat];
  }
  size_t repeats() const { return std::min(shared->row->alone_ns.size(), shared->row->ns.size()); }
};

std::map<const CountedKernel*, KernelDesc> Describe(const std::vector<SharedSm>& rows) {
  std::map<const CountedKernel*, KernelDesc> kernels;
  const auto add = [&](const CountedKernel* counted, const std::string& name) {
    const auto [found, is_new] = kernels.try_emplace(counted);
    if (!is_new) return;
    KernelDesc& kernel = found->second;
    kernel.id = core::KernelId{static_cast<uint32_t>(kernels.size())};
    kernel.name = name;
    kernel.counters = counted->counters;
    kernel.simulation.present = true;  // the occupancy was timed, also where it is 1
    kernel.simulation.saturating_occupancy = counted->saturating_occupancy;
    kernel.resources.threads_per_block = counted->threads_per_block;
    kernel.resources.workers_per_sm_max = counted->workers_per_sm_max;
  };
  for (const SharedSm& shared : rows) {
    add(shared.kernel, shared.row->kernel);
    add(shared.neighbour, shared.row->neighbour);
  }
  return kernels;
}

// Rows with the first workers of their kernel and neighbour, and those with others.
struct Split {
  std::vector<Asked> learned;
  std::vector<Asked> others;
};

Split SplitRows(const std::vector<SharedSm>& rows,
                const std::map<const CountedKernel*, KernelDesc>& kernels) {
  Split split;
  std::set<std::pair<std::string, std::string>> met;
  size_t runs = 0;
  for (const SharedSm& shared : rows) {
    const SampleRow& row = *shared.row;
    const Asked asked = {&shared,
                         {&kernels.at(shared.kernel), row.workers_per_sm, row.block_tasks},
                         {&kernels.at(shared.neighbour), row.neighbour_workers_per_sm, 0}};
    if (asked.repeats() < 2) continue;
    const std::pair pair(row.kernel, row.neighbour);
    if (met.contains(pair)) {
      split.others.push_back(asked);
    } else if (runs < kLearnedRuns) {
      met.insert(pair);
      split.learned.push_back(asked);
      runs += asked.repeats() - 1;
    }
  }
  return split;
}

void Judge(const CoSchedules& schedules, const std::vector<Asked>& rows, const char* family,
           const char* model, std::vector<Judged>& out) {
  for (const Asked& asked : rows) {
    const CoScheduleSpeeds speeds = schedules.Predict(asked.own, asked.neighbour);
    const SampleRow& row = *asked.shared->row;
    if (!(speeds.error < 1)) continue;
    out.push_back({family, model,
                   absl::StrCat(row.workers_per_sm, " x ", row.kernel, " beside ",
                                row.neighbour_workers_per_sm, " x ", row.neighbour),
                   speeds.speed[0], asked.SpeedOfRepeat(asked.repeats() - 1)});
  }
}

}  // namespace

void JudgeLearnedRuns(const co_resident::State& state, const std::vector<SharedSm>& rows,
                      int32_t sm_count, std::vector<Judged>& out) {
  const std::map<const CountedKernel*, KernelDesc> kernels = Describe(rows);
  core::DeviceProfile device;
  device.sm_count = sm_count;
  CoSchedules schedules(device, {});
  for (const auto& [counted, kernel] : kernels) schedules.Add(kernel);
  schedules.Restore(schedules.Prepare(state));
  const Split split = SplitRows(rows, kernels);
  const char* const same = "co-schedules";
  const char* const others = "co-schedules with other workers";
  Judge(schedules, split.learned, same, "before runs", out);
  Judge(schedules, split.others, others, "before runs", out);
  for (const Asked& asked : split.learned) {
    for (size_t repeat = 0; repeat + 1 < asked.repeats(); ++repeat) {
      schedules.Observe(asked.own, asked.neighbour, asked.SpeedOfRepeat(repeat));
    }
  }
  Judge(schedules, split.learned, same, "after 200 runs", out);
  Judge(schedules, split.others, others, "after 200 runs", out);
}

}  // namespace gpushare::models
