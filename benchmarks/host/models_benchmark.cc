// What the online model costs the scheduler: a prediction of each kind, and an observation.
// Goals: a duration 100 ns, fused or co-resident 200 ns, co-resident from counters 2 us, an
// observation 2 us.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "src/models/learned/learned.h"
#include "src/models/online/online_model.h"

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
    TaskFeatures features = {.kernel = &kernel, .block_tasks = block_tasks};
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
    benchmark::DoNotOptimize(
        trained.model->durations().PredictSolo(Trained::FeaturesOf(kernel, 500)));
  }
}

void Fused(benchmark::State& state) {
  const Trained trained;
  int64_t tasks = 0;
  for (auto _ : state) {
    const FusedFeatures features{&trained.fused, 500, ++tasks % 1000};
    benchmark::DoNotOptimize(trained.model->overlaps().PredictFused(features));
  }
}

void CoResident(benchmark::State& state) {
  const Trained trained;
  uint32_t next = 0;
  for (auto _ : state) {
    const CoResidentSide first{&trained.kernels[next % kKernels], 4, 500};
    const CoResidentSide second{&trained.kernels[++next % kKernels], 4, 500};
    benchmark::DoNotOptimize(trained.model->overlaps().PredictCoResident(first, second));
  }
}

// As many kernels, numbers of workers and pairs as the profile of an H200 has. The kernels of
// Trained are none of them, or the first of them.
std::string LearnedPairs(bool with_kernels) {
  constexpr int32_t kFitted = 45;
  constexpr int32_t kWorkers = 122;
  constexpr int32_t kPairs = 2817;
  Learned learned;
  co_resident::State& fit = learned.co_resident;
  for (int32_t i = 0; i < kFitted; ++i) {
    const Trained trained;
    co_resident::Kernel kernel = {trained.kernels[0].counters, 1, 8};
    kernel.counters.fma = with_kernels ? 0.02 * i : 0.9 - 0.01 * i;
    fit.kernels.emplace_back();
    if (!co_resident::MakeFeatures(kernel, fit.kernels.back())) std::abort();
  }
  for (int32_t i = 0; i < kWorkers; ++i) fit.workers.push_back({i % kFitted, 1 + i / kFitted});
  for (int32_t i = 0; i < kPairs; ++i) {
    fit.pairs.push_back({i % kWorkers, i * 7 % kWorkers, 1e-5 * (i * 7919 % 200001 - 100000)});
  }
  fit.error = fit.new_kernel_error = 0.1;
  return FormatLearned(learned);
}

void CoResidentFromCounters(benchmark::State& state) {
  const Trained trained;
  for (KernelDesc kernel : trained.kernels) {
    kernel.resources.workers_per_sm_max = 8;
    kernel.counters.fma = 0.02 * (kernel.id.value - 1);
    trained.model->AddKernel(kernel);
  }
  if (!trained.model->Load(LearnedPairs(state.range(0) != 0)).ok()) std::abort();
  uint32_t next = 0;
  for (auto _ : state) {
    const CoResidentSide first{&trained.kernels[next % kKernels], 4, 500};
    const CoResidentSide second{&trained.kernels[++next % kKernels], 3, 500};
    benchmark::DoNotOptimize(trained.model->overlaps().PredictCoResident(first, second));
  }
  if (trained.model->overlaps()
          .PredictCoResident({&trained.kernels[0], 4, 1}, {&trained.kernels[1], 3, 1})
          .speed_error > 0.2) {
    state.SkipWithError("The pair does not come from counters.");
  }
}

// Runs of 30 pairs of these kernels, at one number of workers.
void ObserveCoRuns(const Trained& trained, int64_t rounds) {
  for (uint32_t i = 0; i < kKernels * rounds; ++i) {
    const KernelDesc& own = trained.kernels[i % kKernels];
    const core::CoRun run{{&own, 4, 500}, {&trained.kernels[(i + 1) % kKernels], 4, 0}, 1};
    Observation observation = Trained::Solo(own, 500);
    observation.form = core::Form::kWorkers;
    observation.measured_ns *= 2;
    observation.co_run = &run;
    trained.model->Observe(observation);
  }
}

// Corrected by runs with the same workers, or with others: then the pair is predicted twice.
void CoResidentWithRuns(benchmark::State& state) {
  const Trained trained;
  for (KernelDesc kernel : trained.kernels) {
    kernel.resources.workers_per_sm_max = 8;
    kernel.counters.fma = 0.02 * (kernel.id.value - 1);
    trained.model->AddKernel(kernel);
  }
  if (!trained.model->Load(LearnedPairs(true)).ok()) std::abort();
  ObserveCoRuns(trained, 8);
  const auto workers = static_cast<int32_t>(state.range(0));
  uint32_t next = 0;
  for (auto _ : state) {
    const CoResidentSide first{&trained.kernels[next % kKernels], workers, 500};
    const CoResidentSide second{&trained.kernels[++next % kKernels], 4, 500};
    benchmark::DoNotOptimize(trained.model->overlaps().PredictCoResident(first, second));
  }
}

void ObserveCoRun(benchmark::State& state) {
  const Trained trained;
  for (auto _ : state) ObserveCoRuns(trained, 1);
  state.SetItemsProcessed(state.iterations() * kKernels);
}

// What the pairs add to a runtime's start: the text, and a view of each of thirty kernels.
void LoadPairs(benchmark::State& state) {
  const Trained trained;
  const std::string text = state.range(0) != 0 ? LearnedPairs(true) : FormatLearned({});
  for (auto _ : state) {
    if (!trained.model->Load(text).ok()) std::abort();
  }
}

void Beside(benchmark::State& state) {
  const Trained trained;
  uint32_t next = 0;
  for (auto _ : state) {
    const KernelDesc& first = trained.kernels[next % kKernels];
    const KernelDesc& second = trained.kernels[++next % kKernels];
    benchmark::DoNotOptimize(trained.model->neighbours().SpeedBeside(first, 84, second, 48));
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
    observation.measured_ns = trained.model->overlaps().PredictFused(features).duration_ns;
    trained.model->Observe(observation);
  }
}

BENCHMARK(Duration);
BENCHMARK(Fused);
BENCHMARK(CoResident);
BENCHMARK(CoResidentFromCounters)->ArgName("measured")->Arg(0)->Arg(1);
BENCHMARK(CoResidentWithRuns)->ArgName("workers")->Arg(4)->Arg(3);
BENCHMARK(ObserveCoRun);
BENCHMARK(LoadPairs)->ArgName("pairs")->Arg(0)->Arg(1);
BENCHMARK(Beside);
BENCHMARK(ObserveDuration);
BENCHMARK(ObserveFused);

}  // namespace
}  // namespace gpushare::models

BENCHMARK_MAIN();
