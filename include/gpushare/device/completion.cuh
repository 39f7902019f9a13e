// How a launch reports its end to the host: each worker adds itself to the scratch word, and the
// last worker writes the completion record. The first thread of a worker calls these functions,
// after a barrier that its other threads reach when their work is done.
//
// Memory order: stores of a block task -> barrier of the worker -> fence -> addition to the scratch
// word. The last worker reads the sum, executes a system fence and writes `sequence` last. So a
// host thread that sees the sequence sees every result of the launch.

#ifndef GPUSHARE_DEVICE_COMPLETION_CUH_
#define GPUSHARE_DEVICE_COMPLETION_CUH_

#include <gpushare/device/launch.h>

#include <cstdint>
#include <gpushare/device/yield_list.cuh>

namespace gpushare::device {

// The scratch word `finished`: the number of workers that ended in the high 24 bits, the number of
// block tasks executed in the low 40. So a slice that reports has fewer than 2^24 block tasks.
inline constexpr int kFinishedWorkersShift = 40;

__device__ inline uint64_t GlobalTimerNs() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// Called by worker 0, which starts first: blocks start in the order of their index.
__device__ inline void ReportStart(const gpushare_worker_launch& launch) {
  if (launch.scratch == nullptr) return;
  *const_cast<volatile uint64_t*>(&launch.scratch->start_globaltimer_ns) = GlobalTimerNs();
}

namespace internal {

// Block tasks left for another launch of the task: those not claimed and those interrupted.
__device__ inline uint32_t BlockTasksLeft(const gpushare_worker_launch& launch) {
  if (launch.counter == nullptr) return 0;
  const uint32_t claimed = *const_cast<volatile uint32_t*>(launch.counter);
  const uint32_t unclaimed = claimed < launch.block_count ? launch.block_count - claimed : 0;
  if (launch.yield_list == nullptr) return unclaimed;
  return unclaimed + InterruptedWaiting(launch);
}

__device__ inline void WriteCompletion(const gpushare_worker_launch& launch, uint64_t start_ns,
                                       uint32_t block_tasks_done, uint32_t block_tasks_left) {
  volatile gpushare_worker_completion* const record = launch.completion;
  record->start_globaltimer_ns = start_ns;
  record->end_globaltimer_ns = GlobalTimerNs();
  record->block_tasks_done = block_tasks_done;
  record->block_tasks_left = block_tasks_left;
  __threadfence_system();
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(&launch.completion->sequence),
               "l"(launch.sequence)
               : "memory");
}

}  // namespace internal

__device__ inline void ReportEnd(const gpushare_worker_launch& launch, uint32_t done,
                                 uint32_t workers) {
  if (launch.scratch == nullptr) return;
  __threadfence();
  const unsigned long long mine = (1ULL << kFinishedWorkersShift) | done;
  const unsigned long long sum =
      atomicAdd(reinterpret_cast<unsigned long long*>(&launch.scratch->finished), mine) + mine;
  if ((sum >> kFinishedWorkersShift) != workers) return;
  __threadfence();  // reads below see what the other workers wrote before their additions
  volatile gpushare_worker_scratch* const scratch = launch.scratch;
  const uint64_t start_ns = scratch->start_globaltimer_ns;
  // Reset the scratch before the host can see that the launch has ended and use it again.
  scratch->finished = 0;
  scratch->start_globaltimer_ns = 0;
  scratch->ended_sequence = launch.sequence;
  if (launch.retired_counter != nullptr) {
    *const_cast<volatile uint32_t*>(launch.retired_counter) = 0;
  }
  __threadfence();
  if (launch.completion == nullptr) return;
  internal::WriteCompletion(launch, start_ns,
                            static_cast<uint32_t>(sum & ((1ULL << kFinishedWorkersShift) - 1)),
                            internal::BlockTasksLeft(launch));
}

}  // namespace gpushare::device

#endif  // GPUSHARE_DEVICE_COMPLETION_CUH_
