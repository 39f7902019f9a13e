// The context of a body: its block task, its thread and its barriers.
//
// Every context has the same functions, so that one body compiles to every variant:
//   block()         index of the block task in the original grid, as x, y, z
//   block_index()   the same index as one number, x fastest; cheaper for a body with a 1-D grid
//   grid()          the original grid
//   thread(), threads()   index of the thread in its block or part, and the number of threads
//   sync()          the body's barrier; replaces __syncthreads(), which a body must not call
//   SyncSome<kIndex, kFirst, kCount>()   the body's extra barrier kIndex, below kExtraBarriers, for
//                   the kCount threads from kFirst on
//   step()          of a body with yield points: the step to execute; else 0
//   should_yield()  whether the launch is evicted. It is a barrier: all threads call it. Always
//                   false in the original grid and in slices
//   look_ahead()    optional, 1 to 2 us before the end of a step: starts to read the eviction word,
//                   so that the next should_yield() does not wait for it. That call then gives the
//                   state at this moment

#ifndef GPUSHARE_DEVICE_BLOCK_TASK_CUH_
#define GPUSHARE_DEVICE_BLOCK_TASK_CUH_

#include <gpushare/device/launch.h>

#include <cstdint>
#include <gpushare/device/barrier.cuh>

namespace gpushare::device {

// The read is relaxed and bypasses L1: a stream operation of the host or the launch's leader writes
// the word while the kernel runs.
__device__ inline uint64_t ReadEvictionWord(const gpushare_worker_launch& launch) {
  uint64_t word;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];"
               : "=l"(word)
               : "l"(launch.eviction_word)
               : "memory");
  return word;
}

// Whether `word`, an eviction word of the launch's lane, evicts this worker.
__device__ inline bool SaysLeave(const gpushare_worker_launch& launch, uint32_t worker,
                                 uint64_t word) {
  const uint32_t epoch = static_cast<uint32_t>(word >> 32);
  const uint32_t workers_to_keep = static_cast<uint32_t>(word);
  return static_cast<int32_t>(epoch - launch.epoch) >= 0 && worker >= workers_to_keep;
}

__device__ inline bool IsEvicted(const gpushare_worker_launch& launch, uint32_t worker) {
  if (launch.eviction_word == nullptr) return false;
  return SaysLeave(launch, worker, ReadEvictionWord(launch));
}

namespace internal {

// The position of block task `index` in the original grid. A 1-D grid, the usual case, needs no
// division.
__device__ inline dim3 BlockOf(const gpushare_worker_launch& launch, uint32_t index) {
  if (index < launch.grid_x) return dim3(index, 0, 0);
  const uint32_t row = index / launch.grid_x;
  return dim3(index - row * launch.grid_x, row % launch.grid_y, row / launch.grid_y);
}

}  // namespace internal

// The threads that execute a block task, and their barriers.
template <class Part>
class PartContext {
 public:
  __device__ uint32_t thread() const { return Part::Thread(); }
  __device__ uint32_t threads() const { return Part::kThreads; }
  __device__ void sync() const { Part::Sync(); }
  template <int kIndex, int kFirst, int kCount>
  __device__ void SyncSome() const {
    Part::template SyncSome<kIndex, kFirst, kCount>();
  }
};

// A block of an ordinary grid.
template <class Part>
class OriginalContext : public PartContext<Part> {
 public:
  __device__ dim3 block() const { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  __device__ dim3 grid() const { return dim3(gridDim.x, gridDim.y, gridDim.z); }
  __device__ uint32_t block_index() const {
    return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  }
  __device__ uint32_t step() const { return step_; }
  __device__ bool should_yield() { return Part::SyncTell(false); }
  __device__ void look_ahead() {}

  __device__ void set_step(uint32_t step) { step_ = step; }

 private:
  uint32_t step_ = 0;
};

// A block of a slice, or a part of a fused block of the direct form: a block task that is fixed by
// the block's index and needs no claim.
template <class Part>
class SliceContext : public PartContext<Part> {
 public:
  __device__ SliceContext(const gpushare_worker_launch& launch, uint32_t index)
      : launch_(launch), index_(index) {}

  __device__ dim3 block() const { return internal::BlockOf(launch_, index_); }
  __device__ dim3 grid() const { return dim3(launch_.grid_x, launch_.grid_y, launch_.grid_z); }
  __device__ uint32_t block_index() const { return index_; }
  __device__ uint32_t step() const { return step_; }
  __device__ bool should_yield() { return Part::SyncTell(false); }
  __device__ void look_ahead() {}

  __device__ void set_step(uint32_t step) { step_ = step; }

 private:
  const gpushare_worker_launch& launch_;
  uint32_t index_;
  uint32_t step_ = 0;
};

// A block task that a worker has claimed.
template <class Part>
class WorkerContext : public PartContext<Part> {
 public:
  __device__ WorkerContext(const gpushare_worker_launch& launch, uint32_t worker)
      : launch_(launch), worker_(worker) {}

  __device__ dim3 block() const { return internal::BlockOf(launch_, index_); }
  __device__ dim3 grid() const { return dim3(launch_.grid_x, launch_.grid_y, launch_.grid_z); }
  __device__ uint32_t block_index() const { return index_; }
  __device__ uint32_t step() const { return step_; }
  __device__ bool should_yield() {
    if (!looked_) look_ahead();
    looked_ = false;
    return Part::SyncTell(Asks() && SaysLeave(launch_, worker_, word_));
  }
  // Issues the read only; should_yield() is the first to wait for its result.
  __device__ void look_ahead() {
    if (Asks()) word_ = ReadEvictionWord(launch_);
    looked_ = true;
  }

  __device__ void set_block_task(uint32_t index) {
    index_ = index;
    looked_ = false;  // a word read in the last step of another block task is of no use
  }
  __device__ void set_step(uint32_t step) { step_ = step; }

 private:
  // A launch without a counter claims nothing and cannot be evicted.
  __device__ bool Asks() const {
    return Part::Leads() && launch_.counter != nullptr && launch_.eviction_word != nullptr;
  }

  const gpushare_worker_launch& launch_;
  uint32_t worker_;
  uint32_t index_ = 0;
  uint32_t step_ = 0;
  uint64_t word_ = 0;  // first thread only, from look_ahead() to should_yield()
  bool looked_ = false;
};

}  // namespace gpushare::device

#endif  // GPUSHARE_DEVICE_BLOCK_TASK_CUH_
