// What the online model costs the scheduler: a prediction of each kind, and an observation.
// Goals: a duration 100 ns, fused or co-resident 200 ns, an observation 2 us.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "src/models/online_model.h"

namespace gpushare::models {
namespace {

using core::CoResidentSide;
using core::CostModel;
using core::DeviceProfile;
using core::FusedFeatures;
using core::FusedKernelDesc;
using core::KernelDesc;
using core::KernelId;
using core::Observation;
using core::TaskFeatures;

constexpr uint32_t kKernels = 30;

// Thirty trained kernels with counters, and a fused kernel of the first two.
struct Trained {
  Trained() {
    for (uint32_t id = 1; id <= kKernels; ++id) {
      KernelDesc& kernel = kernels[id - 1];
      kernel.id = KernelId{id};
      kernel.name = "kernel" + std::to_string(id);
      kernel.evictable = true;
      kernel.simulation.present = true;
      kernel.simulation.block_task_ns = 20000;
      kernel.counters = {
          .instructions = 1000, .memory_instructions = 50, .issue = 0.4, .dram = 0.3};
      model->AddKernel(kernel);
      for (int i = 0; i < 20; ++i) model->Observe(Solo(kernel, 100 + 50 * i));
    }
    fused.id = KernelId{1};
    fused.name = "fused";
    fused.tensor_part = KernelId{1};
    fused.cuda_part = KernelId{2};
    model->AddFusedKernel(fused);
  }
  static TaskFeatures FeaturesOf(const KernelDesc& kernel, int64_t block_tasks) {
    TaskFeatures features;
    features.kernel = &kernel;
    features.block_tasks = block_tasks;
    return features;
  }
  static Observation Solo(const KernelDesc& kernel, int64_t block_tasks) {
    Observation observation;
    observation.features = FeaturesOf(kernel, block_tasks);
    observation.sms = DeviceProfile().sm_count;
    observation.measured_ns = 5000 + 30 * block_tasks;
    return observation;
  }

  std::vector<KernelDesc> kernels = std::vector<KernelDesc>(kKernels);
  FusedKernelDesc fused;
  std::unique_ptr<CostModel> model = MakeOnlineModel(DeviceProfile());
};

void Duration(benchmark::State& state) {
  const Trained trained;
  uint32_t next = 0;
  for (auto _ : state) {
    const KernelDesc& kernel = trained.kernels[next++ % kKernels];
    benchmark::DoNotOptimize(trained.model->PredictSolo(Trained::FeaturesOf(kernel, 500)));
  }
}

void Fused(benchmark::State& state) {
  const Trained trained;
  int64_t tasks = 0;
  for (auto _ : state) {
    const FusedFeatures features{&trained.fused, 500, ++tasks % 1000};
    benchmark::DoNotOptimize(trained.model->PredictFused(features));
  }
}

void CoResident(benchmark::State& state) {
  const Trained trained;
  uint32_t next = 0;
  for (auto _ : state) {
    const CoResidentSide first{&trained.kernels[next % kKernels], 4, 500};
    const CoResidentSide second{&trained.kernels[++next % kKernels], 4, 500};
    benchmark::DoNotOptimize(trained.model->PredictCoResident(first, second));
  }
}

void Beside(benchmark::State& state) {
  const Trained trained;
  uint32_t next = 0;
  for (auto _ : state) {
    const KernelDesc& first = trained.kernels[next % kKernels];
    const KernelDesc& second = trained.kernels[++next % kKernels];
    benchmark::DoNotOptimize(trained.model->SpeedBeside(first, 84, second, 48));
  }
}

void ObserveDuration(benchmark::State& state) {
  const Trained trained;
  uint32_t next = 0;
  for (auto _ : state) {
    const KernelDesc& kernel = trained.kernels[next % kKernels];
    trained.model->Observe(Trained::Solo(kernel, 100 + 10 * (next % 97)));
    ++next;
  }
}

// Runs that are as predicted; a fit happens past 10 % only.
void ObserveFused(benchmark::State& state) {
  const Trained trained;
  int64_t next = 0;
  for (auto _ : state) {
    const FusedFeatures features{&trained.fused, 500, 100 + ++next % 1000};
    Observation observation = Trained::Solo(trained.kernels[0], 500);
    observation.form = core::Form::kFused;
    observation.fused = &features;
    observation.measured_ns = trained.model->PredictFused(features).duration_ns;
    trained.model->Observe(observation);
  }
}

BENCHMARK(Duration);
BENCHMARK(Fused);
BENCHMARK(CoResident);
BENCHMARK(Beside);
BENCHMARK(ObserveDuration);
BENCHMARK(ObserveFused);

}  // namespace
}  // namespace gpushare::models

BENCHMARK_MAIN();
