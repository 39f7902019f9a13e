// Barriers of a kernel body: for all threads of a block, or for one part of a fused block.
//
// A part is a run of whole warps with a named barrier of its own. Barrier 0 belongs to the whole
// block. A body may ask for extra barriers (kExtraBarriers) for some of its warps, such as a
// producer and its consumers. Ids: in an unfused block the extra barriers start at 1; in a fused
// block they follow the barriers of all parts.
//
// Rule: every thread of a part reaches every barrier of the part. If one thread returns early, the
// others wait for ever, or a barrier of the body pairs with one of the worker loop. With
// GPUSHARE_DEVICE_CHECKS (default without NDEBUG) each barrier checks that all threads came to the
// same kind of barrier, and stops the kernel with a message if they did not.

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

// The threads [kFirstThread, kFirstThread + kThreadCount) of the block. All of them synchronise at
// barrier kBarrierId, some of them also at the kExtraCount barriers from kFirstExtra on. A fused
// block may hold several copies of a part, kStride threads apart. Copies share the code; copy c has
// the barrier kBarrierId + c and the extra barriers from kFirstExtra + c * kExtraCount on.
template <int kFirstThread, int kThreadCount, int kBarrierId, int kFirstExtra = kBarrierId + 1,
          int kExtraCount = 0, int kCopyCount = 1, int kStride = kThreadCount>
struct Part {
  static constexpr int kFirst = kFirstThread;
  static constexpr int kThreads = kThreadCount;
  static constexpr int kBarrier = kBarrierId;
  static constexpr int kCopies = kCopyCount;
  static constexpr int kWarpThreads = 32;
  static constexpr int kBarriers = 16;  // named barriers of a block, id 0 included

  static_assert(kBarrierId >= 0 && kCopyCount >= 1 && kBarrierId + kCopyCount <= kBarriers,
                "a block has the barriers 0 to 15");
  static_assert(kBarrierId != 0 || (kFirstThread == 0 && kCopyCount == 1),
                "barrier 0 is the whole block's");
  static_assert(kExtraCount >= 0 && kFirstExtra >= kBarrierId + kCopyCount &&
                    kFirstExtra + kExtraCount * kCopyCount <= kBarriers,
                "a block has the barriers 0 to 15");
  static_assert(kBarrierId == 0 ||
                    (kFirstThread % kWarpThreads == 0 && kThreadCount % kWarpThreads == 0 &&
                     kStride % kWarpThreads == 0 && kStride >= kThreadCount),
                "a part of a fused block is made of whole warps");

  // The copy that this thread belongs to, and the thread's index in that copy.
  __device__ static uint32_t Copy() {
    return kCopyCount == 1 ? 0 : (threadIdx.x - kFirstThread) / kStride;
  }
  __device__ static uint32_t Thread() {
    const uint32_t thread = threadIdx.x - kFirstThread;
    return kCopyCount == 1 ? thread : thread % kStride;
  }
  __device__ static bool Leads() { return Thread() == 0; }

  // The body's barrier.
  __device__ static void Sync() {
#if GPUSHARE_DEVICE_CHECKS
    Require(SyncCount(false) == 0);
#else
    PlainSync();
#endif
  }

  // The body's extra barrier kIndex, for kCount of its threads from thread kFirstOfSome on. Only
  // the debug check uses kFirstOfSome.
  template <int kIndex, int kFirstOfSome, int kCount>
  __device__ static void SyncSome() {
    static_assert(kIndex >= 0 && kIndex < kExtraCount, "the body asks for kExtraBarriers");
    static_assert(kCount > 0 && kCount % kWarpThreads == 0 && kFirstOfSome % kWarpThreads == 0 &&
                      kFirstOfSome >= 0 && kFirstOfSome + kCount <= kThreadCount,
                  "some threads are whole warps of the part");
#if GPUSHARE_DEVICE_CHECKS
    Require(Thread() - kFirstOfSome < static_cast<uint32_t>(kCount));
#endif
    if constexpr (kCopyCount == 1) {
      asm volatile("bar.sync %0, %1;" ::"n"(kFirstExtra + kIndex), "n"(kCount) : "memory");
    } else {
      const uint32_t barrier = kFirstExtra + Copy() * kExtraCount + kIndex;
      asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(kCount) : "memory");
    }
  }

  // The barrier of the worker loop, after every block task.
  __device__ static void LoopSync() {
#if GPUSHARE_DEVICE_CHECKS
    Require(SyncCount(true) == kThreadCount);
#else
    PlainSync();
#endif
  }

  // A barrier that broadcasts the value that the part's first thread passes.
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
        : "r"(static_cast<uint32_t>(mine)), "r"(Barrier()), "n"(kThreadCount)
        : "memory");
    return told != 0;
#endif
  }

 private:
  __device__ static uint32_t Barrier() { return kBarrierId + Copy(); }

  __device__ static void PlainSync() {
    if constexpr (kBarrierId == 0) {
      __syncthreads();
    } else if constexpr (kCopyCount == 1) {
      asm volatile("bar.sync %0, %1;" ::"n"(kBarrierId), "n"(kThreadCount) : "memory");
    } else {
      asm volatile("bar.sync %0, %1;" ::"r"(Barrier()), "n"(kThreadCount) : "memory");
    }
  }

#if GPUSHARE_DEVICE_CHECKS
  // A barrier that counts the threads that pass true. It is not the .aligned form, because threads
  // of one warp may stand at different barriers: that is the error to find.
  __device__ static uint32_t SyncCount(bool mine) {
    uint32_t count;
    asm volatile(
        "{\n"
        " .reg .pred p;\n"
        " setp.ne.u32 p, %1, 0;\n"
        " barrier.cta.red.popc.u32 %0, %2, %3, p;\n"
        "}\n"
        : "=r"(count)
        : "r"(static_cast<uint32_t>(mine)), "r"(Barrier()), "n"(kThreadCount)
        : "memory");
    return count;
  }

  __device__ static void Require(bool same_kind) {
    if (same_kind) return;
    printf(
        "gpushare: thread %u of block %u meets threads at another barrier: a thread of the body "
        "returned before a barrier that the others wait at, or came to one that is not its.\n",
        threadIdx.x, blockIdx.x);
    __trap();
  }
#endif
};

// An unfused block.
template <int kThreadCount, int kExtraCount = 0>
using WholeBlock = Part<0, kThreadCount, 0, 1, kExtraCount>;

}  // namespace gpushare::device

#endif  // GPUSHARE_DEVICE_BARRIER_CUH_
