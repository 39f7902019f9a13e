// A kernel of the benchmarks' catalogue as a subject of tests at the device seam: described and
// prepared, with its arguments in device memory.

#ifndef GPUSHARE_TESTS_CUDA_SUBJECT_H_
#define GPUSHARE_TESTS_CUDA_SUBJECT_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "benchmarks/kernels/catalogue.h"
#include "src/core/seams/device.h"

namespace gpushare::cuda {

struct Subject {
  core::KernelDesc kernel;
  std::unique_ptr<kernels::Workload> workload;
};

// Registers `name` as kernel `id`, with work for about `solo_ms` on the whole device.
inline Subject MakeSubject(core::Device& device, core::KernelId id, const std::string& name,
                           double solo_ms) {
  Subject subject;
  const kernels::CatalogueKernel* const kernel = kernels::FindKernel(name.c_str());
  gpushare_kernel_variants variants = {};
  EXPECT_EQ(kernel->variants(&variants), 0);
  kernels::WorkloadOptions options;
  options.solo_ms = solo_ms;
  const kernels::Status made = MakeWorkload(*kernel, options, &subject.workload);
  EXPECT_TRUE(made.ok()) << made.message;
  core::KernelDesc& desc = subject.kernel;
  desc.id = id;
  desc.name = name;
  desc.resources.threads_per_block = static_cast<int32_t>(variants.threads_per_block);
  desc.resources.dynamic_shared_memory_bytes = static_cast<int32_t>(variants.dynamic_shared_bytes);
  desc.resources.registers_per_thread = 0;
  desc.resources.workers_per_sm_max = 0;
  desc.functions()->original = variants.original_function;
  desc.functions()->worker = variants.worker_function;
  desc.evictable = true;
  if (kernel->yields) desc.yield_interval_ns = 20'000;
  EXPECT_TRUE(device.DescribeKernel(desc).ok());
  EXPECT_TRUE(device.PrepareKernel(desc).ok());
  return subject;
}

// A task's first launch: workers that run all of it on `lane`, at the launch's number as epoch. It
// points into `subject`.
inline core::LaunchRequest WorkersOf(const Subject& subject, core::LaunchId launch,
                                     core::LaneIndex lane, int32_t counter) {
  core::LaunchRequest request;
  request.form = core::Form::kWorkers;
  core::LaunchPart& part = request.parts[0];
  part.launch = launch;
  part.lane = lane;
  part.work.kernel = &subject.kernel;
  const kernels::Grid grid = subject.workload->grid();
  part.block_count = subject.workload->block_tasks();
  part.work.grid[0] = static_cast<int32_t>(grid.x);
  part.work.grid[1] = static_cast<int32_t>(grid.y);
  part.work.grid[2] = static_cast<int32_t>(grid.z);
  part.counter = counter;
  part.reset_counter = true;
  part.epoch = launch.value;
  part.work.arguments = subject.workload->params();
  part.work.arguments_bytes = static_cast<uint32_t>(subject.workload->params_bytes());
  return request;
}

}  // namespace gpushare::cuda

#endif  // GPUSHARE_TESTS_CUDA_SUBJECT_H_
