// The list of interrupted block tasks of a body with yield points. A worker that is evicted at a
// yield point puts {block task, next step} here. The next launch of the task takes entries from
// here before it claims.
//
// Layout: gpushare_worker_launch::yield_list. Launches of one task share a list. They may put and
// take at the same time: an elastic partition evicts one of its two launches.
//
// Invariants
// - The worker that exchanges an entry for 0 owns it.
// - The count follows the entries: a worker raises it after it wrote an entry and lowers it after
//   it took one. So the count may be wrong for a moment, even below zero. It is exact once all
//   workers of the task have ended.
// - Worker w of W owns the words w, w + W, w + 2 W, ... It puts into its first word, and searches
//   its own words before it claims. So every word has a worker that searches it, and many workers
//   that resume at once do not contend. They must not race for the count instead: each success
//   would make all other compare-and-swaps fail, and the workers would resume one after another, an
//   L2 round trip apart.
// - A worker searches the words of others, in batches, only when nothing is left to claim.
//
// Threads: one thread of a worker calls these functions.

#ifndef GPUSHARE_DEVICE_YIELD_LIST_CUH_
#define GPUSHARE_DEVICE_YIELD_LIST_CUH_

#include <gpushare/device/launch.h>

#include <cstdint>

namespace gpushare::device {

struct InterruptedBlockTask {
  uint32_t block_task;
  uint32_t step;  // the next step to execute, at least 1
};

namespace internal {

// Words that a search reads at once, so that their round trips overlap.
inline constexpr uint32_t kYieldLooks = 8;
// Distance between the words that a put tries. A prime: a worker whose first word is taken then
// tries words far from those of its neighbours, whose words are probably taken too.
inline constexpr uint32_t kYieldStride = 1009;

__device__ inline unsigned long long* Words(const gpushare_worker_launch& launch) {
  return reinterpret_cast<unsigned long long*>(launch.yield_list);
}

// The step of an entry, 0 for a free word.
__device__ inline uint32_t StepAt(const unsigned long long* word) {
  return reinterpret_cast<const volatile uint32_t*>(word)[1];
}

// The number of entries, as this thread sees it now.
__device__ inline uint32_t InterruptedWaiting(const gpushare_worker_launch& launch) {
  const auto count = static_cast<int64_t>(*const_cast<volatile uint64_t*>(&launch.yield_list[0]));
  return count > 0 ? static_cast<uint32_t>(count) : 0;
}

__device__ inline bool TakeFrom(const gpushare_worker_launch& launch, uint32_t at,
                                InterruptedBlockTask* task) {
  unsigned long long* const words = Words(launch);
  const unsigned long long entry = atomicExch(&words[1 + at], 0ULL);
  if (entry == 0) return false;
  __threadfence();  // the body reads what was saved after this
  atomicAdd(&words[0], ~0ULL);
  task->block_task = static_cast<uint32_t>(entry);
  task->step = static_cast<uint32_t>(entry >> 32);
  return true;
}

// Takes one entry from the words first, first + stride, first + 2 stride, ...
__device__ inline bool TakeAmong(const gpushare_worker_launch& launch, uint32_t first,
                                 uint32_t stride, InterruptedBlockTask* task) {
  const unsigned long long* const words = Words(launch);
  const uint32_t capacity = static_cast<uint32_t>(launch.yield_capacity);
#pragma unroll 1
  for (uint32_t at = first; at < capacity; at += kYieldLooks * stride) {
    // The list is empty: the usual end of a search.
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

// Puts an entry. False if no word is free: the block task then goes on.
__device__ inline bool PutInterrupted(const gpushare_worker_launch& launch, uint32_t worker,
                                      InterruptedBlockTask task) {
  unsigned long long* const words = internal::Words(launch);
  const uint32_t capacity = static_cast<uint32_t>(launch.yield_capacity);
  const unsigned long long entry =
      (static_cast<unsigned long long>(task.step) << 32) | task.block_task;
  __threadfence();  // a worker that sees the entry sees what the body saved
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

// Takes one entry from this worker's own words. The launch has `workers` workers.
__device__ inline bool TakeOwnInterrupted(const gpushare_worker_launch& launch, uint32_t worker,
                                          uint32_t workers, InterruptedBlockTask* task) {
  if (internal::InterruptedWaiting(launch) == 0) return false;
  // The first word needs no look: an interrupted worker of this index put its entry there.
  if (worker < launch.yield_capacity && internal::TakeFrom(launch, worker, task)) return true;
  return internal::TakeAmong(launch, worker + workers, workers, task);
}

// Takes one entry from any word. It may find none while others take or put entries; those others,
// or the next launch, execute the rest.
__device__ inline bool TakeAnyInterrupted(const gpushare_worker_launch& launch,
                                          InterruptedBlockTask* task) {
  return internal::TakeAmong(launch, 0, 1, task);
}

}  // namespace gpushare::device

#endif  // GPUSHARE_DEVICE_YIELD_LIST_CUH_
