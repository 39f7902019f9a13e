// The plan stage as the flow runs it: the snapshot's building and the policy's answer, with 10
// active queries and 50 BE queue heads in the tables. Goal: 5 us at the median (Tacker reports 1.2
// ms for its decision). plan_benchmark.cc has the policy's part alone.

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/harness/quantiles.h"
#include "src/core/flow/admit.h"
#include "src/core/flow/plan.h"
#include "src/core/flow/predict.h"
#include "src/core/flow/submit.h"
#include "src/core/policies/registry.h"
#include "src/core/seams/kernel_check.h"
#include "src/core/state/flow.h"
#include "src/models/online/online_model.h"
#include "src/null/null_device.h"

namespace gpushare::core {
namespace {

constexpr int kQueries = 10;
constexpr int kBeHeads = 50;

template <class T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::exit(1);
}

// Tables with the asked heads; nothing is launched, so that every plan sees the same.
// `quotas`: every BE app has a packed quota, and an LC app reserves CapSMs.
std::unique_ptr<Flow> BusyFlow(const std::string& policy, bool quotas) {
  auto device = null::MakeNullDevice();
  auto model = models::MakeOnlineModel(device->capabilities().profile);
  auto flow = std::make_unique<Flow>(SchedulerOptions(), std::move(device), std::move(model),
                                     Must(MakePolicy(policy)));
  if (!flow->lanes.Create(*flow->device, kMaxSplits).ok()) std::exit(1);
  flow->fast_path.store(false);
  KernelDesc kernel;
  kernel.name = "kernel";
  kernel.evictable = true;
  kernel.simulation.present = true;
  kernel.simulation.block_task_ns = 27'000;
  // As the scheduler registers it.
  if (!flow->device->DescribeKernel(kernel).ok()) std::exit(1);
  FillUnknown(kernel);
  const KernelDesc& registered = *Must(flow->tables.StageKernel(kernel));
  if (!flow->device->PrepareKernel(registered).ok()) std::exit(1);
  flow->model->AddKernel(registered);
  flow->tables.PublishKernel();
  for (int i = 0; i < kQueries + kBeHeads; ++i) {
    AppOptions options;
    options.name = "app" + std::to_string(i);
    options.tasks_max = 4;
    if (i < kQueries) {
      options.app_class = AppClass::kLatencyCritical;
      options.p99_bound = 1.05;
      options.p99_alone_ns = 2'000'000;
      options.target_ns = 7'000'000;
    }
    App& app = *Must(flow->tables.CreateApp(options));
    flow->ledger.AddApp(static_cast<int>(app.slot), options.app_class);
    if (quotas && (i == 0 || i >= kQueries)) {
      app.packed = i >= kQueries;
      app.reserved_capsms = i == 0 ? 16 : 32;
    }
    TaskSpec spec;
    spec.queue = QueueId{Must(flow->tables.CreateQueue(app))->id.load()};
    spec.kernel = registered.id;
    spec.work.block_tasks = 100'000;
    Must(SubmitTask(*flow, spec, options.app_class));
  }
  flow->now_ns = flow->device->NowNs();
  Collect(*flow);
  Admit(*flow);
  Predict(*flow);
  return flow;
}

void PlanStage(benchmark::State& state, const std::string& policy, bool quotas) {
  const std::unique_ptr<Flow> flow = BusyFlow(policy, quotas);
  std::vector<int64_t> times_ns;
  times_ns.reserve(size_t{1} << 22);
  for (auto _ : state) {
    flow->now_ns = flow->device->NowNs();
    flow->dirty = true;
    const auto start = std::chrono::steady_clock::now();
    MakePlan(*flow);
    const auto end = std::chrono::steady_clock::now();
    if (times_ns.size() < times_ns.capacity()) {
      times_ns.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count());
    }
  }
  state.counters["p50_ns"] = static_cast<double>(benchmarks::Median(times_ns));
  state.counters["p99_ns"] = static_cast<double>(benchmarks::Quantile(times_ns, 0.99));
  state.counters["heads"] = static_cast<double>(flow->buffers.snapshot.heads.size());
  state.counters["queries"] = static_cast<double>(flow->buffers.snapshot.queries.size());
}

}  // namespace
}  // namespace gpushare::core

int main(int argc, char** argv) {
  for (const std::string& name : gpushare::core::PolicyNames()) {
    benchmark::RegisterBenchmark(("PlanStage/" + name).c_str(), gpushare::core::PlanStage, name,
                                 false);
  }
  benchmark::RegisterBenchmark("PlanStage/adaptive/quotas", gpushare::core::PlanStage, "adaptive",
                               true);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
