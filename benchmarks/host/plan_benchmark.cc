// The policy's part of the plan stage: one call of each policy on a busy snapshot, 10 active
// queries and 50 BE queue heads (Tacker reports 1.2 ms for its decision; the goal here is 5 us at
// the median).
//
// Each iteration plans the same snapshot; what a policy memoises between plans is warm, as it is in
// the flow, where most plans see the pair table of the plan before; `new_pair_table` is the first
// plan after a model has changed; `overlaps` has 50 pairs to judge.

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/harness/quantiles.h"
#include "src/core/policies/registry.h"
#include "src/core/seams/snapshot.h"
#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core::testing {
namespace {

constexpr int kQueries = 10;
constexpr int kBeHeads = 50;
constexpr int kLcApps = 5;
constexpr int kBeApps = 10;
constexpr int kKernels = 8;

// Queries with little and with much headroom, BE work of every kind: short and long block tasks,
// opaque work, copies both ways, and two tasks that run already.
void Fill(SnapshotBuilder& builder) {
  for (int app = 0; app < kLcApps; ++app) {
    builder.AddLcApp(0.1, 700 * kUs, 2200 * kUs, 1.05);
    builder.lc_apps.back().promise.target_ns = 7 * kMs;
  }
  for (int app = 0; app < kBeApps; ++app) builder.AddBeApp(app * 100 * kUs);
  for (int kernel = 0; kernel < kKernels; ++kernel) {
    builder.AddKernel(kernel % 4 == 3 ? kNever : (20 + 40 * kernel) * kUs);
  }
  for (int query = 0; query < kQueries; ++query) {
    builder.AddQuery(query % kLcApps, (query + 1) * 500 * kUs);
    builder.AddLcHead(query % kLcApps);
  }
  for (int head = 0; head < kBeHeads; ++head) {
    const int app = head % kBeApps;
    if (head % 10 == 8) {
      builder.AddBeTask(app, TaskKind::kOpaque, 300 * kUs);
    } else if (head % 10 == 9) {
      builder.AddBeCopy(
          app, head % 20 == 9 ? CopyDirection::kHostToDevice : CopyDirection::kDeviceToHost,
          int64_t{64} << 20, 1200 * kUs);
    } else {
      builder.AddBeHead(app, head % kKernels, (1 + head % 7) * kMs);
    }
  }
  builder.AddRunningBe(0, 0, 2 * kMs, {{kWholeDevice, Form::kWorkers, false, 1056}});
  builder.AddRunningBe(1, 1, 2 * kMs, {{builder.BePlace(92), Form::kWorkers, false, 320}});
}

// Without active queries the planner looks at every BE head.
void FillIdle(SnapshotBuilder& builder) {
  Fill(builder);
  builder.queries.clear();
  for (LcAppView& app : builder.lc_apps) app.active_queries = 0;
  builder.heads.erase(builder.heads.begin(), builder.heads.begin() + kQueries);
}

// Every BE kernel has a fused kernel and co-schedules with the last query's next kernel, which is
// the only LC head: 50 pairs to judge. For kernelet all pairs of the eight kernels have
// co-schedules, and no query is active.
void FillOverlaps(SnapshotBuilder& builder, bool queries) {
  if (queries) {
    Fill(builder);
    builder.heads.erase(builder.heads.begin(), builder.heads.begin() + kQueries);
  } else {
    FillIdle(builder);
    builder.running.clear();
  }
  const int32_t tensor = builder.AddKernel(kNever);
  std::vector<int32_t> rows;
  for (int32_t kernel = 0; kernel <= kKernels; ++kernel) {
    rows.push_back(builder.AddOverlapRow(kernel));
    builder.Counters(kernel) = {.instructions = 1, .issue = 0.1 * kernel, .dram = 0.1};
    if (kernel < kKernels) builder.Fuse(tensor, kernel, 1, 1.1 + 0.1 * kernel);
  }
  for (const int32_t row : rows) {
    for (int32_t column = 0; column <= row; ++column) {
      for (int32_t ratio = 0; ratio < kCoScheduleRatios; ++ratio) {
        const auto speed = static_cast<float>(0.5 + 0.02 * ((row + column + ratio) % 10));
        builder.CoSchedule(row, column, ratio) = {{4, 4}, {speed, speed}, 0.1F, 1 - 0.5F / speed};
      }
    }
  }
  for (HeadView& head : builder.heads) head.overlap_index = head.kernel_index;
  if (!queries) return;
  HeadView& head = builder.AddLcKernelHead(kQueries - 1, tensor, 100 * kUs, 4);
  head.overlap_index = rows.back();
}

enum class Mode { kBusy, kIdle, kNewPairTable, kOverlaps };

void Plans(benchmark::State& state, const std::string& name, Mode mode) {
  SnapshotBuilder builder;
  if (mode == Mode::kOverlaps) {
    FillOverlaps(builder, name == "tacker");
  } else if (mode == Mode::kIdle) {
    FillIdle(builder);
  } else {
    Fill(builder);
  }
  Snapshot snapshot = builder.Get();
  const std::unique_ptr<Policy> policy = NewPolicy(name.c_str());
  const auto plan = std::make_unique<Plan>();
  std::vector<int64_t> times_ns;
  times_ns.reserve(size_t{1} << 22);
  for (auto _ : state) {
    if (mode == Mode::kNewPairTable) ++snapshot.pairs.version;
    const auto start = std::chrono::steady_clock::now();
    plan->Clear();
    policy->MakePlan(snapshot, *plan);
    const auto end = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(plan->launches.size());
    if (times_ns.size() < times_ns.capacity()) {
      times_ns.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count());
    }
  }
  state.counters["p50_ns"] = static_cast<double>(benchmarks::Median(times_ns));
  state.counters["p99_ns"] = static_cast<double>(benchmarks::Quantile(times_ns, 0.99));
  state.counters["launches"] = plan->launches.size();
  state.counters["holds"] = plan->holds.size();
}

}  // namespace
}  // namespace gpushare::core::testing

int main(int argc, char** argv) {
  for (const std::string& name : gpushare::core::PolicyNames()) {
    using gpushare::core::testing::Mode;
    using gpushare::core::testing::Plans;
    benchmark::RegisterBenchmark(("Plan/" + name).c_str(), Plans, name, Mode::kBusy);
    benchmark::RegisterBenchmark(("Plan/" + name + "/no_active_query").c_str(), Plans, name,
                                 Mode::kIdle);
    benchmark::RegisterBenchmark(("Plan/" + name + "/new_pair_table").c_str(), Plans, name,
                                 Mode::kNewPairTable);
    if (name != "tacker" && name != "kernelet") continue;
    benchmark::RegisterBenchmark(("Plan/" + name + "/overlaps").c_str(), Plans, name,
                                 Mode::kOverlaps);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
