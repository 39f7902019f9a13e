// The interrupted block tasks of a yielding body: workers that are evicted at a yield point put
// {block task, next step} here, and the next launch of the task takes from here before it claims.
//
// Layout: gpushare_worker_launch::yield_list. Launches of one task share a list and may put and
// take at once (an elastic partition evicts one of its two launches). A taker first takes one from
// the count, which is raised only after an entry is in place, so entries are at least as many as
// takers look for. Called by one thread of a worker.

#ifndef GPUSHARE_DEVICE_YIELD_LIST_CUH_
#define GPUSHARE_DEVICE_YIELD_LIST_CUH_

#include <gpushare/device/launch.h>

#include <cstdint>

namespace gpushare::device {

struct InterruptedBlockTask {
  uint32_t block_task;
  uint32_t step;  // the next one to execute, at least 1
};

// A taker that misses an entry this often only because others put and take around it gives up and
// leaves the entry to the next launch.
inline constexpr int kYieldListRounds = 64;

namespace internal {

__device__ inline unsigned long long* Words(const gpushare_worker_launch& launch) {
  return reinterpret_cast<unsigned long long*>(launch.yield_list);
}

}  // namespace internal

// False when no word is free: the block task then goes on.
__device__ inline bool PutInterrupted(const gpushare_worker_launch& launch, uint32_t worker,
                                      InterruptedBlockTask task) {
  unsigned long long* const words = internal::Words(launch);
  const uint32_t capacity = static_cast<uint32_t>(launch.yield_capacity);
  const unsigned long long entry =
      (static_cast<unsigned long long>(task.step) << 32) | task.block_task;
  __threadfence();  // what the body saved is seen by whoever sees the entry
  for (uint32_t i = 0; i < capacity; ++i) {
    const uint32_t at = 1 + (worker + i) % capacity;
    if (atomicCAS(&words[at], 0ULL, entry) != 0) continue;
    __threadfence();  // the entry before the count
    atomicAdd(&words[0], 1ULL);
    return true;
  }
  return false;
}

__device__ inline bool TakeInterrupted(const gpushare_worker_launch& launch, uint32_t worker,
                                       InterruptedBlockTask* task) {
  unsigned long long* const words = internal::Words(launch);
  const uint32_t capacity = static_cast<uint32_t>(launch.yield_capacity);
  unsigned long long waiting = *reinterpret_cast<volatile unsigned long long*>(&words[0]);
  for (;;) {
    if (waiting == 0) return false;
    const unsigned long long seen = atomicCAS(&words[0], waiting, waiting - 1);
    if (seen == waiting) break;
    waiting = seen;
  }
  for (int round = 0; round < kYieldListRounds; ++round) {
    for (uint32_t i = 0; i < capacity; ++i) {
      const uint32_t at = 1 + (worker + i) % capacity;
      if (*reinterpret_cast<volatile unsigned long long*>(&words[at]) == 0) continue;
      const unsigned long long entry = atomicExch(&words[at], 0ULL);
      if (entry == 0) continue;
      __threadfence();  // what the body saved is read after this
      task->block_task = static_cast<uint32_t>(entry);
      task->step = static_cast<uint32_t>(entry >> 32);
      return true;
    }
  }
  atomicAdd(&words[0], 1ULL);
  return false;
}

}  // namespace gpushare::device

#endif  // GPUSHARE_DEVICE_YIELD_LIST_CUH_
