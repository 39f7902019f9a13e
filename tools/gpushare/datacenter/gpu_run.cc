#include "tools/gpushare/datacenter/gpu_run.h"

#include <cstddef>
#include <vector>

#include "tools/gpushare/base/random.h"

namespace gpushare::tool {

namespace {

uint64_t SeedOf(const Warehouse& warehouse, const PlacedGpu& gpu, size_t slot) {
  const auto service = static_cast<uint64_t>(gpu.service);
  const auto replica = static_cast<uint64_t>(gpu.replica);
  return MixSeed(MixSeed(MixSeed(warehouse.apps.seed, service + 1), replica), slot);
}

// `runs` and `alone` have an entry for each slot; `alone` is empty where no limit needs it.
GpuFigures FiguresOf(const SlotRunner& runner, const PlacedGpu& gpu,
                     const std::vector<const SlotRun*>& runs,
                     const std::vector<const SlotRun*>& alone) {
  const auto limit_over = [&](const std::vector<const SortedLatencies*>& parts) {
    return runner.LimitNs(gpu.service, PooledQuantile(parts, 0.99));
  };
  GpuFigures out;
  out.service = gpu.service;
  std::vector<const SortedLatencies*> all;
  std::vector<const SortedLatencies*> all_alone;
  for (size_t i = 0; i < runs.size(); ++i) {
    std::vector<const SortedLatencies*> slot_alone;
    if (!alone.empty()) slot_alone.push_back(&alone[i]->latencies_ns);
    const std::vector<const SortedLatencies*> slot = {&runs[i]->latencies_ns};
    out.colocations.push_back({LatencyOf(slot, limit_over(slot_alone)), runs[i]->be_time});
    all.push_back(slot[0]);
    all_alone.insert(all_alone.end(), slot_alone.begin(), slot_alone.end());
  }
  out.latency = LatencyOf(all, limit_over(all_alone));
  return out;
}

std::vector<const SlotRun*> PointersTo(const std::vector<SlotRun>& runs) {
  std::vector<const SlotRun*> out;
  out.reserve(runs.size());
  for (const SlotRun& run : runs) out.push_back(&run);
  return out;
}

}  // namespace

GpuFigures SimulateGpu(const RunContext& context, const PlacedGpu& gpu, const std::string& policy) {
  std::vector<SlotRun> runs;
  std::vector<SlotRun> alone;
  for (size_t i = 0; i < gpu.be.size(); ++i) {
    SlotPlan slot{gpu.service, gpu.be[i], policy, context.tier, SeedOf(context.warehouse, gpu, i)};
    runs.push_back(context.runner.Run(slot));
    if (!context.runner.LimitIsRelative(gpu.service)) continue;
    slot.be = kNoBe;
    slot.policy = "bare";
    alone.push_back(context.runner.Run(slot));
  }
  return FiguresOf(context.runner, gpu, PointersTo(runs), PointersTo(alone));
}

GpuFigures DrawGpu(const RunContext& context, const PlacedGpu& gpu, const PairRuns& alone,
                   const PairRuns& pairs) {
  std::vector<const SlotRun*> runs;
  std::vector<const SlotRun*> runs_alone;
  const auto service = static_cast<size_t>(gpu.service);
  for (size_t i = 0; i < gpu.be.size(); ++i) {
    const size_t run = SeedOf(context.warehouse, gpu, i) % pairs.runs();
    runs.push_back(&pairs.At(service, static_cast<size_t>(gpu.be[i]), run));
    runs_alone.push_back(&alone.At(service, 0, run));
  }
  return FiguresOf(context.runner, gpu, runs, runs_alone);
}

}  // namespace gpushare::tool
