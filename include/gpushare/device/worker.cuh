// The worker loop: read the eviction word, then claim, then execute everything claimed.
//
// A slice has no claims and normally runs without the loop (RunSlice). The loop can execute a slice
// too: for kernels without a slice variant, and for a part of a fused block.
//
// Invariants
// - A worker executes every block task that it claimed before it leaves, or, at a yield point, puts
//   it on the yield list. So no block task is lost and none runs twice.
// - A worker reads the eviction word before it claims, and claims nothing ahead. An evicted worker
//   would have to execute such a claim first, which would double the eviction latency.
// - There is one barrier a block task. Claims alternate between two places, so that the first
//   thread can write the next claim while slow threads still read the last one. The same barrier
//   separates the uses of Shared by two block tasks.
// - Every worker of a launch reports its end exactly once, also one that retreats at once.

#ifndef GPUSHARE_DEVICE_WORKER_CUH_
#define GPUSHARE_DEVICE_WORKER_CUH_

#include <gpushare/device/launch.h>

#include <cstdint>
#include <gpushare/device/barrier.cuh>
#include <gpushare/device/block_task.cuh>
#include <gpushare/device/body.cuh>
#include <gpushare/device/completion.cuh>
#include <gpushare/device/yield_list.cuh>

namespace gpushare::device {

struct alignas(16) Claim {
  uint32_t first;  // first block task of the claim
  uint32_t count;  // number of block tasks; 0: the worker leaves
  uint32_t step;   // of an interrupted block task: the first step to execute
  uint32_t unused;
};

// Shared memory of a worker in addition to the body's own Shared.
struct WorkerShared {
  Claim claims[2];
  uint32_t done;              // block tasks executed; first thread only
  uint32_t counted_sm_plus1;  // 1 + the SM whose count it raised, 0: none; first thread only
};

namespace internal {

// SM-bound workers (Filling & Retreating): false for a worker that must retreat at once.
__device__ inline bool MayStay(const gpushare_worker_launch& launch, WorkerShared& mine) {
  mine.counted_sm_plus1 = 0;
  if (launch.sm_count == 0 && launch.sm_workers == nullptr) return true;
  uint32_t sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  // For an SM below sm_first the unsigned difference wraps to a value above any count.
  if (launch.sm_count != 0 && sm - launch.sm_first >= launch.sm_count) return false;
  if (launch.sm_workers == nullptr || launch.workers_per_sm == 0) return true;
  mine.counted_sm_plus1 = sm + 1;
  return atomicAdd(&launch.sm_workers[sm], 1U) < launch.workers_per_sm;
}

// Each worker takes its own count back, so that all counts are zero when the last worker reports.
__device__ inline void ReleaseSm(const gpushare_worker_launch& launch, const WorkerShared& mine) {
  if (mine.counted_sm_plus1 == 0) return;
  atomicSub(&launch.sm_workers[mine.counted_sm_plus1 - 1], 1U);
}

// Takes one block task of a body with yield points. One at a time, because a worker that is
// interrupted may hold only the block task that it puts on the list.
__device__ inline Claim TakeInterruptedOrClaim(const gpushare_worker_launch& launch,
                                               uint32_t worker, uint32_t workers) {
  InterruptedBlockTask task = {};
  const bool has_list = launch.yield_list != nullptr;
  if (has_list && TakeOwnInterrupted(launch, worker, workers, &task)) {
    return Claim{task.block_task, 1, task.step, 0};
  }
  const uint32_t claimed = atomicAdd(launch.counter, 1U);
  if (claimed < launch.block_count) return Claim{launch.block_begin + claimed, 1, 0, 0};
  if (has_list && TakeAnyInterrupted(launch, &task)) {
    return Claim{task.block_task, 1, task.step, 0};
  }
  return Claim{0, 0, 0, 0};
}

template <class Body>
__device__ Claim TakeClaim(const gpushare_worker_launch& launch, uint32_t worker, uint32_t workers,
                           bool first) {
  constexpr Claim kNone = {0, 0, 0, 0};
  if (launch.counter == nullptr) {  // a slice: its own block task, once
    if (!first || worker >= launch.block_count) return kNone;
    return Claim{launch.block_begin + worker, 1, 0, 0};
  }
  if (IsEvicted(launch, worker)) return kNone;
  if constexpr (kBodyYields<Body>) {
    return TakeInterruptedOrClaim(launch, worker, workers);
  } else {
    const uint32_t batch = launch.claim_batch > 1 ? launch.claim_batch : 1;
    const uint32_t claimed = atomicAdd(launch.counter, batch);
    if (claimed >= launch.block_count) return kNone;
    const uint32_t left = launch.block_count - claimed;
    return Claim{launch.block_begin + claimed, batch < left ? batch : left, 0, 0};
  }
}

// Saves the block task and puts it on the yield list. False if the list is full: the block task
// then goes on.
template <class Body, class Part, class Ctx>
__device__ bool Interrupt(const gpushare_worker_launch& launch, uint32_t worker,
                          const typename Body::Params& params, typename Body::Shared& shared,
                          typename Body::State& state, Ctx& ctx) {
  Body::Save(params, shared, state, ctx);
  Part::LoopSync();
  bool put = false;
  if (Part::Leads()) {
    put = PutInterrupted(launch, worker, InterruptedBlockTask{ctx.block_index(), ctx.step()});
  }
  return Part::SyncTell(put);
}

// Executes the steps from ctx.step() on. False when the block task was interrupted.
template <class Body, class Part, class Ctx>
__device__ bool ExecuteSteps(const gpushare_worker_launch& launch, uint32_t worker,
                             const typename Body::Params& params, typename Body::Shared& shared,
                             typename Body::State& state, Ctx& ctx) {
  const uint32_t steps = Body::Steps(params);
  uint32_t step = ctx.step();
  if (step > 0) Body::Restore(params, shared, state, ctx);
  for (;;) {
    Body::Run(params, shared, state, ctx);
    if (++step >= steps) return true;
    ctx.set_step(step);
    // should_yield() is a barrier in every case; it separates the uses of Shared by two steps.
    if (!ctx.should_yield() || launch.yield_list == nullptr) continue;
    if (Interrupt<Body, Part>(launch, worker, params, shared, state, ctx)) return false;
  }
}

}  // namespace internal

// Runs one worker, or one part of a fused block, for the whole launch. `worker` is its index among
// the `workers` workers of its launch.
template <class Body, class Part>
__device__ void RunWorker(const gpushare_worker_launch& launch, const typename Body::Params& params,
                          typename Body::Shared& shared, WorkerShared& mine, uint32_t worker,
                          uint32_t workers) {
  WorkerContext<Part> ctx(launch, worker);
  typename Body::State state{};
  bool may_stay = true;
  if (Part::Leads()) {
    if (worker == 0) ReportStart(launch);
    mine.done = 0;
    may_stay = internal::MayStay(launch, mine);
  }
  EnterBody<Body>(params, shared, state, ctx);
  for (uint32_t round = 0;; ++round) {
    if (Part::Leads()) {
      mine.claims[round & 1] = may_stay
                                   ? internal::TakeClaim<Body>(launch, worker, workers, round == 0)
                                   : Claim{0, 0, 0, 0};
    }
    Part::LoopSync();
    const uint32_t first = mine.claims[round & 1].first;
    const uint32_t count = mine.claims[round & 1].count;
    if (count == 0) break;
    if constexpr (kBodyYields<Body>) {
      ctx.set_block_task(first);
      ctx.set_step(mine.claims[round & 1].step);
      const bool ended =
          internal::ExecuteSteps<Body, Part>(launch, worker, params, shared, state, ctx);
      if (Part::Leads() && ended) ++mine.done;
    } else {
      for (uint32_t i = 0; i < count; ++i) {
        if (i > 0) Part::LoopSync();
        ctx.set_block_task(first + i);
        Body::Run(params, shared, state, ctx);
      }
      if (Part::Leads()) mine.done += count;
    }
  }
  LeaveBody<Body>(params, shared, state, ctx);
  if constexpr (internal::HasLeave<Body, WorkerContext<Part>>::value) Part::LoopSync();
  if (Part::Leads()) {
    internal::ReleaseSm(launch, mine);
    ReportEnd(launch, mine.done, workers);
  }
}

// Runs one block task that needs no claim.
template <class Body, class Part, class Ctx>
__device__ void RunOnce(const typename Body::Params& params, typename Body::Shared& shared,
                        Ctx& ctx) {
  typename Body::State state{};
  EnterBody<Body>(params, shared, state, ctx);
  if constexpr (kBodyYields<Body>) {
    const uint32_t steps = Body::Steps(params);
    for (uint32_t step = 0; step < steps; ++step) {
      if (step > 0) Part::LoopSync();
      ctx.set_step(step);
      Body::Run(params, shared, state, ctx);
    }
  } else {
    Body::Run(params, shared, state, ctx);
  }
#if GPUSHARE_DEVICE_CHECKS
  Part::LoopSync();  // also finds a thread that returned before a barrier of the body
#endif
  LeaveBody<Body>(params, shared, state, ctx);
}

// Runs one block of the original grid.
template <class Body, class Part>
__device__ void RunOriginal(const typename Body::Params& params, typename Body::Shared& shared) {
  OriginalContext<Part> ctx;
  RunOnce<Body, Part>(params, shared, ctx);
}

// Runs one block of a slice: its own block task, once, without the worker loop. With the claims and
// barriers of the loop, slices of sgemm and tpacf took more than 2 % longer than the original grid
// at every size.
template <class Body, class Part>
__device__ void RunSlice(const gpushare_worker_launch& launch, const typename Body::Params& params,
                         typename Body::Shared& shared, uint32_t block, uint32_t blocks) {
  const bool has_block_task = block < launch.block_count;
  if (Part::Leads() && block == 0) ReportStart(launch);
  if (has_block_task) {
    SliceContext<Part> ctx(launch, launch.block_begin + block);
    RunOnce<Body, Part>(params, shared, ctx);
  }
  if (launch.scratch == nullptr) return;
  Part::LoopSync();
  if (Part::Leads()) ReportEnd(launch, has_block_task ? 1 : 0, blocks);
}

}  // namespace gpushare::device

#endif  // GPUSHARE_DEVICE_WORKER_CUH_
