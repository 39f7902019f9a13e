// A kernel of the catalogue as the C interface takes it: for all programs that submit the catalogue
// to the library.
//
//   kernel.variants(&variants);
//   FillOptions(variants, options);   // then register the kernel
//   FillTask(workload, task);         // then submit the task any number of times
//   workload.VerifyOutput(seconds);
//
// Threads: any.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_REGISTRATION_H_
#define GPUSHARE_BENCHMARKS_KERNELS_REGISTRATION_H_

#include <gpushare/gpushare.h>

#include <cstdint>

#include "benchmarks/kernels/catalogue.h"

namespace gpushare::kernels {

inline void FillOptions(const gpushare_kernel_variants& variants,
                        gpushare_kernel_options& options) {
  options.kind = GPUSHARE_TASK_KERNEL;
  options.original_function = variants.original_function;
  options.worker_function = variants.worker_function;
  options.slice_function = variants.slice_function;
  options.threads_per_block = static_cast<int32_t>(variants.threads_per_block);
  options.registers_per_thread = static_cast<int32_t>(variants.worker_registers);
  options.shared_memory_bytes =
      static_cast<int32_t>(variants.static_shared_bytes + variants.dynamic_shared_bytes);
  options.dynamic_shared_memory_bytes = static_cast<int32_t>(variants.dynamic_shared_bytes);
  options.workers_per_sm_max = static_cast<int32_t>(variants.workers_per_sm);
  options.evictable = GPUSHARE_CHOICE_YES;
}

// `Task`: gpushare_task_options, or a struct with these fields of it. The workload outlives it.
template <class Task>
void FillTask(const Workload& workload, Task& task) {
  task.block_tasks = workload.block_tasks();
  task.grid_x = static_cast<int32_t>(workload.grid().x);
  task.grid_y = static_cast<int32_t>(workload.grid().y);
  task.grid_z = static_cast<int32_t>(workload.grid().z);
  task.arguments = workload.params();
  task.arguments_size_bytes = workload.params_bytes();
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_REGISTRATION_H_
