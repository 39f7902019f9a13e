// kernel_benchmark: each kernel of the catalogue alone, as an original grid and as workers in
// alternation. Prints one JSON object: times, PTB overhead with the claim batch that is chosen by
// measurement (src/core/checks/claim_batch.h) and with single claims, fraction of the kernel's
// bound; of a kernel with yield points also what they cost, against workers of the same block tasks
// in one step.
//
//   kernel_benchmark [--ms SOLO_MS] [--repeats N] [--kernel NAME] [--block-task-us US]
//                    [--dram-gbs GB_PER_S] [--steps N] [--no-verify] [--carveout PERCENT]
//                    [--workers AN_SM] [--sweep-workers]
//
// --carveout: another split between shared memory and L1 for the workers than they ask for, -1 for
// CUDA's choice. --workers: fewer on an SM than fit. --sweep-workers: prints something else, the
// workers' times with 8, 6, 5, 4, 3 and 2 on an SM, up to what the body gets, and the fewest that
// lose 1 % at most; block tasks keep their size, so they end sooner with fewer. A body that asks
// for fewer workers than fit (kWorkersPerSm) is measured with more too, up to what fits.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/gpu_forms.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"
#include "benchmarks/kernels/catalogue.h"
#include "src/core/checks/claim_batch.h"

namespace gpushare::benchmarks {
namespace {

using kernels::CatalogueKernel;
using kernels::FormLauncher;
using kernels::FormTask;

// DRAM bandwidth of the reference GPU by its datasheet; an H200 measures about 0.9 of it.
constexpr double kDramGbPerS = 4800;
constexpr int kWarmUps = 2;
constexpr int kOwnCarveout = -2;  // printed: what the variants ask for
constexpr double kVerifySeconds = 0.5;

struct Options {
  double solo_ms = 0;
  double block_task_us = 0;
  int repeats = 15;
  uint32_t steps = 0;  // of a kernel with yield points; 0: its own
  double dram_gb_per_s = kDramGbPerS;
  bool verify = true;
  std::optional<int> carveout;  // of the workers, in per cent; -1: CUDA chooses
  int workers = 0;              // an SM; 0: as many as fit
};

constexpr double kSoloMs = 20;
// Some 200 waves, so that the last one is below half of a per cent.
constexpr double kSweepSoloMs = 8;
constexpr uint32_t kSweptWorkers[] = {8, 6, 5, 4, 3, 2};
// Runs of each number; a kernel stops repeating before its share of time would be over.
constexpr int kSweepRepeatsMax = 5;
constexpr int kSweepRepeatsMin = 2;
constexpr double kSweepMsPerKernel = 400;
constexpr double kSweepLossMax = 0.01;

struct Row {
  std::vector<double> original_ms;
  std::vector<double> worker_ms;
  std::vector<double> single_ms;    // workers that claim one block task at a time
  std::vector<double> one_step_ms;  // of a kernel with yield points
  double one_step_work = 1;         // of the task above, over that of the task with steps
  kernels::Verification verification;
  bool bitwise_equal = false;
  core::OverheadChoice claim;
};

WorkloadTask MakeTaskOf(const Options& options, const CatalogueKernel& kernel,
                        const FormLauncher& launcher, uint32_t steps) {
  kernels::WorkloadOptions workload;
  workload.solo_ms = options.solo_ms;
  workload.block_task_us = options.block_task_us;
  workload.sms = launcher.sms();
  workload.steps = kernel.yields ? steps : 0;
  return MakeTask(kernel, workload);
}

double WavesOf(const FormLauncher& launcher, const FormTask& task) {
  return static_cast<double>(task.block_tasks()) / launcher.FullWorkers(task);
}

// The smallest batch of block tasks a claim within the goal, by measurement.
core::OverheadChoice MeasureClaimBatch(int repeats, EventTimer& timer, FormLauncher& launcher,
                                       const FormTask& task) {
  double warm_ms = 0;
  for (int i = 0; i < kWarmUps; ++i) warm_ms = TimeWorkers(timer, launcher, task, 1);
  const double block_task_ns = warm_ms * 1e6 / std::max(1.0, WavesOf(launcher, task));
  return core::ChooseClaimBatch(block_task_ns, [&](uint32_t batch) {
    std::vector<double> ratios;
    for (int i = 0; i < repeats; ++i) {
      const double original_ms = TimeOriginal(timer, launcher, task);
      ratios.push_back(TimeWorkers(timer, launcher, task, batch) / original_ms);
    }
    return Median(std::move(ratios)) - 1;
  });
}

// `one_step`: null, or the task with block tasks of one step each.
void Measure(const Options& options, EventTimer& timer, FormLauncher& launcher,
             const WorkloadTask& made, const FormTask* one_step, Row* row) {
  const uint32_t batch = row->claim.value;
  for (int i = -kWarmUps; i < options.repeats; ++i) {
    // In alternation, and which one comes first alternates too.
    const bool workers_first = i % 2 != 0;
    double worker_ms = 0;
    if (workers_first) worker_ms = TimeWorkers(timer, launcher, made.task, batch);
    const double original_ms = TimeOriginal(timer, launcher, made.task);
    if (!workers_first) worker_ms = TimeWorkers(timer, launcher, made.task, batch);
    const double one_step_ms = one_step != nullptr ? TimeWorkers(timer, launcher, *one_step, 1) : 0;
    const double single_ms = batch > 1 ? TimeWorkers(timer, launcher, made.task, 1) : worker_ms;
    if (i < 0) continue;
    row->single_ms.push_back(single_ms);
    if (one_step != nullptr) row->one_step_ms.push_back(one_step_ms);
    row->original_ms.push_back(original_ms);
    row->worker_ms.push_back(worker_ms);
  }
  Require(made.workload->ClearOutput());
  TimeOriginal(timer, launcher, made.task);
  const uint64_t original = ChecksumOf(*made.workload);
  Require(made.workload->ClearOutput());
  TimeWorkers(timer, launcher, made.task, batch);
  row->bitwise_equal = original == ChecksumOf(*made.workload);
  if (options.verify) Require(made.workload->Verify(kVerifySeconds, &row->verification));
}

Json RowJson(const Options& options, const FormLauncher& launcher, const WorkloadTask& made,
             const Row& row) {
  const CatalogueKernel& kernel = made.workload->kernel();
  const gpushare_kernel_variants& variants = made.task.variants;
  const double original_ms = Median(row.original_ms);
  const double worker_ms = Median(row.worker_ms);
  const double bound_ms = made.workload->BoundSeconds(launcher.sms(), launcher.clock_mhz(),
                                                      options.dram_gb_per_s * 1e9) *
                          1e3;
  const double waves = WavesOf(launcher, made.task);
  Json json = {
      {"kernel", kernel.name},
      {"block_tasks", made.task.block_tasks()},
      {"workers_per_sm", variants.workers_per_sm},
      {"original_blocks_per_sm", variants.original_blocks_per_sm},
      {"threads", variants.threads_per_block},
      {"original_registers", variants.original_registers},
      {"worker_registers", variants.worker_registers},
      {"slice_registers", variants.slice_registers},
      {"static_shared_bytes", variants.static_shared_bytes},
      {"local_bytes", variants.local_bytes},
      {"original_ms", Rounded(original_ms, 4)},
      {"original_ms_min", Rounded(Quantile(row.original_ms, 0), 4)},
      {"worker_ms", Rounded(worker_ms, 4)},
      {"worker_ms_min", Rounded(Quantile(row.worker_ms, 0), 4)},
      {"ptb_overhead_percent", Rounded((worker_ms / original_ms - 1) * 100, 3)},
      {"block_task_us", Rounded(worker_ms * 1000 / waves, 3)},
      {"claim_batch", row.claim.value},
      {"claim_batch_within_2_percent", worker_ms <= (1 + core::kClaimOverheadMax) * original_ms},
      {"claim_batch_predicted", core::PredictClaimBatch(worker_ms * 1e6 / waves)},
      {"single_claim_overhead_percent",
       Rounded((Median(row.single_ms) / original_ms - 1) * 100, 3)}};
  if (!row.one_step_ms.empty()) {
    const double one_step_ms = Median(row.one_step_ms);
    json["one_step_ms"] = Rounded(one_step_ms, 4);
    json["yield_points_percent"] =
        Rounded((worker_ms * row.one_step_work / one_step_ms - 1) * 100, 3);
  }
  json["bound_ms"] = Rounded(bound_ms, 4);
  json["original_of_bound"] = Rounded(bound_ms / original_ms, 4);
  json["worker_of_bound"] = Rounded(bound_ms / worker_ms, 4);
  json["bound"] = kernel.bound_formula;
  json["below_bound_because"] =
      kernel.below_bound_because != nullptr ? Json(kernel.below_bound_because) : Json(nullptr);
  json["bitwise_equal"] = row.bitwise_equal;
  json["checked"] = row.verification.checked;
  json["wrong"] = row.verification.wrong;
  json["error_max"] = row.verification.error_max;
  json["tolerance"] = row.verification.tolerance;
  return json;
}

struct SweptWorkers {
  uint32_t workers = 0;  // an SM
  std::vector<double> ms;
};

// All numbers in alternation, so that a clock that changes meets all of them.
void MeasureSweep(FormLauncher& launcher, const FormTask& task, std::vector<SweptWorkers>* swept) {
  EventTimer timer;
  double spent_ms = 0;
  FormTask with = task;
  for (int repeat = -1; repeat < kSweepRepeatsMax; ++repeat) {  // -1: a warm-up
    const double round_ms = repeat < 0 ? 0 : spent_ms / (repeat + 1);
    if (repeat >= kSweepRepeatsMin && spent_ms + round_ms > kSweepMsPerKernel) break;
    for (SweptWorkers& entry : *swept) {
      with.variants.workers_per_sm = entry.workers;
      const double ms = TimeWorkers(timer, launcher, with, 1);
      spent_ms += ms;
      if (repeat >= 0) entry.ms.push_back(ms);
    }
  }
}

Json SweepJson(const FormLauncher& launcher, const CatalogueKernel& kernel, const FormTask& task,
               const std::vector<SweptWorkers>& swept) {
  double best_ms = 0;
  for (const SweptWorkers& entry : swept) {
    const double ms = Median(entry.ms);
    if (best_ms == 0 || ms < best_ms) best_ms = ms;
  }
  uint32_t fewest = 0;
  Json sweep = Json::array();
  for (const SweptWorkers& entry : swept) {  // from more to fewer
    const double ms = Median(entry.ms);
    const double workers = static_cast<double>(entry.workers) * launcher.sms();
    if (ms <= (1 + kSweepLossMax) * best_ms) fewest = entry.workers;
    sweep.push_back({{"workers", entry.workers},
                     {"ms", Rounded(ms, 4)},
                     {"over_best_percent", Rounded((ms / best_ms - 1) * 100, 2)},
                     {"block_task_us", Rounded(ms * 1000 * workers / task.block_tasks(), 2)},
                     {"runs", entry.ms.size()}});
  }
  return {{"kernel", kernel.name},
          {"block_tasks", task.block_tasks()},
          {"workers_per_sm", task.variants.workers_per_sm},
          {"sweep", sweep},
          {"fewest_within_1_percent", fewest}};
}

// How many workers fit on an SM, whatever the body asks for. 0 on an error.
uint32_t WorkersThatFit(const gpushare_kernel_variants& variants) {
  int blocks = 0;
  if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, variants.worker_symbol,
                                                    static_cast<int>(variants.threads_per_block),
                                                    variants.dynamic_shared_bytes) != cudaSuccess) {
    return 0;
  }
  return static_cast<uint32_t>(blocks);
}

void SweepWorkers(const Options& options, const CatalogueKernel& kernel, FormLauncher& launcher,
                  Report& report) {
  const WorkloadTask made = MakeTaskOf(options, kernel, launcher, options.steps);
  const gpushare_kernel_variants& variants = made.task.variants;
  const uint32_t most = std::max(variants.workers_per_sm, WorkersThatFit(variants));
  std::vector<SweptWorkers> swept;
  for (const uint32_t workers : kSweptWorkers) {
    if (workers <= most) swept.push_back({workers, {}});
  }
  if (swept.empty()) swept.push_back({variants.workers_per_sm, {}});
  MeasureSweep(launcher, made.task, &swept);
  report.Row(SweepJson(launcher, kernel, made.task, swept));
}

void RunKernel(const Options& options, const CatalogueKernel& kernel, FormLauncher& launcher,
               Report& report) {
  WorkloadTask made = MakeTaskOf(options, kernel, launcher, options.steps);
  gpushare_kernel_variants& variants = made.task.variants;
  if (options.carveout.has_value()) {
    Cuda(cudaFuncSetAttribute(variants.worker_symbol,
                              cudaFuncAttributePreferredSharedMemoryCarveout, *options.carveout),
         "cudaFuncSetAttribute");
  }
  if (options.workers > 0) {
    variants.workers_per_sm =
        std::min(variants.workers_per_sm, static_cast<uint32_t>(options.workers));
  }
  Row row;
  EventTimer timer;
  if (kernel.yields) {  // whose workers claim one by one
    const WorkloadTask one_step = MakeTaskOf(options, kernel, launcher, 1);
    FormTask task = made.task;
    task.params = one_step.task.params;
    // Steps have a whole number of iterations, so the two differ by up to a few per cent.
    row.one_step_work =
        one_step.workload->work_per_block_task() / made.workload->work_per_block_task();
    Measure(options, timer, launcher, made, &task, &row);
  } else {
    row.claim = MeasureClaimBatch(options.repeats, timer, launcher, made.task);
    Measure(options, timer, launcher, made, nullptr, &row);
  }
  report.Row(RowJson(options, launcher, made, row));
  if (!row.bitwise_equal || row.verification.wrong > 0) {
    Fail("It has wrong results. " + row.verification.first_wrong);
  }
}

int Run(Arguments& given) {
  Options options;
  const bool sweep = given.Has("--sweep-workers");
  options.verify = !given.Has("--no-verify");
  options.solo_ms = given.Real("--ms", sweep ? kSweepSoloMs : kSoloMs, 0.1);
  options.repeats = given.Number("--repeats", options.repeats, 1);
  const std::vector<std::string> chosen = given.List("--kernel", {});
  options.block_task_us = given.Real("--block-task-us", 0, 0);
  options.steps = static_cast<uint32_t>(given.Number("--steps", 0, 0));
  const int carveout = given.Number("--carveout", kOwnCarveout, -1);
  if (carveout != kOwnCarveout) options.carveout = carveout;
  options.workers = given.Number("--workers", 0, 0);
  options.dram_gb_per_s = given.Real("--dram-gbs", kDramGbPerS, 1);
  given.Finish();
  const GpuInfo gpu = OpenGpu();
  FormLauncher launcher;
  Require(launcher.Init(), kNoGpu);
  Report report({{"benchmark", "kernel_benchmark"},
                 {"gpu", gpu.model},
                 {"sms", gpu.sms},
                 {"clock_mhz", Rounded(launcher.clock_mhz(), 0)},
                 {"dram_gb_per_s", Rounded(options.dram_gb_per_s, 0)},
                 {"repeats", options.repeats},
                 {"carveout", carveout},
                 {"note", "medians of alternating runs; bounds at the GPU's maximal clock"}},
                "kernels");
  bool right = true;
  for (const CatalogueKernel& kernel : kernels::Catalogue()) {
    if (!IsChosen(chosen, kernel.name)) continue;
    const auto run = sweep ? SweepWorkers : RunKernel;
    right = Attempt(kernel.name, [&] { run(options, kernel, launcher, report); }) && right;
  }
  report.End();
  return right ? 0 : kFailed;
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("kernel_benchmark", argc, argv, gpushare::benchmarks::Run);
}
