// A GPU: the kernels are the catalogue's, each task has memory of the catalogue's workloads, and
// the clock is the device's. See platform.h.

#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/gpu_forms.h"
#include "benchmarks/kernelet/platform.h"
#include "benchmarks/kernels/registration.h"

namespace gpushare::kernelet {

namespace {

// Processor time for the reference results of one kernel.
constexpr double kVerifySeconds = 0.1;
// The claim counter has 32 bits, and workers increment it past the last block task.
constexpr int64_t kBlockTasksMax = int64_t{1} << 31;

class CudaPlatform final : public Platform {
 public:
  CudaPlatform() {
    benchmarks::UseManyConnections();
    gpu_ = benchmarks::OpenGpu();
  }

  const char* device() const override { return "cuda"; }
  std::string gpu() const override { return gpu_.model; }

  void FillKernel(const std::string& name, gpushare_kernel_options& options) override {
    const kernels::CatalogueKernel& kernel = benchmarks::KernelNamed(name);
    kernels::FillOptions(benchmarks::VariantsOf(kernel.name, kernel.variants), options);
  }

  void FillTask(const std::string& name, gpushare_task_options& task) override {
    kernels::Workload& workload = WorkloadOf(name, task.block_tasks);
    benchmarks::Require(workload.ClearOutput());
    kernels::FillTask(workload, task);
  }

  void Verify(const std::string& name, int64_t block_tasks) override {
    benchmarks::Require(WorkloadOf(name, block_tasks).VerifyOutput(kVerifySeconds));
  }

  void WaitUntil(const Runtime& runtime, int64_t time_ns) override {
    for (int64_t left_ns = time_ns - runtime.NowNs(); left_ns > 0;
         left_ns = time_ns - runtime.NowNs()) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(left_ns));
    }
  }

 private:
  kernels::Workload& WorkloadOf(const std::string& name, int64_t block_tasks) {
    std::unique_ptr<kernels::Workload>& workload = workloads_[{name, block_tasks}];
    if (workload != nullptr) return *workload;
    if (block_tasks > kBlockTasksMax) {
      benchmarks::Fail("A task of " + name + " has " + std::to_string(block_tasks) +
                       " block tasks, and the limit is " + std::to_string(kBlockTasksMax) + ".");
    }
    kernels::WorkloadOptions options;
    options.block_tasks = static_cast<uint32_t>(block_tasks);
    options.sms = gpu_.sms;
    benchmarks::Require(kernels::MakeWorkload(benchmarks::KernelNamed(name), options, &workload));
    if (workload->block_tasks() != block_tasks) {
      benchmarks::Fail("The workload of " + name + " has " +
                       std::to_string(workload->block_tasks()) + " block tasks, and " +
                       std::to_string(block_tasks) + " are wanted.");
    }
    return *workload;
  }

  benchmarks::GpuInfo gpu_;
  std::map<std::pair<std::string, int64_t>, std::unique_ptr<kernels::Workload>> workloads_;
};

}  // namespace

std::unique_ptr<Platform> MakeCudaPlatform() { return std::make_unique<CudaPlatform>(); }

}  // namespace gpushare::kernelet
