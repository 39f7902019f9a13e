// kernel_benchmark: each kernel of the catalogue alone, as an original grid and as workers in
// alternation. Prints one JSON object: times, PTB overhead with the claim batch that is chosen by
// measurement (src/core/seams/claim_batch.h) and with single claims, fraction of the kernel's
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
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/gpu/form_timer.h"
#include "benchmarks/kernels/catalogue.h"
#include "benchmarks/kernels/form_launcher.h"
#include "src/core/seams/claim_batch.h"

namespace gpushare::kernels {
namespace {

// DRAM bandwidth of the reference GPU by its datasheet; an H200 measures about 0.9 of it.
constexpr double kDramGbPerS = 4800;
constexpr int kWarmUps = 2;
constexpr int kOwnCarveout = -2;  // printed: what the variants ask for
constexpr double kVerifySeconds = 0.5;

struct Arguments {
  double solo_ms = 0;  // 0: kSoloMs, or kSweepSoloMs of a sweep
  double block_task_us = 0;
  int repeats = 15;
  uint32_t steps = 0;  // of a kernel with yield points; 0: its own
  std::string kernel;  // empty: all
  double dram_gb_per_s = kDramGbPerS;
  bool verify = true;
  std::optional<int> carveout;  // of the workers, in per cent; -1: CUDA chooses
  int workers = 0;              // an SM; 0: as many as fit
  bool sweep_workers = false;
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
  Verification verification;
  uint64_t original_checksum = 0;
  uint64_t worker_checksum = 0;
  core::OverheadChoice claim;
};

// The smallest batch of block tasks a claim within the goal, by measurement.
core::OverheadChoice MeasureClaimBatch(const Arguments& arguments, FormLauncher* launcher,
                                       const FormTask& task, double block_task_ns, Status* status) {
  EventTimer timer;
  return core::ChooseClaimBatch(block_task_ns, [&](uint32_t batch) {
    std::vector<double> ratios;
    for (int i = 0; i < arguments.repeats && status->ok(); ++i) {
      double original_ms = 0;
      double worker_ms = 0;
      *status = TimeOriginal(launcher, task, &timer, &original_ms);
      if (status->ok()) *status = TimeWorkers(launcher, task, batch, &timer, &worker_ms);
      ratios.push_back(worker_ms / original_ms);
    }
    return Median(std::move(ratios)) - 1;
  });
}

// `one_step`: null, or the task with block tasks of one step each.
Status Measure(const Arguments& arguments, FormLauncher* launcher, const FormTask& task,
               const FormTask* one_step, Workload* workload, Row* row) {
  const uint32_t batch = row->claim.value;
  EventTimer timer;
  for (int i = -kWarmUps; i < arguments.repeats; ++i) {
    double original_ms = 0;
    double worker_ms = 0;
    // In alternation, and which one comes first alternates too.
    const bool workers_first = i % 2 != 0;
    Status status = workers_first ? TimeWorkers(launcher, task, batch, &timer, &worker_ms)
                                  : TimeOriginal(launcher, task, &timer, &original_ms);
    if (status.ok()) {
      status = workers_first ? TimeOriginal(launcher, task, &timer, &original_ms)
                             : TimeWorkers(launcher, task, batch, &timer, &worker_ms);
    }
    double one_step_ms = 0;
    if (status.ok() && one_step != nullptr) {
      status = TimeWorkers(launcher, *one_step, 1, &timer, &one_step_ms);
    }
    double single_ms = worker_ms;
    if (status.ok() && batch > 1) status = TimeWorkers(launcher, task, 1, &timer, &single_ms);
    if (!status.ok()) return status;
    if (i < 0) continue;
    row->single_ms.push_back(single_ms);
    if (one_step != nullptr) row->one_step_ms.push_back(one_step_ms);
    row->original_ms.push_back(original_ms);
    row->worker_ms.push_back(worker_ms);
  }
  double ms = 0;
  Status status = workload->ClearOutput();
  if (status.ok()) status = TimeOriginal(launcher, task, &timer, &ms);
  if (status.ok()) status = workload->Checksum(&row->original_checksum);
  if (status.ok()) status = workload->ClearOutput();
  if (status.ok()) status = TimeWorkers(launcher, task, batch, &timer, &ms);
  if (status.ok()) status = workload->Checksum(&row->worker_checksum);
  if (status.ok() && arguments.verify) {
    status = workload->Verify(kVerifySeconds, &row->verification);
  }
  return status;
}

void PrintRow(const Arguments& arguments, const FormLauncher& launcher, const FormTask& task,
              const Workload& workload, const Row& row, bool first) {
  const CatalogueKernel& kernel = workload.kernel();
  const double original_ms = Median(row.original_ms);
  const double worker_ms = Median(row.worker_ms);
  const double bound_ms =
      workload.BoundSeconds(launcher.sms(), launcher.clock_mhz(), arguments.dram_gb_per_s * 1e9) *
      1e3;
  const double waves = static_cast<double>(workload.block_tasks()) / launcher.FullWorkers(task);
  std::printf("%s\n    {\"kernel\": \"%s\",", first ? "" : ",", kernel.name);
  std::printf(" \"block_tasks\": %u, \"workers_per_sm\": %u, \"original_blocks_per_sm\": %u,",
              workload.block_tasks(), task.variants.workers_per_sm,
              task.variants.original_blocks_per_sm);
  std::printf(
      " \"threads\": %u, \"original_registers\": %u, \"worker_registers\": %u,"
      " \"slice_registers\": %u,",
      task.variants.threads_per_block, task.variants.original_registers,
      task.variants.worker_registers, task.variants.slice_registers);
  std::printf(" \"static_shared_bytes\": %u, \"local_bytes\": %u,",
              task.variants.static_shared_bytes, task.variants.local_bytes);
  std::printf(
      "\n     \"original_ms\": %.4f, \"original_ms_min\": %.4f, \"worker_ms\": %.4f,"
      " \"worker_ms_min\": %.4f,",
      original_ms, *std::min_element(row.original_ms.begin(), row.original_ms.end()), worker_ms,
      *std::min_element(row.worker_ms.begin(), row.worker_ms.end()));
  std::printf(" \"ptb_overhead_percent\": %.3f, \"block_task_us\": %.3f,",
              (worker_ms / original_ms - 1) * 100, worker_ms * 1000 / waves);
  std::printf(
      "\n     \"claim_batch\": %u, \"claim_batch_within_2_percent\": %s,"
      " \"claim_batch_predicted\": %u, \"single_claim_overhead_percent\": %.3f,",
      row.claim.value, worker_ms <= (1 + core::kClaimOverheadMax) * original_ms ? "true" : "false",
      core::PredictClaimBatch(worker_ms * 1e6 / waves),
      (Median(row.single_ms) / original_ms - 1) * 100);
  if (!row.one_step_ms.empty()) {
    const double one_step_ms = Median(row.one_step_ms);
    std::printf(" \"one_step_ms\": %.4f, \"yield_points_percent\": %.3f,", one_step_ms,
                (worker_ms * row.one_step_work / one_step_ms - 1) * 100);
  }
  std::printf(
      "\n     \"bound_ms\": %.4f, \"original_of_bound\": %.4f, \"worker_of_bound\": %.4f,"
      " \"bound\": \"%s\",",
      bound_ms, bound_ms / original_ms, bound_ms / worker_ms, kernel.bound_formula);
  std::printf(
      "\n     \"below_bound_because\": %s%s%s,"
      "\n     \"bitwise_equal\": %s, \"checked\": %llu, \"wrong\": %llu,"
      " \"error_max\": %.3g, \"tolerance\": %.3g}",
      kernel.below_bound_because != nullptr ? "\"" : "",
      kernel.below_bound_because != nullptr ? kernel.below_bound_because : "null",
      kernel.below_bound_because != nullptr ? "\"" : "",
      row.original_checksum == row.worker_checksum ? "true" : "false",
      static_cast<unsigned long long>(row.verification.checked),
      static_cast<unsigned long long>(row.verification.wrong), row.verification.error_max,
      row.verification.tolerance);
}

struct SweptWorkers {
  uint32_t workers = 0;  // an SM
  std::vector<double> ms;
};

// All numbers in alternation, so that a clock that changes meets all of them.
Status MeasureSweep(FormLauncher* launcher, const FormTask& task,
                    std::vector<SweptWorkers>* swept) {
  EventTimer timer;
  double spent_ms = 0;
  FormTask with = task;
  for (int repeat = -1; repeat < kSweepRepeatsMax; ++repeat) {  // -1: a warm-up
    const double round_ms = repeat < 0 ? 0 : spent_ms / (repeat + 1);
    if (repeat >= kSweepRepeatsMin && spent_ms + round_ms > kSweepMsPerKernel) break;
    for (SweptWorkers& entry : *swept) {
      with.variants.workers_per_sm = entry.workers;
      double ms = 0;
      const Status status = TimeWorkers(launcher, with, 1, &timer, &ms);
      if (!status.ok()) return status;
      spent_ms += ms;
      if (repeat >= 0) entry.ms.push_back(ms);
    }
  }
  return {};
}

void PrintSweep(const FormLauncher& launcher, const CatalogueKernel& kernel, const FormTask& task,
                const std::vector<SweptWorkers>& swept, bool first) {
  double best_ms = 0;
  for (const SweptWorkers& entry : swept) {
    const double ms = Median(entry.ms);
    if (best_ms == 0 || ms < best_ms) best_ms = ms;
  }
  uint32_t fewest = 0;
  std::printf("%s\n    {\"kernel\": \"%s\", \"block_tasks\": %u, \"workers_per_sm\": %u,",
              first ? "" : ",", kernel.name, task.block_tasks(), task.variants.workers_per_sm);
  std::printf("\n     \"sweep\": [");
  bool first_entry = true;
  for (const SweptWorkers& entry : swept) {  // from more to fewer
    const double ms = Median(entry.ms);
    const double workers = static_cast<double>(entry.workers) * launcher.sms();
    if (ms <= (1 + kSweepLossMax) * best_ms) fewest = entry.workers;
    std::printf(
        "%s{\"workers\": %u, \"ms\": %.4f, \"over_best_percent\": %.2f,"
        " \"block_task_us\": %.2f, \"runs\": %zu}",
        first_entry ? "" : ",\n               ", entry.workers, ms, (ms / best_ms - 1) * 100,
        ms * 1000 * workers / task.block_tasks(), entry.ms.size());
    first_entry = false;
  }
  std::printf("],\n     \"fewest_within_1_percent\": %u}", fewest);
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

Status SweepWorkers(const Arguments& arguments, const CatalogueKernel& kernel,
                    FormLauncher* launcher, bool first) {
  WorkloadOptions options;
  options.solo_ms = arguments.solo_ms;
  options.block_task_us = arguments.block_task_us;
  options.sms = launcher->sms();
  options.steps = kernel.yields ? arguments.steps : 0;
  std::unique_ptr<Workload> workload;
  Status status = MakeWorkload(kernel, options, &workload);
  if (!status.ok()) return status;
  FormTask task;
  status = CudaStatus(kernel.variants(&task.variants), kernel.name);
  if (!status.ok()) return status;
  task.params = workload->params();
  task.grid = workload->grid();
  const uint32_t most = std::max(task.variants.workers_per_sm, WorkersThatFit(task.variants));
  std::vector<SweptWorkers> swept;
  for (const uint32_t workers : kSweptWorkers) {
    if (workers <= most) swept.push_back({workers, {}});
  }
  if (swept.empty()) swept.push_back({task.variants.workers_per_sm, {}});
  status = MeasureSweep(launcher, task, &swept);
  if (status.ok()) PrintSweep(*launcher, kernel, task, swept, first);
  return status;
}

Status RunKernel(const Arguments& arguments, const CatalogueKernel& kernel, FormLauncher* launcher,
                 bool first) {
  WorkloadOptions options;
  options.solo_ms = arguments.solo_ms;
  options.block_task_us = arguments.block_task_us;
  options.sms = launcher->sms();
  options.steps = kernel.yields ? arguments.steps : 0;
  std::unique_ptr<Workload> workload;
  std::unique_ptr<Workload> one_step;
  Status status = MakeWorkload(kernel, options, &workload);
  if (!status.ok()) return status;
  FormTask task;
  status = CudaStatus(kernel.variants(&task.variants), kernel.name);
  if (status.ok() && arguments.carveout.has_value()) {
    status = CudaStatus(
        cudaFuncSetAttribute(task.variants.worker_symbol,
                             cudaFuncAttributePreferredSharedMemoryCarveout, *arguments.carveout),
        "cudaFuncSetAttribute");
  }
  if (arguments.workers > 0) {
    task.variants.workers_per_sm =
        std::min(task.variants.workers_per_sm, static_cast<uint32_t>(arguments.workers));
  }
  if (!status.ok()) return status;
  task.params = workload->params();
  task.grid = workload->grid();
  FormTask one_step_task = task;
  if (kernel.yields) {
    options.steps = 1;
    status = MakeWorkload(kernel, options, &one_step);
    if (!status.ok()) return status;
    one_step_task.params = one_step->params();
  }
  Row row;
  // Steps have a whole number of iterations, so the two differ by up to a few per cent.
  if (one_step != nullptr) {
    row.one_step_work = one_step->work_per_block_task() / workload->work_per_block_task();
  }
  if (!kernel.yields) {  // whose workers claim one by one
    EventTimer timer;
    double warm_ms = 0;
    for (int i = 0; i < kWarmUps && status.ok(); ++i) {
      status = TimeWorkers(launcher, task, 1, &timer, &warm_ms);
    }
    if (!status.ok()) return status;
    const double waves = static_cast<double>(workload->block_tasks()) / launcher->FullWorkers(task);
    row.claim =
        MeasureClaimBatch(arguments, launcher, task, warm_ms * 1e6 / std::max(1.0, waves), &status);
    if (!status.ok()) return status;
  }
  status = Measure(arguments, launcher, task, kernel.yields ? &one_step_task : nullptr,
                   workload.get(), &row);
  if (!status.ok()) return status;
  PrintRow(arguments, *launcher, task, *workload, row, first);
  if (row.original_checksum != row.worker_checksum || row.verification.wrong > 0) {
    status.code = -1;
    status.message =
        std::string(kernel.name) + " has wrong results. " + row.verification.first_wrong;
  }
  return status;
}

bool Parse(int argc, char** argv, Arguments* arguments) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--no-verify") == 0) {
      arguments->verify = false;
      continue;
    }
    if (std::strcmp(argv[i], "--sweep-workers") == 0) {
      arguments->sweep_workers = true;
      continue;
    }
    if (i + 1 >= argc) return false;
    const char* const value = argv[i + 1];
    if (std::strcmp(argv[i], "--ms") == 0) {
      arguments->solo_ms = std::atof(value);
    } else if (std::strcmp(argv[i], "--repeats") == 0) {
      arguments->repeats = std::max(1, std::atoi(value));
    } else if (std::strcmp(argv[i], "--kernel") == 0) {
      arguments->kernel = value;
    } else if (std::strcmp(argv[i], "--block-task-us") == 0) {
      arguments->block_task_us = std::atof(value);
    } else if (std::strcmp(argv[i], "--steps") == 0) {
      arguments->steps = static_cast<uint32_t>(std::max(0, std::atoi(value)));
    } else if (std::strcmp(argv[i], "--carveout") == 0) {
      arguments->carveout = std::atoi(value);
    } else if (std::strcmp(argv[i], "--workers") == 0) {
      arguments->workers = std::atoi(value);
    } else if (std::strcmp(argv[i], "--dram-gbs") == 0) {
      arguments->dram_gb_per_s = std::atof(value);
    } else {
      return false;
    }
    ++i;
  }
  return true;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  if (!Parse(argc, argv, &arguments)) {
    std::fprintf(stderr,
                 "kernel_benchmark [--ms SOLO_MS] [--repeats N] [--kernel NAME] "
                 "[--block-task-us US] [--dram-gbs GB_PER_S] [--steps N] [--no-verify] "
                 "[--carveout PERCENT] [--workers AN_SM] [--sweep-workers]\n");
    return 2;
  }
  if (arguments.solo_ms <= 0) arguments.solo_ms = arguments.sweep_workers ? kSweepSoloMs : kSoloMs;
  FormLauncher launcher;
  Status status = launcher.Init();
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message.c_str());
    return 77;
  }
  cudaDeviceProp properties = {};
  cudaGetDeviceProperties(&properties, 0);
  std::printf(
      "{\"benchmark\": \"kernel_benchmark\", \"gpu\": \"%s\", \"sms\": %d,"
      " \"clock_mhz\": %.0f, \"dram_gb_per_s\": %.0f, \"repeats\": %d, \"carveout\": %d,\n"
      "  \"note\": \"medians of alternating runs; bounds at the GPU's maximal clock\",\n"
      "  \"kernels\": [",
      properties.name, launcher.sms(), launcher.clock_mhz(), arguments.dram_gb_per_s,
      arguments.repeats, arguments.carveout.value_or(kOwnCarveout));
  bool first = true;
  bool failed = false;
  for (const CatalogueKernel& kernel : Catalogue()) {
    if (!arguments.kernel.empty() && arguments.kernel != kernel.name) continue;
    status = arguments.sweep_workers ? SweepWorkers(arguments, kernel, &launcher, first)
                                     : RunKernel(arguments, kernel, &launcher, first);
    first = false;
    if (status.ok()) continue;
    failed = true;
    std::fprintf(stderr, "%s: %s\n", kernel.name, status.message.c_str());
  }
  std::printf("]}\n");
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace gpushare::kernels

int main(int argc, char** argv) { return gpushare::kernels::Main(argc, argv); }
