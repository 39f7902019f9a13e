#include "tools/gpushare/datacenter/pair_runs.h"

#include "tools/gpushare/base/random.h"
#include "tools/gpushare/colocate/parallel.h"
#include "tools/gpushare/datacenter/gpu_figures.h"

namespace gpushare::tool {

namespace {

// Apart from the seeds of GPUs, which count from 1.
constexpr uint64_t kPairStream = 0;

uint64_t SeedOf(const Warehouse& warehouse, size_t service, size_t run) {
  return MixSeed(MixSeed(MixSeed(warehouse.apps.seed, kPairStream), service), run);
}

// Beside the BE apps [0, bes), or alone.
PairRuns RunAll(const RunContext& context, const std::string& policy, bool alone) {
  const size_t services = context.warehouse.services.size();
  const size_t bes = alone ? 1 : context.warehouse.apps.be.size();
  const auto runs = static_cast<size_t>(context.warehouse.table_runs);
  PairRuns out(services, bes, runs);
  RunParallel(out.slots().size(), context.threads, context.stop, [&](size_t job) {
    const size_t service = job / (bes * runs);
    SlotPlan slot;
    slot.service = static_cast<int32_t>(service);
    slot.be = alone ? kNoBe : static_cast<int32_t>(job / runs % bes);
    slot.policy = policy;
    slot.tier = context.tier;
    slot.seed = SeedOf(context.warehouse, service, job % runs);
    out.slots()[job] = context.runner.Run(slot);
    context.step(context.warehouse.services[service].name + (alone ? " alone" : " in pairs, ") +
                 (alone ? "" : policy));
  });
  return out;
}

}  // namespace

std::vector<std::vector<double>> PairRuns::MeanBeTime() const {
  std::vector<std::vector<double>> out(slots_.size() / (bes_ * runs_), std::vector<double>(bes_));
  for (size_t i = 0; i < slots_.size(); ++i) {
    out[i / (bes_ * runs_)][i / runs_ % bes_] += slots_[i].be_time / static_cast<double>(runs_);
  }
  return out;
}

std::vector<int64_t> PairRuns::P99ByService() const {
  std::vector<int64_t> out;
  for (size_t first = 0; first < slots_.size(); first += bes_ * runs_) {
    std::vector<const SortedLatencies*> parts;
    for (size_t i = 0; i < bes_ * runs_; ++i) parts.push_back(&slots_[first + i].latencies_ns);
    out.push_back(PooledQuantile(parts, 0.99));
  }
  return out;
}

PairRuns RunServicesAlone(const RunContext& context) { return RunAll(context, "bare", true); }

PairRuns RunPairs(const RunContext& context, const std::string& policy) {
  return RunAll(context, policy, false);
}

}  // namespace gpushare::tool
