// gemm_benchmark: the Tensor-core GEMMs against cuBLASLt, in one run and in alternation. Prints one
// JSON object, and a table on the standard error.
//
//   gemm_benchmark [--only TEXT] [--repeats N] [--alternatives] [--beside KERNEL]
//
// --only: kernels whose name contains TEXT. --alternatives: other tiles, stages and numbers of
// tiles a block task, too. --beside: every form is also compared 40 times while workers of this
// catalogue kernel share its SMs, which moves every latency and shows races that a GEMM alone
// hides.
//
// One repeat: launches of cuBLASLt back to back between two events, then as many of the kernel, for
// each of its forms; the next repeat begins with the kernel. Figures are medians. cuBLASLt runs its
// heuristic's first answer with 32 MB of workspace. Every output is compared with cuBLASLt's,
// element by element.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/gpu/form_timer.h"
#include "benchmarks/gpu/gemm_alternatives.h"
#include "benchmarks/gpu/gemm_library.h"
#include "benchmarks/gpu/gemm_matrices.h"
#include "benchmarks/gpu/gemm_neighbour.h"
#include "benchmarks/kernels/catalogue.h"
#include "benchmarks/kernels/form_launcher.h"
#include "benchmarks/kernels/groups.h"
#include "benchmarks/kernels/workload_base.h"
#include "kernels/tensor/gemm_problem.h"

namespace gpushare::kernels {
namespace {

constexpr double kDramBytesPerS = 4.3e12;  // a copy on the reference GPU reaches it
constexpr double kMeasureMs = 4;           // of launches between two events
constexpr int kLaunchesMax = 100;
constexpr int kWarmUps = 2;
constexpr int kRunsBeside = 40;
constexpr uint32_t kNeighboursPerSm = 2;
constexpr uint32_t kSmRegisters = 65536;
constexpr uint32_t kReservedSharedBytes = 1024;  // of each block, by CUDA

struct Arguments {
  std::string only;
  int repeats = 11;
  bool alternatives = false;
  std::string beside;
};

constexpr GemmShape kShapes[] = {
    {8192, 8192, 2048, false}, {4096, 4096, 1024, false}, {32, 8192, 8192, true}};

struct Contender {
  std::string name;
  std::function<int(gpushare_kernel_variants*)> variants;
  std::function<Status(const GemmProblem&, std::vector<unsigned char>*, Grid*)> make;
  bool skinny;
};

// A kernel's launches, in either form.
class Forms {
 public:
  Forms(FormLauncher* launcher, const FormTask& task) : launcher_(launcher), task_(task) {}

  Status Init() { return counters_.Allocate(kLaunchesMax * sizeof(uint32_t)); }

  // Before the launches that are timed: a counter for each, all zero.
  Status Begin() {
    used_ = 0;
    Status status = launcher_->BeginTask();
    if (status.ok()) {
      status = CudaStatus(cudaMemset(counters_.data(), 0, counters_.bytes()), "cudaMemset");
    }
    return status.ok() ? CudaStatus(cudaDeviceSynchronize(), "cudaDeviceSynchronize") : status;
  }

  Status Launch(bool workers) {
    if (!workers) return launcher_->LaunchOriginal(task_);
    gpushare_worker_launch header = launcher_->Header(task_);
    header.counter = counters_.as<uint32_t>() + used_++;
    return launcher_->LaunchWorkers(task_, header, launcher_->FullWorkers(task_));
  }

 private:
  FormLauncher* launcher_;
  const FormTask& task_;
  DeviceBuffer counters_;
  int used_ = 0;
};

Status Time(FormLauncher* launcher, EventTimer* timer, int launches,
            const std::function<Status()>& launch, double* us) {
  Status status;
  timer->Begin(launcher->stream());
  for (int i = 0; i < launches && status.ok(); ++i) status = launch();
  timer->End(launcher->stream());
  *us = timer->Milliseconds() * 1000 / launches;
  return status.ok() ? launcher->Wait() : status;
}

struct Times {
  std::vector<double> cublaslt_us;
  std::vector<double> kernel_us;
};

Status Measure(const Arguments& arguments, FormLauncher* launcher, GemmLibrary* library,
               Forms* forms, bool workers, Times* times) {
  EventTimer timer;
  const auto launch_library = [&] { return library->Launch(); };
  const auto launch_kernel = [&] { return forms->Launch(workers); };
  double once_us = 0;
  Status status = Time(launcher, &timer, 1, launch_library, &once_us);
  if (status.ok()) status = Time(launcher, &timer, 1, launch_library, &once_us);
  const int launches = std::clamp(static_cast<int>(kMeasureMs * 1000 / once_us), 3, kLaunchesMax);
  for (int i = -kWarmUps; i < arguments.repeats && status.ok(); ++i) {
    double cublaslt_us = 0;
    double kernel_us = 0;
    status = forms->Begin();
    const bool kernel_first = i % 2 != 0;
    if (status.ok() && kernel_first) {
      status = Time(launcher, &timer, launches, launch_kernel, &kernel_us);
    }
    if (status.ok()) status = Time(launcher, &timer, launches, launch_library, &cublaslt_us);
    if (status.ok() && !kernel_first) {
      status = Time(launcher, &timer, launches, launch_kernel, &kernel_us);
    }
    if (i < 0) continue;
    times->cublaslt_us.push_back(cublaslt_us);
    times->kernel_us.push_back(kernel_us);
  }
  return status;
}

uint32_t RegistersOfBlock(const gpushare_kernel_variants& variants, uint32_t registers) {
  const uint32_t warps = (variants.threads_per_block + 127) / 128 * 4;
  return warps * 32 * ((registers + 7) / 8 * 8);
}

struct Row {
  const char* form;
  GemmShape shape;
  Times times;
  GemmComparison comparison;
  int runs_beside = 0;
  int wrong_beside = 0;  // runs that had a wrong element, beside it or not
  uint32_t registers;
  uint32_t blocks_per_sm;
};

void Print(const std::string& name, const gpushare_kernel_variants& variants, const Row& row,
           int shared_per_sm, bool first) {
  const double us = Median(row.times.kernel_us);
  const double cublaslt_us = Median(row.times.cublaslt_us);
  const double flops = 2.0 * row.shape.m * row.shape.n * row.shape.k;
  const double bytes = 2.0 * (1.0 * row.shape.m * row.shape.k + 1.0 * row.shape.n * row.shape.k +
                              1.0 * row.shape.m * row.shape.n);
  const uint32_t registers = RegistersOfBlock(variants, row.registers) * row.blocks_per_sm;
  const auto registers_left = static_cast<int>(kSmRegisters) - static_cast<int>(registers);
  const uint32_t block_bytes =
      variants.dynamic_shared_bytes + variants.static_shared_bytes + kReservedSharedBytes;
  const int shared_left = shared_per_sm - static_cast<int>(block_bytes * row.blocks_per_sm);
  std::printf(
      "%s\n    {\"kernel\": \"%s\", \"form\": \"%s\", \"m\": %d, \"n\": %d, \"k\": %d,"
      " \"us\": %.3f, \"cublaslt_us\": %.3f, \"of_cublaslt\": %.4f, \"tflops\": %.1f,"
      " \"cublaslt_tflops\": %.1f, \"gb_per_s\": %.0f, \"of_dram\": %.4f,"
      "\n     \"registers\": %u, \"blocks_per_sm\": %u, \"registers_left\": %d,"
      " \"shared_bytes_left\": %d, \"local_bytes\": %u,"
      " \"wrong\": %llu, \"not_equal\": %llu, \"difference_max\": %.3g,"
      " \"runs_beside\": %d, \"wrong_beside\": %d}",
      first ? "" : ",", name.c_str(), row.form, row.shape.m, row.shape.n, row.shape.k, us,
      cublaslt_us, cublaslt_us / us, flops / us * 1e-6, flops / cublaslt_us * 1e-6,
      bytes / us * 1e-3, bytes / us * 1e6 / kDramBytesPerS, row.registers, row.blocks_per_sm,
      registers_left, shared_left, variants.local_bytes,
      static_cast<unsigned long long>(row.comparison.wrong),
      static_cast<unsigned long long>(row.comparison.not_equal), row.comparison.difference_max,
      row.runs_beside, row.wrong_beside);
  std::fprintf(
      stderr,
      "%-22s %-8s %5d x %5d x %5d %9.2f us %7.1f TFLOP/s %.3f of cuBLASLt (%7.1f) %6.0f "
      "GB/s %.3f of DRAM, %3u regs, left %5d regs %6d bytes, wrong %llu, beside %d of %d\n",
      name.c_str(), row.form, row.shape.m, row.shape.n, row.shape.k, us, flops / us * 1e-6,
      cublaslt_us / us, flops / cublaslt_us * 1e-6, bytes / us * 1e-3,
      bytes / us * 1e6 / kDramBytesPerS, row.registers, registers_left, shared_left,
      static_cast<unsigned long long>(row.comparison.wrong), row.wrong_beside, row.runs_beside);
  std::fflush(stdout);
}

// One launch into an output of wrong values, compared. Beside a neighbour, if there is one, which
// begins last: Forms::Begin() waits for the whole device. `was_beside`: it ran to the end.
Status Check(GemmNeighbour* neighbour, FormLauncher* launcher, Forms* forms, bool workers,
             const GemmMatrices& matrices, GemmComparison* comparison, bool* was_beside) {
  *was_beside = false;
  Status status = CudaStatus(cudaMemset(matrices.c.data(), 0xFF, matrices.c.bytes()), "cudaMemset");
  if (status.ok()) status = forms->Begin();
  if (status.ok() && neighbour != nullptr) status = neighbour->Begin(kNeighboursPerSm);
  if (status.ok()) status = forms->Launch(workers);
  if (status.ok()) status = launcher->Wait();
  if (status.ok() && neighbour != nullptr) status = neighbour->End(was_beside);
  return status.ok() ? Compare(matrices, comparison) : status;
}

Status CheckBeside(GemmNeighbour* neighbour, FormLauncher* launcher, Forms* forms, bool workers,
                   const GemmMatrices& matrices, Row* row) {
  Status status;
  for (int i = 0; i < kRunsBeside && status.ok(); ++i) {
    GemmComparison comparison;
    bool was_beside = false;
    status = Check(neighbour, launcher, forms, workers, matrices, &comparison, &was_beside);
    if (was_beside) ++row->runs_beside;
    if (comparison.wrong > 0) ++row->wrong_beside;
  }
  return status;
}

// What was seen beside the neighbour: races, or that nothing ran there.
Status JudgeBeside(const GemmNeighbour& neighbour, const Row& row) {
  if (row.wrong_beside > 0) {
    return InvalidOption(std::to_string(row.wrong_beside) + " of " + std::to_string(kRunsBeside) +
                         " runs beside " + neighbour.name() + " were wrong.");
  }
  if (row.runs_beside > kRunsBeside / 2) return {};
  return InvalidOption("Only " + std::to_string(row.runs_beside) + " of " +
                       std::to_string(kRunsBeside) + " runs were beside " + neighbour.name() +
                       ": it has no room on the same SMs, or ends too early.");
}

Status RunForm(const Arguments& arguments, const FormTask& task, FormLauncher* launcher,
               GemmLibrary* library, GemmNeighbour* neighbour, const GemmMatrices& matrices,
               bool workers, Row* row) {
  Forms forms(launcher, task);
  row->form = workers ? "workers" : "original";
  row->registers = workers ? task.variants.worker_registers : task.variants.original_registers;
  row->blocks_per_sm =
      workers ? task.variants.workers_per_sm : task.variants.original_blocks_per_sm;
  Status status = forms.Init();
  // Right before it is timed, so that a wrong kernel's times are not believed.
  bool was_beside = false;
  if (status.ok()) {
    status = Check(nullptr, launcher, &forms, workers, matrices, &row->comparison, &was_beside);
  }
  if (status.ok() && neighbour != nullptr) {
    status = CheckBeside(neighbour, launcher, &forms, workers, matrices, row);
  }
  if (status.ok()) status = Measure(arguments, launcher, library, &forms, workers, &row->times);
  if (status.ok() && row->comparison.wrong > 0) {
    status = InvalidOption(std::to_string(row->comparison.wrong) +
                           " elements differ from cuBLASLt's by more than the tolerance.");
  }
  if (status.ok() && neighbour != nullptr) status = JudgeBeside(*neighbour, *row);
  return status;
}

// True when all forms ran and were right.
bool RunContender(const Arguments& arguments, const Contender& contender, const GemmShape& shape,
                  FormLauncher* launcher, GemmLibrary* library, GemmNeighbour* neighbour,
                  const GemmMatrices& matrices, bool* first) {
  FormTask task;
  std::vector<unsigned char> params;
  int shared_per_sm = 0;
  cudaDeviceGetAttribute(&shared_per_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor, 0);
  Status status = CudaStatus(contender.variants(&task.variants), "NAME_variants");
  if (status.ok()) {
    status = contender.make(matrices.Problem(shape, matrices.c), &params, &task.grid);
  }
  // Params want 64-byte alignment only on the device: launches copy bytes.
  task.params = params.data();
  bool right = status.ok();
  for (const bool workers : {false, true}) {
    if (!status.ok()) break;
    Row row = {};
    row.shape = shape;
    status = RunForm(arguments, task, launcher, library, neighbour, matrices, workers, &row);
    if (!row.times.kernel_us.empty()) {
      Print(contender.name, task.variants, row, shared_per_sm, *first);
      *first = false;
    }
    right = right && status.ok();
  }
  if (!status.ok()) {
    std::fprintf(stderr, "%s: %s\n", contender.name.c_str(), status.message.c_str());
  }
  return right;
}

// Either form of the GEMM for few rows.
bool IsSkinny(const CatalogueKernel& kernel) {
  constexpr char kName[] = "gemm_skinny";
  return std::strncmp(kernel.name, kName, sizeof(kName) - 1) == 0;
}

std::vector<Contender> Contenders(const Arguments& arguments) {
  std::vector<Contender> all;
  static const std::vector<CatalogueKernel> kernels = TensorKernels();
  for (const CatalogueKernel& kernel : kernels) {
    if (std::strncmp(kernel.name, "gemm_", 5) != 0) continue;
    all.push_back(
        {kernel.name, kernel.variants,
         [&kernel](const GemmProblem& problem, std::vector<unsigned char>* params, Grid* grid) {
           return MakeGemmParams(kernel.name, problem, params, grid);
         },
         IsSkinny(kernel)});
  }
  if (arguments.alternatives) {
    for (const GemmAlternative& alternative : GemmAlternatives()) {
      all.push_back({alternative.name, alternative.variants,
                     [alternative](const GemmProblem& problem, std::vector<unsigned char>* params,
                                   Grid* grid) {
                       return MakeAlternativeParams(alternative, problem, params, grid);
                     },
                     alternative.skinny});
    }
  }
  std::erase_if(all, [&](const Contender& contender) {
    return contender.name.find(arguments.only) == std::string::npos;
  });
  return all;
}

Status RunShape(const Arguments& arguments, const GemmShape& shape, FormLauncher* launcher,
                GemmLibrary* library, GemmNeighbour* neighbour, bool* first, bool* right) {
  std::vector<Contender> contenders = Contenders(arguments);
  std::erase_if(contenders,
                [&](const Contender& contender) { return contender.skinny != shape.skinny; });
  if (contenders.empty()) return {};
  GemmMatrices matrices;
  Status status = matrices.Make(shape);
  if (status.ok()) status = library->Plan(matrices.Problem(shape, matrices.cublaslt_c));
  if (status.ok()) status = library->Launch();
  if (status.ok()) status = launcher->Wait();
  if (status.ok()) {
    status = matrices.cublaslt_c.Read(0, matrices.cublaslt_c.bytes(), matrices.expected.data());
  }
  if (!status.ok()) return status;
  for (const Contender& contender : contenders) {
    if (!RunContender(arguments, contender, shape, launcher, library, neighbour, matrices, first)) {
      *right = false;
    }
  }
  return {};
}

bool Parse(int argc, char** argv, Arguments* arguments) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--alternatives") == 0) {
      arguments->alternatives = true;
    } else if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
      arguments->only = argv[++i];
    } else if (std::strcmp(argv[i], "--beside") == 0 && i + 1 < argc) {
      arguments->beside = argv[++i];
    } else if (std::strcmp(argv[i], "--repeats") == 0 && i + 1 < argc) {
      arguments->repeats = std::max(1, std::atoi(argv[++i]));
    } else {
      return false;
    }
  }
  return true;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  if (!Parse(argc, argv, &arguments)) {
    std::fprintf(stderr,
                 "gemm_benchmark [--only TEXT] [--repeats N] [--alternatives] [--beside KERNEL]\n");
    return 2;
  }
  FormLauncher launcher;
  Status status = launcher.Init();
  GemmLibrary library;
  if (status.ok()) status = library.Init(launcher.stream());
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message.c_str());
    return 77;
  }
  GemmNeighbour neighbour;
  if (!arguments.beside.empty()) {
    status = neighbour.Init(arguments.beside);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.message.c_str());
      return 2;
    }
  }
  cudaDeviceProp properties = {};
  cudaGetDeviceProperties(&properties, 0);
  std::printf(
      "{\"benchmark\": \"gemm_benchmark\", \"gpu\": \"%s\", \"sms\": %d, \"clock_mhz\": %.0f,"
      " \"repeats\": %d, \"dram_gb_per_s\": %.0f, \"beside\": \"%s\",\n"
      "  \"note\": \"medians of launches back to back, in alternation with cuBLASLt's; outputs"
      " against cuBLASLt's within 2^-7 of the value and 1e-3\",\n  \"rows\": [",
      properties.name, launcher.sms(), launcher.clock_mhz(), arguments.repeats,
      kDramBytesPerS * 1e-9, arguments.beside.c_str());
  bool first = true;
  bool right = true;
  for (const GemmShape& shape : kShapes) {
    status = RunShape(arguments, shape, &launcher, &library,
                      arguments.beside.empty() ? nullptr : &neighbour, &first, &right);
    if (status.ok()) continue;
    right = false;
    std::fprintf(stderr, "%s\n", status.message.c_str());
  }
  std::printf("]}\n");
  return right ? 0 : 1;
}

}  // namespace
}  // namespace gpushare::kernels

int main(int argc, char** argv) { return gpushare::kernels::Main(argc, argv); }
