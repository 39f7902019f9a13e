// Parameters of the kernels that test the kernel contract itself (test_kernels.cu).

#ifndef GPUSHARE_TESTS_KERNELS_TEST_KERNELS_H_
#define GPUSHARE_TESTS_KERNELS_TEST_KERNELS_H_

#include <gpushare/device/fused_variants.h>
#include <gpushare/device/kernel_variants.h>

#include <cstdint>

namespace gpushare::kernels {

// Counts what is executed: by block task, by worker, by SM.
struct CountParams {
  uint32_t* executions;  // one a block task (times steps), by the x, y, z that the body saw
  uint32_t* by_worker;   // one a block of the launch
  uint32_t* by_sm;       // one an SM
  uint32_t* wrong;       // block tasks that saw another grid, or an index that does not fit
  uint32_t grid_x, grid_y, grid_z;  // what they should see
  uint32_t steps;                   // of a block task; the other kernels ignore it
  uint64_t spin_ns;                 // how long a block task (a step) takes
  uint32_t* saved;                  // 256 words a block task: what an interrupted block task keeps
  uint32_t* results;                // 256 words a block task
};

// The result of thread t in block task b after all steps.
constexpr uint32_t StepsResult(uint32_t block_task, uint32_t thread, uint32_t steps) {
  uint32_t value = block_task * 256 + thread;
  for (uint32_t step = 0; step < steps; ++step) value = value * 1664525U + 1013904223U + step;
  return value;
}

}  // namespace gpushare::kernels

extern "C" {
// Plain block tasks.
int gpushare_test_count_variants(gpushare_kernel_variants* out);
// Each block task passes values between its threads through Shared, with barriers.
int gpushare_test_shared_variants(gpushare_kernel_variants* out);
// The same with a Shared of 64 KB.
int gpushare_test_large_shared_variants(gpushare_kernel_variants* out);
// Yield points after each step.
int gpushare_test_steps_variants(gpushare_kernel_variants* out);
// Enter, Leave and State: by_worker is written in Leave alone.
int gpushare_test_enter_leave_variants(gpushare_kernel_variants* out);
// Breaks the contract: the odd threads return before a barrier.
int gpushare_test_early_return_variants(gpushare_kernel_variants* out);
// Two halves of a block, each with an extra barrier of its own.
int gpushare_test_extra_variants(gpushare_kernel_variants* out);
// Fused: count with two of shared; two of shared with one of large_shared, in dynamic shared
// memory; steps with extra; two of extra with two of extra; count with shared and registers moved;
// count with shared, one block a block task.
int gpushare_test_fused_count_variants(gpushare_fused_variants* out);
int gpushare_test_fused_large_variants(gpushare_fused_variants* out);
int gpushare_test_fused_steps_variants(gpushare_fused_variants* out);
int gpushare_test_fused_extra_variants(gpushare_fused_variants* out);
int gpushare_test_fused_registers_variants(gpushare_fused_variants* out);
int gpushare_test_fused_direct_variants(gpushare_fused_variants* out);
// extra with two of count.
int gpushare_test_fused_quota_variants(gpushare_fused_variants* out);
// Too many threads for a block, so that no device can run it.
int gpushare_test_fused_too_wide_variants(gpushare_fused_variants* out);
// Whether the kernels were compiled with the barrier checks.
bool gpushare_test_has_checks();
}

#endif  // GPUSHARE_TESTS_KERNELS_TEST_KERNELS_H_
