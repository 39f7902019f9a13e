// The catalogue's kernels, with buffers on each GPU. See group_work.h.

#include <cuda_runtime_api.h>

#include <array>
#include <utility>
#include <vector>

#include "benchmarks/group/group_work.h"
#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/gpu_forms.h"
#include "benchmarks/harness/gpu_kernels.h"
#include "benchmarks/kernels/registration.h"

namespace gpushare::benchmarks {
namespace {

constexpr double kVerifySeconds = 0.5;
constexpr size_t kJobs = 2;

size_t Index(GroupJob job) { return job == GroupJob::kQuery ? 0 : 1; }

class CudaWork final : public GroupWork {
 public:
  explicit CudaWork(Group& group) {
    kernel_[0] = Register(group, GroupJob::kQuery, "query", kQueryNs);
    kernel_[1] = Register(group, GroupJob::kBatch, "batch", kBatchNs);
  }

  const GroupKernel* Kernel(GroupJob job) const override { return kernel_[Index(job)]; }
  void Prepare(GroupJob job, int gpu, gpushare_task_options* task) const override {
    kernels::FillTask(*made_[Index(job)][static_cast<size_t>(gpu)].workload, *task);
  }
  void EnqueuePart(int gpu, void* stream) const override {
    Cuda(cudaSetDevice(gpu), "cudaSetDevice");
    const WaitParams wait = {.wait_ns = static_cast<uint64_t>(kPartNs)};
    Cuda(LaunchWait(wait, 132, 128, static_cast<CUstream_st*>(stream)), "LaunchWait");
  }
  void Verify() const override {
    for (const std::vector<WorkloadTask>& on_gpus : made_) {
      for (size_t gpu = 0; gpu < on_gpus.size(); ++gpu) {
        Cuda(cudaSetDevice(static_cast<int>(gpu)), "cudaSetDevice");
        Require(on_gpus[gpu].workload->VerifyOutput(kVerifySeconds));
      }
    }
  }

 private:
  // A workload and its functions belong to the CUDA device that is current when they are made.
  const GroupKernel* Register(Group& group, GroupJob job, const char* name, int64_t solo_ns) {
    return Take(group.RegisterKernel(
        name, [&](const Runtime& runtime, int gpu) -> Result<gpushare::Kernel> {
          Cuda(cudaSetDevice(gpu), "cudaSetDevice");
          kernels::WorkloadOptions size;
          size.solo_ms = static_cast<double>(solo_ns) / 1e6;
          size.block_task_us = static_cast<double>(kBlockTaskNs) / 1e3;
          made_[Index(job)].push_back(MakeTask(KernelNamed("sincos"), size));
          Require(made_[Index(job)].back().workload->ClearOutput());
          KernelOptions options;
          options.name = name;
          options.solo_ns = solo_ns;
          kernels::FillOptions(made_[Index(job)].back().task.variants, options);
          return runtime.RegisterKernel(options);
        }));
  }

  std::array<const GroupKernel*, kJobs> kernel_{};
  std::array<std::vector<WorkloadTask>, kJobs> made_;  // by GPU
};

}  // namespace

std::unique_ptr<GroupWork> MakeCudaWork(Group& group) { return std::make_unique<CudaWork>(group); }

}  // namespace gpushare::benchmarks
