// Barriers of a kernel body: all threads of a block, or the threads of one part of a fused block.
//
// A part is a run of whole warps with a named barrier of its own; id 0 belongs to the whole block.
// Every thread of the part reaches every barrier: a thread that returns early leaves the others
// waiting, or worse, pairs the body's barrier with the worker loop's. With GPUSHARE_DEVICE_CHECKS
// (by default where NDEBUG is not defined) each barrier also counts which kind the threads came
// to, and a mixture stops the kernel with a message.

#ifndef GPUSHARE_DEVICE_BARRIER_CUH_
#define GPUSHARE_DEVICE_BARRIER_CUH_

#include <cstdint>

#ifndef GPUSHARE_DEVICE_CHECKS
#ifdef NDEBUG
#define GPUSHARE_DEVICE_CHECKS 0
#else
#define GPUSHARE_DEVICE_CHECKS 1
#endif
#endif

#if GPUSHARE_DEVICE_CHECKS
#include <cstdio>
#endif

namespace gpushare::device {

// Threads [kFirstThread, kFirstThread + kThreadCount) of the block, meeting at barrier kBarrierId.
template <int kFirstThread, int kThreadCount, int kBarrierId>
struct Part {
  static constexpr int kFirst = kFirstThread;
  static constexpr int kThreads = kThreadCount;
  static constexpr int kBarrier = kBarrierId;
  static constexpr int kWarpThreads = 32;
  static constexpr int kBarriers = 16;  // named barriers of a block, id 0 included

  static_assert(kBarrierId >= 0 && kBarrierId < kBarriers, "a block has the barriers 0 to 15");
  static_assert(kBarrierId != 0 || kFirstThread == 0, "barrier 0 is the whole block's");
  static_assert(kBarrierId == 0 ||
                    (kFirstThread % kWarpThreads == 0 && kThreadCount % kWarpThreads == 0),
                "a part of a fused block is made of whole warps");

  __device__ static uint32_t Thread() { return threadIdx.x - kFirstThread; }
  __device__ static bool Leads() { return Thread() == 0; }

  // The body's barrier.
  __device__ static void Sync() {
#if GPUSHARE_DEVICE_CHECKS
    Require(SyncCount(false) == 0);
#else
    PlainSync();
#endif
  }

  // The worker loop's barrier, after every block task.
  __device__ static void LoopSync() {
#if GPUSHARE_DEVICE_CHECKS
    Require(SyncCount(true) == kThreadCount);
#else
    PlainSync();
#endif
  }

  // A barrier that tells every thread whether the part's first thread said true.
  __device__ static bool SyncTell(bool said) {
    const bool mine = Leads() && said;
#if GPUSHARE_DEVICE_CHECKS
    const uint32_t count = SyncCount(mine);
    Require(count <= 1);
    return count != 0;
#else
    if constexpr (kBarrierId == 0) return __syncthreads_or(mine) != 0;
    uint32_t told;
    asm volatile(
        "{\n"
        " .reg .pred p, q;\n"
        " setp.ne.u32 p, %1, 0;\n"
        " bar.red.or.pred q, %2, %3, p;\n"
        " selp.u32 %0, 1, 0, q;\n"
        "}\n"
        : "=r"(told)
        : "r"(static_cast<uint32_t>(mine)), "n"(kBarrierId), "n"(kThreadCount)
        : "memory");
    return told != 0;
#endif
  }

 private:
  __device__ static void PlainSync() {
    if constexpr (kBarrierId == 0) {
      __syncthreads();
    } else {
      asm volatile("bar.sync %0, %1;" ::"n"(kBarrierId), "n"(kThreadCount) : "memory");
    }
  }

#if GPUSHARE_DEVICE_CHECKS
  // How many threads came with true. Not the .aligned form: the threads of one warp may have come
  // to different barriers, which is what the check is for.
  __device__ static uint32_t SyncCount(bool mine) {
    uint32_t count;
    asm volatile(
        "{\n"
        " .reg .pred p;\n"
        " setp.ne.u32 p, %1, 0;\n"
        " barrier.cta.red.popc.u32 %0, %2, %3, p;\n"
        "}\n"
        : "=r"(count)
        : "r"(static_cast<uint32_t>(mine)), "n"(kBarrierId), "n"(kThreadCount)
        : "memory");
    return count;
  }

  __device__ static void Require(bool same_kind) {
    if (same_kind) return;
    printf(
        "gpushare: thread %u of block %u meets threads at another barrier: a thread of the body "
        "returned before a barrier that the others wait at.\n",
        threadIdx.x, blockIdx.x);
    __trap();
  }
#endif
};

// An unfused block.
template <int kThreadCount>
using WholeBlock = Part<0, kThreadCount, 0>;

}  // namespace gpushare::device

#endif  // GPUSHARE_DEVICE_BARRIER_CUH_
