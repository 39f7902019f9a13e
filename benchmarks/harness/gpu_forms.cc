#include "benchmarks/harness/gpu_forms.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "benchmarks/harness/gpu_device.h"

namespace gpushare::benchmarks {

using kernels::FormLauncher;
using kernels::FormTask;

const kernels::CatalogueKernel& KernelNamed(const std::string& name) {
  const kernels::CatalogueKernel* const kernel = kernels::FindKernel(name.c_str());
  if (kernel == nullptr) Fail("The catalogue has no kernel '" + name + "'.");
  return *kernel;
}

gpushare_kernel_variants VariantsOf(const char* name, int (*variants)(gpushare_kernel_variants*)) {
  gpushare_kernel_variants described = {};
  Cuda(variants(&described), name);
  return described;
}

WorkloadTask MakeTask(const kernels::CatalogueKernel& kernel,
                      const kernels::WorkloadOptions& options) {
  WorkloadTask made;
  Require(kernels::MakeWorkload(kernel, options, &made.workload));
  made.task.variants = VariantsOf(kernel.name, kernel.variants);
  made.task.params = made.workload->params();
  made.task.grid = made.workload->grid();
  return made;
}

uint64_t ChecksumOf(kernels::Workload& workload) {
  uint64_t checksum = 0;
  Require(workload.Checksum(&checksum));
  return checksum;
}

uint64_t VerifiedChecksum(kernels::Workload& workload, double seconds) {
  const uint64_t checksum = ChecksumOf(workload);
  Require(workload.VerifyOutput(seconds));
  return checksum;
}

void LaunchGrid(const FormTask& task, CUstream_st* stream) {
  void* arguments[] = {const_cast<void*>(task.params)};
  Cuda(cudaLaunchKernel(task.variants.original_symbol, dim3(task.grid.x, task.grid.y, task.grid.z),
                        dim3(task.variants.threads_per_block), arguments,
                        task.variants.dynamic_shared_bytes, stream),
       "cudaLaunchKernel");
}

EventTimer::EventTimer() {
  Cuda(cudaEventCreate(&begin_), "cudaEventCreate");
  Cuda(cudaEventCreate(&end_), "cudaEventCreate");
}

EventTimer::~EventTimer() {
  cudaEventDestroy(begin_);
  cudaEventDestroy(end_);
}

double EventTimer::Ms(CUstream_st* stream, const std::function<void()>& enqueue) {
  Cuda(cudaEventRecord(begin_, stream), "cudaEventRecord");
  enqueue();
  Cuda(cudaEventRecord(end_, stream), "cudaEventRecord");
  Cuda(cudaEventSynchronize(end_), "cudaEventSynchronize");
  float ms = 0;
  Cuda(cudaEventElapsedTime(&ms, begin_, end_), "cudaEventElapsedTime");
  return ms;
}

double TimeOriginal(EventTimer& timer, FormLauncher& launcher, const FormTask& task) {
  const double ms = timer.Ms(launcher.stream(), [&] { Require(launcher.LaunchOriginal(task)); });
  Require(launcher.Wait());
  return ms;
}

double TimeWorkers(EventTimer& timer, FormLauncher& launcher, const FormTask& task,
                   uint32_t claim_batch) {
  Require(launcher.BeginTask());
  gpushare_worker_launch header = launcher.Header(task);
  header.claim_batch = claim_batch;
  const double ms = timer.Ms(launcher.stream(), [&] {
    Require(launcher.LaunchWorkers(task, header, launcher.FullWorkers(task)));
  });
  gpushare_worker_completion record = {};
  Require(launcher.Finish(header, &record));
  if (record.block_tasks_done != task.block_tasks()) {
    Fail("The workers executed " + std::to_string(record.block_tasks_done) +
         " block tasks, and the task has " + std::to_string(task.block_tasks()) + ".");
  }
  return ms;
}

double TimeSlices(EventTimer& timer, FormLauncher& launcher, const FormTask& task, uint32_t slice) {
  gpushare_worker_launch header = WithoutRecord(launcher.Header(task));
  const double ms = timer.Ms(launcher.stream(), [&] {
    for (uint32_t begin = 0; begin < task.block_tasks(); begin += header.block_count) {
      header.block_begin = begin;
      header.block_count = std::min(slice, task.block_tasks() - begin);
      Require(launcher.LaunchSlice(task, header));
    }
  });
  Require(launcher.Wait());
  return ms;
}

gpushare_worker_launch WithoutRecord(gpushare_worker_launch header) {
  header.eviction_word = nullptr;
  header.counter = nullptr;
  header.scratch = nullptr;
  header.completion = nullptr;
  header.yield_list = nullptr;
  header.yield_capacity = 0;
  return header;
}

}  // namespace gpushare::benchmarks
