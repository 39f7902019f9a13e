// gemm_benchmark: the Tensor-core GEMMs against cuBLASLt, in one run and in alternation. Prints one
// JSON object, and a table on the standard error.
//
//   gemm_benchmark [--only TEXT] [--repeats N] [--beside KERNEL]
//
// --only: kernels whose name contains TEXT. --beside: every form is also compared 40 times while
// workers of this catalogue kernel share its SMs, which moves every latency and shows races that a
// GEMM alone hides.
//
// One repeat: launches of cuBLASLt back to back between two events, then as many of the kernel, for
// each of its forms; the next repeat begins with the kernel. Figures are medians. cuBLASLt runs its
// heuristic's first answer with 32 MB of workspace. Every output is compared with cuBLASLt's,
// element by element.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/gpu/gemm/gemm_check.h"
#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"
#include "benchmarks/kernels/groups.h"

namespace gpushare::benchmarks {
namespace {

// A kernel that makes products, and what makes its parameters.
struct Contender {
  std::string name;
  std::function<int(gpushare_kernel_variants*)> variants;
  std::function<kernels::Status(const kernels::GemmProblem&, std::vector<unsigned char>*,
                                kernels::Grid*)>
      make;
  bool skinny = false;  // for few rows
};

using kernels::FormLauncher;
using kernels::FormTask;
using kernels::GemmProblem;
using kernels::Grid;

constexpr double kDramBytesPerS = 4.3e12;  // a copy on the reference GPU reaches it
constexpr double kMeasureMs = 4;           // of launches between two events
constexpr int kLaunchesMax = 100;
constexpr int kWarmUps = 2;
constexpr int kRunsBeside = 40;
constexpr uint32_t kNeighboursPerSm = 2;
constexpr uint32_t kSmRegisters = 65536;
constexpr uint32_t kReservedSharedBytes = 1024;  // of each block, by CUDA

constexpr GemmShape kShapes[] = {
    {8192, 8192, 2048, false}, {4096, 4096, 1024, false}, {32, 8192, 8192, true}};

// A kernel's launches, in either form.
class Forms {
 public:
  Forms(FormLauncher& launcher, const FormTask& task, bool workers)
      : launcher_(launcher), task_(task), workers_(workers) {
    Require(counters_.Allocate(kLaunchesMax * sizeof(uint32_t)));
  }

  // Before the launches that are timed: a counter for each, all zero.
  void Begin() {
    used_ = 0;
    Require(launcher_.BeginTask());
    Zero(counters_);
  }

  void Launch() {
    if (!workers_) return Require(launcher_.LaunchOriginal(task_));
    gpushare_worker_launch header = launcher_.Header(task_);
    header.counter = counters_.as<uint32_t>() + used_++;
    Require(launcher_.LaunchWorkers(task_, header, launcher_.FullWorkers(task_)));
  }

 private:
  FormLauncher& launcher_;
  const FormTask& task_;
  const bool workers_;
  kernels::DeviceBuffer counters_;
  int used_ = 0;
};

// What all rows share.
struct Bench {
  int repeats = 11;
  FormLauncher launcher;
  std::unique_ptr<GpuLibrary> cublaslt;
  std::unique_ptr<GemmNeighbour> neighbour;  // null: none
  int shared_per_sm = 0;
};

struct Row {
  const char* form;
  GemmShape shape;
  std::vector<double> cublaslt_us;
  std::vector<double> kernel_us;
  GemmMatrices::Comparison comparison;
  int runs_beside = 0;
  int wrong_beside = 0;  // runs that had a wrong element, beside it or not
  uint32_t registers;
  uint32_t blocks_per_sm;
};

double TimeUs(Bench& bench, EventTimer& timer, int launches, const std::function<void()>& launch) {
  const double ms = timer.Ms(bench.launcher.stream(), [&] {
    for (int i = 0; i < launches; ++i) launch();
  });
  Require(bench.launcher.Wait());
  return ms * 1000 / launches;
}

void Measure(Bench& bench, const GemmMatrices& matrices, Forms& forms, Row& row) {
  EventTimer timer;
  const auto launch_library = [&] { matrices.LaunchCublasLt(); };
  const auto launch_kernel = [&] { forms.Launch(); };
  TimeUs(bench, timer, 1, launch_library);
  const double once_us = TimeUs(bench, timer, 1, launch_library);
  const int launches = std::clamp(static_cast<int>(kMeasureMs * 1000 / once_us), 3, kLaunchesMax);
  for (int i = -kWarmUps; i < bench.repeats; ++i) {
    forms.Begin();
    const bool kernel_first = i % 2 != 0;
    double kernel_us = 0;
    if (kernel_first) kernel_us = TimeUs(bench, timer, launches, launch_kernel);
    const double cublaslt_us = TimeUs(bench, timer, launches, launch_library);
    if (!kernel_first) kernel_us = TimeUs(bench, timer, launches, launch_kernel);
    if (i < 0) continue;
    row.cublaslt_us.push_back(cublaslt_us);
    row.kernel_us.push_back(kernel_us);
  }
}

uint32_t RegistersOfBlock(const gpushare_kernel_variants& variants, uint32_t registers) {
  const uint32_t warps = (variants.threads_per_block + 127) / 128 * 4;
  return warps * 32 * ((registers + 7) / 8 * 8);
}

void Print(Report& report, const std::string& name, const gpushare_kernel_variants& variants,
           const Row& row, int shared_per_sm) {
  const auto& [m, n, k, skinny] = row.shape;
  const double us = Median(row.kernel_us);
  const double cublaslt_us = Median(row.cublaslt_us);
  const double flops = 2.0 * m * n * k;
  const double bytes = 2.0 * (1.0 * m * k + 1.0 * n * k + 1.0 * m * n);
  const uint32_t registers = RegistersOfBlock(variants, row.registers) * row.blocks_per_sm;
  const auto registers_left = static_cast<int>(kSmRegisters) - static_cast<int>(registers);
  const uint32_t block_bytes =
      variants.dynamic_shared_bytes + variants.static_shared_bytes + kReservedSharedBytes;
  const int shared_left = shared_per_sm - static_cast<int>(block_bytes * row.blocks_per_sm);
  report.Row({{"kernel", name},
              {"form", row.form},
              {"m", m},
              {"n", n},
              {"k", k},
              {"us", Rounded(us, 3)},
              {"cublaslt_us", Rounded(cublaslt_us, 3)},
              {"of_cublaslt", Rounded(cublaslt_us / us, 4)},
              {"tflops", Rounded(flops / us * 1e-6, 1)},
              {"cublaslt_tflops", Rounded(flops / cublaslt_us * 1e-6, 1)},
              {"gb_per_s", Rounded(bytes / us * 1e-3, 0)},
              {"of_dram", Rounded(bytes / us * 1e6 / kDramBytesPerS, 4)},
              {"registers", row.registers},
              {"blocks_per_sm", row.blocks_per_sm},
              {"registers_left", registers_left},
              {"shared_bytes_left", shared_left},
              {"local_bytes", variants.local_bytes},
              {"wrong", row.comparison.wrong},
              {"not_equal", row.comparison.not_equal},
              {"difference_max", Rounded(row.comparison.difference_max, 6)},
              {"runs_beside", row.runs_beside},
              {"wrong_beside", row.wrong_beside}});
  std::fprintf(
      stderr,
      "%-22s %-8s %5d x %5d x %5d %9.2f us %7.1f TFLOP/s %.3f of cuBLASLt (%7.1f) %6.0f "
      "GB/s %.3f of DRAM, %3u regs, left %5d regs %6d bytes, wrong %llu, beside %d of %d\n",
      name.c_str(), row.form, m, n, k, us, flops / us * 1e-6, cublaslt_us / us,
      flops / cublaslt_us * 1e-6, bytes / us * 1e-3, bytes / us * 1e6 / kDramBytesPerS,
      row.registers, registers_left, shared_left,
      static_cast<unsigned long long>(row.comparison.wrong), row.wrong_beside, row.runs_beside);
}

// One launch into an output of wrong values, compared. Beside a neighbour, if there is one, which
// begins last: Forms::Begin() waits for the whole device. `was_beside`: it ran to the end.
GemmMatrices::Comparison Check(Bench& bench, GemmNeighbour* neighbour, Forms& forms,
                               GemmMatrices& matrices, bool* was_beside) {
  matrices.Spoil();
  forms.Begin();
  if (neighbour != nullptr) neighbour->Begin(kNeighboursPerSm);
  forms.Launch();
  Require(bench.launcher.Wait());
  *was_beside = neighbour != nullptr && neighbour->End();
  return matrices.Compare();
}

void CheckBeside(Bench& bench, Forms& forms, GemmMatrices& matrices, Row& row) {
  for (int i = 0; i < kRunsBeside; ++i) {
    bool was_beside = false;
    const auto comparison = Check(bench, bench.neighbour.get(), forms, matrices, &was_beside);
    if (was_beside) ++row.runs_beside;
    if (comparison.wrong > 0) ++row.wrong_beside;
  }
}

// What is wrong with a row, or nothing.
std::string Judge(const GemmNeighbour* neighbour, const Row& row) {
  if (row.comparison.wrong > 0) {
    return std::to_string(row.comparison.wrong) +
           " elements differ from cuBLASLt's by more than the tolerance.";
  }
  if (neighbour == nullptr) return {};
  const std::string of = " of " + std::to_string(kRunsBeside) + " runs ";
  if (row.wrong_beside > 0) {
    return std::to_string(row.wrong_beside) + of + "beside " + neighbour->name() + " were wrong.";
  }
  if (row.runs_beside > kRunsBeside / 2) return {};
  return "Only " + std::to_string(row.runs_beside) + of + "were beside " + neighbour->name() +
         ": it has no room on the same SMs, or ends too early.";
}

void RunForm(Bench& bench, const Contender& contender, const FormTask& task, bool workers,
             const GemmShape& shape, GemmMatrices& matrices, Report& report) {
  const gpushare_kernel_variants& variants = task.variants;
  Row row = {};
  row.form = workers ? "workers" : "original";
  row.shape = shape;
  row.registers = workers ? variants.worker_registers : variants.original_registers;
  row.blocks_per_sm = workers ? variants.workers_per_sm : variants.original_blocks_per_sm;
  Forms forms(bench.launcher, task, workers);
  // Right before it is timed, so that a wrong kernel's times are not believed.
  bool was_beside = false;
  row.comparison = Check(bench, nullptr, forms, matrices, &was_beside);
  if (bench.neighbour != nullptr) CheckBeside(bench, forms, matrices, row);
  Measure(bench, matrices, forms, row);
  Print(report, contender.name, variants, row, bench.shared_per_sm);
  if (const std::string why = Judge(bench.neighbour.get(), row); !why.empty()) Fail(why);
}

// Either form of the GEMM for few rows.
bool IsSkinny(const std::string& kernel) { return kernel.rfind("gemm_skinny", 0) == 0; }

std::vector<Contender> Contenders(const std::string& only) {
  std::vector<Contender> all;
  static const std::vector<kernels::CatalogueKernel> tensor_kernels = kernels::TensorKernels();
  for (const kernels::CatalogueKernel& kernel : tensor_kernels) {
    if (std::string(kernel.name).rfind("gemm_", 0) != 0) continue;
    all.push_back(
        {kernel.name, kernel.variants,
         [&kernel](const GemmProblem& problem, std::vector<unsigned char>* params, Grid* grid) {
           return MakeGemmParams(kernel.name, problem, params, grid);
         },
         IsSkinny(kernel.name)});
  }
  std::erase_if(all, [&](const Contender& contender) {
    return contender.name.find(only) == std::string::npos;
  });
  return all;
}

void RunContender(Bench& bench, const Contender& contender, const GemmShape& shape,
                  GemmMatrices& matrices, Report& report) {
  FormTask task;
  std::vector<unsigned char> params;
  Cuda(contender.variants(&task.variants), contender.name.c_str());
  Require(contender.make(matrices.Problem(), &params, &task.grid));
  // Params want 64-byte alignment only on the device: launches copy bytes.
  task.params = params.data();
  for (const bool workers : {false, true}) {
    RunForm(bench, contender, task, workers, shape, matrices, report);
  }
}

int Run(Arguments& given) {
  Bench bench;
  const std::string only = given.Text("--only", "");
  const std::string beside = given.Text("--beside", "");
  bench.repeats = given.Number("--repeats", bench.repeats, 1);
  given.Finish();
  const GpuInfo gpu = OpenGpu();
  Require(bench.launcher.Init(), kNoGpu);
  bench.cublaslt = std::make_unique<GpuLibrary>(GpuLibrary::Kind::kCublasLt);
  if (!beside.empty()) bench.neighbour = std::make_unique<GemmNeighbour>(beside);
  Cuda(cudaDeviceGetAttribute(&bench.shared_per_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor, 0),
       "cudaDeviceGetAttribute");
  Report report({{"benchmark", "gemm_benchmark"},
                 {"gpu", gpu.model},
                 {"sms", gpu.sms},
                 {"clock_mhz", Rounded(bench.launcher.clock_mhz(), 0)},
                 {"repeats", bench.repeats},
                 {"dram_gb_per_s", kDramBytesPerS * 1e-9},
                 {"beside", beside},
                 {"note",
                  "medians of launches back to back, in alternation with cuBLASLt's; outputs "
                  "against cuBLASLt's within 2^-7 of the value and 1e-3"}},
                "rows");
  bool right = true;
  const std::vector<Contender> contenders = Contenders(only);
  for (const GemmShape& shape : kShapes) {
    std::unique_ptr<GemmMatrices> matrices;
    for (const Contender& contender : contenders) {
      if (contender.skinny != shape.skinny) continue;
      if (matrices == nullptr) {
        matrices = std::make_unique<GemmMatrices>(shape, *bench.cublaslt, bench.launcher.stream());
      }
      right = Attempt(contender.name,
                      [&] { RunContender(bench, contender, shape, *matrices, report); }) &&
              right;
    }
  }
  report.End();
  return right ? 0 : kFailed;
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("gemm_benchmark", argc, argv, gpushare::benchmarks::Run);
}
