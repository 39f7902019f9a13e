// The interrupted block tasks of a yielding body: workers that are evicted at a yield point put
// {block task, next step} here, and the next launch of the task takes from here before it claims.
//
// Layout: gpushare_worker_launch::yield_list. Launches of one task share a list and may put and
// take at once (an elastic partition evicts one of its two launches).
//
// Invariants
// - An entry belongs to whoever exchanges it for 0.
// - The count follows the entries: raised after one is in place, lowered after one is taken. So it
//   may be off, even below zero, while others are at it, and is exact once all workers of the task
//   have ended.
// - Worker w of W owns the words w, w + W, w + 2 W, ...: it puts into its first word, and looks at
//   its own ones before it claims. So all words are looked at by somebody, and a thousand workers
//   that resume at once meet at no word. (They must not race for the count: each success makes all
//   other comparisons fail, and the workers resume one after another, a round trip to L2 apart.)
// - Words of others are searched, one batch after another, only when nothing is left to claim.
//
// Threads: called by one thread of a worker.

#ifndef GPUSHARE_DEVICE_YIELD_LIST_CUH_
#define GPUSHARE_DEVICE_YIELD_LIST_CUH_

#include <gpushare/device/launch.h>

#include <cstdint>

namespace gpushare::device {

struct InterruptedBlockTask {
  uint32_t block_task;
  uint32_t step;  // the next one to execute, at least 1
};

namespace internal {

// Words that a taker reads at once: their round trips overlap.
inline constexpr uint32_t kYieldLooks = 8;
// A prime: a worker that finds its first word taken tries words far from those of its neighbours,
// who find theirs taken too.
inline constexpr uint32_t kYieldStride = 1009;

__device__ inline unsigned long long* Words(const gpushare_worker_launch& launch) {
  return reinterpret_cast<unsigned long long*>(launch.yield_list);
}

// The step of an entry, 0 for a free word.
__device__ inline uint32_t StepAt(const unsigned long long* word) {
  return reinterpret_cast<const volatile uint32_t*>(word)[1];
}

// How many wait, as far as this thread can see.
__device__ inline uint32_t InterruptedWaiting(const gpushare_worker_launch& launch) {
  const auto count = static_cast<int64_t>(*const_cast<volatile uint64_t*>(&launch.yield_list[0]));
  return count > 0 ? static_cast<uint32_t>(count) : 0;
}

__device__ inline bool TakeFrom(const gpushare_worker_launch& launch, uint32_t at,
                                InterruptedBlockTask* task) {
  unsigned long long* const words = Words(launch);
  const unsigned long long entry = atomicExch(&words[1 + at], 0ULL);
  if (entry == 0) return false;
  __threadfence();  // what the body saved is read after this
  atomicAdd(&words[0], ~0ULL);
  task->block_task = static_cast<uint32_t>(entry);
  task->step = static_cast<uint32_t>(entry >> 32);
  return true;
}

// From the words first, first + stride, first + 2 stride, ... of the list.
__device__ inline bool TakeAmong(const gpushare_worker_launch& launch, uint32_t first,
                                 uint32_t stride, InterruptedBlockTask* task) {
  const unsigned long long* const words = Words(launch);
  const uint32_t capacity = static_cast<uint32_t>(launch.yield_capacity);
#pragma unroll 1
  for (uint32_t at = first; at < capacity; at += kYieldLooks * stride) {
    // Nobody has any left: the usual end of a search.
    if (InterruptedWaiting(launch) == 0) return false;
    uint32_t seen = 0;
#pragma unroll
    for (uint32_t k = 0; k < kYieldLooks; ++k) {
      const uint32_t word = at + k * stride;
      if (word < capacity) seen |= StepAt(&words[1 + word]) != 0 ? 1U << k : 0;
    }
#pragma unroll 1
    for (; seen != 0; seen &= seen - 1) {
      const uint32_t k = static_cast<uint32_t>(__ffs(static_cast<int>(seen))) - 1;
      if (TakeFrom(launch, at + k * stride, task)) return true;
    }
  }
  return false;
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
  const uint32_t stride = capacity % internal::kYieldStride == 0 ? 1 : internal::kYieldStride;
  uint32_t at = worker;
  for (uint32_t i = 0; i < capacity; ++i, at += stride) {
    at %= capacity;
    if (atomicCAS(&words[1 + at], 0ULL, entry) != 0) continue;
    __threadfence();  // the entry before the count
    atomicAdd(&words[0], 1ULL);
    return true;
  }
  return false;
}

// One of this worker's own. `workers`: of the launch.
__device__ inline bool TakeOwnInterrupted(const gpushare_worker_launch& launch, uint32_t worker,
                                          uint32_t workers, InterruptedBlockTask* task) {
  if (internal::InterruptedWaiting(launch) == 0) return false;
  // The first one without a look: a worker that was interrupted put it there.
  if (worker < launch.yield_capacity && internal::TakeFrom(launch, worker, task)) return true;
  return internal::TakeAmong(launch, worker + workers, workers, task);
}

// Anybody's. A worker that finds none, also because others take at the same time, leaves the rest
// to them or to the next launch.
__device__ inline bool TakeAnyInterrupted(const gpushare_worker_launch& launch,
                                          InterruptedBlockTask* task) {
  return internal::TakeAmong(launch, 0, 1, task);
}

}  // namespace gpushare::device

#endif  // GPUSHARE_DEVICE_YIELD_LIST_CUH_
