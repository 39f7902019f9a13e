// gemm_skinny: the GEMM of decoding, m = 8, 16 or 32 rows against weights that are read once. Bound
// by DRAM. sm_90a; other GPUs run gemm_skinny_portable.cuh.
//
// A block task is all of k for 64 columns of C, so that the activations, which every block task
// reads from L2, are half of what the weights are (gemm_skinny_portable.cuh has the arithmetic).
// - Weights and activations come by TMA into a ring of stages: bytes in flight cost no registers,
//   and one instruction asks for 8 KB. A stage has kDepth k blocks of 64, each a swizzled box of
//   weights and one of activations: a barrier is waited for once in kDepth blocks.
// - Panels begin at different k blocks, and L2 gives up weights first, so that activations stay.
// - One warpgroup multiplies, the weights' 64 columns as wgmma's rows and 32 rows of A as its
//   columns: 16 sums a thread, and operands pass no registers. They are C transposed.
// - The other warpgroup's first thread loads, the rest idle at the barrier. It is the first of the
//   part, so a worker claims its next block task while the consumers still multiply and store.
//
// Invariants
// - full[s] completes when the boxes of stage s are there; empty[s] when all consumer warps have
//   read them. The producer's first round finds every stage empty (parity 1 of a fresh barrier).
// - Sums are added in an order that the panel alone gives.
//
// Two forms: gpushare_gemm_skinny has the fastest ring; gpushare_gemm_skinny_compact has one that
// fits in the shared memory which gpushare_gemm_roomy leaves of an SM (gemm_skinny.h).

#ifndef GPUSHARE_KERNELS_TENSOR_GEMM_SKINNY_CUH_
#define GPUSHARE_KERNELS_TENSOR_GEMM_SKINNY_CUH_

#include <cstdint>
#include <cstdio>

#include "kernels/tensor/gemm_skinny.h"
#include "kernels/tensor/gemm_skinny_layout.h"
#include "kernels/tensor/gemm_tile.h"
#include "kernels/tensor/hopper.cuh"
#include "kernels/tensor/mma.cuh"

namespace gpushare::kernels {
namespace gemm_skinny {

static_assert(kSkinnyColumns == kColumns && kSkinnyRowsMax == kRows, "one shape of block tasks");

constexpr int kConsumers = 128;  // a warpgroup
constexpr uint32_t kConsumerWarps = 4;
constexpr int kFirstConsumer = 128;  // a warpgroup is aligned to one
constexpr uint32_t kWeightBytes = kColumns * kSwizzleRowBytes;
constexpr uint32_t kBlockBytes = kWeightBytes + kRows * kSwizzleRowBytes;
constexpr int kSums = kRows / 2;  // of a thread

struct State {
  uint32_t stage;
  uint32_t parity;
};

template <uint32_t kStages, uint32_t kDepth>
struct Gemm {
  using Params = GemmSkinnyParams;
  using State = gemm_skinny::State;

  static constexpr uint32_t kStageBytes = kDepth * kBlockBytes;
  static constexpr int kThreads = kFirstConsumer + kConsumers;

  struct alignas(kSwizzleBytes) Shared {
    unsigned char stages[kStages][kStageBytes];
    uint64_t full[kStages];
    uint64_t empty[kStages];
  };

  template <class Ctx>
  __device__ static void Enter(const Params& params, Shared& shared, State& state, Ctx& ctx) {
#if GPUSHARE_WGMMA
    state.stage = 0;
    // The producer waits for the phase before the first, which counts as complete.
    state.parity = ctx.thread() == 0 ? 1 : 0;
    if (ctx.thread() == kFirstConsumer) {
      hopper::PrefetchMap(&params.weights_map);
      hopper::PrefetchMap(&params.activations_map);
    }
    if (ctx.thread() == 0) hopper::RingInit(shared.full, shared.empty, kConsumerWarps);
    ctx.sync();
#endif
  }

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State& state, Ctx& ctx) {
#if GPUSHARE_WGMMA
    const uint32_t panel = ctx.block_index() % params.panels;
    const int consumer = static_cast<int>(ctx.thread()) - kFirstConsumer;
    // Uniform over the warp; the shuffle lets the compiler know.
    if (__shfl_sync(~0U, consumer, 0) < 0) {
      if (ctx.thread() == 0) LoadPanel(params, shared, state, panel);
      return;
    }
    const auto thread = static_cast<uint32_t>(consumer);
    float sums[kSums];
    Multiply(params, shared, state, thread, sums);
    Store(params, panel, thread, sums);
#else
    if (ctx.thread() == 0) printf("gpushare: this GEMM needs compute capability 9.0a.\n");
    __trap();
#endif
  }

  template <class Ctx>
  __device__ static void Leave(const Params&, Shared& shared, State&, Ctx& ctx) {
#if GPUSHARE_WGMMA
    ctx.sync();
    if (ctx.thread() == 0) hopper::RingInvalidate(shared.full, shared.empty);
#endif
  }

 private:
  // Past the end of k the last stage has zeros, which change no sum.
  __device__ static __forceinline__ uint32_t StepsOf(const Params& params) {
    constexpr uint32_t kOfStage = kDepth * kSwizzleColumns;
    return (params.k + kOfStage - 1) / kOfStage;
  }

  __device__ static __forceinline__ void Advance(State& state) {
    if (++state.stage < kStages) return;
    state.stage = 0;
    state.parity ^= 1;
  }

  // The producer's thread: all k blocks of the panel, kDepth at a time into a stage once it is
  // empty.
  __device__ static __forceinline__ void LoadPanel(const Params& params, Shared& shared,
                                                   State& state, uint32_t panel) {
    const uint32_t steps = StepsOf(params);
    const auto column = static_cast<int32_t>(panel * kColumns);
    const uint64_t policy = hopper::EvictFirst();
    uint32_t step = FirstStep(panel, steps);
#pragma unroll 1
    for (uint32_t i = 0; i < steps; ++i) {
      const uint32_t barrier = state.stage * sizeof(uint64_t);
      const uint32_t full = hopper::SharedAddress(shared.full) + barrier;
      const uint32_t to = hopper::SharedAddress(shared.stages) + state.stage * kStageBytes;
      hopper::BarrierWait(hopper::SharedAddress(shared.empty) + barrier, state.parity);
      hopper::BarrierArriveExpect(full, kStageBytes);
      const auto k = static_cast<int32_t>(step * kDepth * kSwizzleColumns);
      // Request all weights first, so that the requests for neighbouring lines of DRAM follow each
      // other.
#pragma unroll
      for (uint32_t d = 0; d < kDepth; ++d) {
        hopper::LoadBoxOnce(to + d * kBlockBytes, &params.weights_map, full,
                            k + static_cast<int32_t>(d * kSwizzleColumns), column, policy);
      }
#pragma unroll
      for (uint32_t d = 0; d < kDepth; ++d) {
        hopper::LoadBox(to + d * kBlockBytes + kWeightBytes, &params.activations_map, full,
                        k + static_cast<int32_t>(d * kSwizzleColumns), 0);
      }
      Advance(state);
      if (++step == steps) step = 0;
    }
  }

  // Adds a stage's products to the sums, and waits for them. The large GEMMs wait for the next
  // stage meanwhile; here a stage that is still read would hold a place in the ring that DRAM could
  // fill.
  __device__ static __forceinline__ void MultiplyStage(uint32_t stage, bool adds,
                                                       float (&sums)[kSums]) {
    const uint64_t weights = TileDescriptor(stage);
    const uint64_t activations = TileDescriptor(stage + kWeightBytes);
    constexpr uint64_t kDescriptorPerBlock = kBlockBytes / 16;
    hopper::WgmmaFence();
#pragma unroll
    for (uint32_t d = 0; d < kDepth; ++d) {
#pragma unroll
      for (uint32_t step = 0; step < kStepsPerRow; ++step) {
        const uint64_t at = d * kDescriptorPerBlock + step * kDescriptorPerStep;
        hopper::Wgmma<static_cast<int>(kRows)>::Issue(sums, weights + at, activations + at,
                                                      adds || d + step > 0 ? 1 : 0);
      }
    }
    hopper::WgmmaCommit();
    hopper::WgmmaWait<0>();
    hopper::HoldSums(sums);
  }

  __device__ static __forceinline__ void Multiply(const Params& params, Shared& shared,
                                                  State& state, uint32_t thread,
                                                  float (&sums)[kSums]) {
    const uint32_t steps = StepsOf(params);
#pragma unroll 1
    for (uint32_t i = 0; i < steps; ++i) {
      const uint32_t barrier = state.stage * sizeof(uint64_t);
      hopper::BarrierWait(hopper::SharedAddress(shared.full) + barrier, state.parity);
      MultiplyStage(hopper::SharedAddress(shared.stages) + state.stage * kStageBytes, i > 0, sums);
      if (thread % 32 == 0) hopper::BarrierArrive(hopper::SharedAddress(shared.empty) + barrier);
      Advance(state);
    }
  }

  __device__ static __forceinline__ void Store(const Params& params, uint32_t panel,
                                               uint32_t thread, const float (&sums)[kSums]) {
    const uint32_t warp = thread / 32;
    const uint32_t lane = thread % 32;
    const bool second = StoresSecondRow(lane);
#pragma unroll
    for (uint32_t r = 0; r < kSums; r += 2) {
      const float mine = second ? sums[r + 1] : sums[r];
      const float got = __shfl_xor_sync(~0U, second ? sums[r] : sums[r + 1], kExchangedLanes);
      const OutputWord word = OutputWordOf(warp, lane, r);
      if (word.row >= params.m) continue;
      uint16_t* const to =
          params.c + static_cast<uint64_t>(word.row) * params.n + panel * kColumns + word.column;
      *reinterpret_cast<uint32_t*>(to) =
          second ? mma::PackBf16(got, mine) : mma::PackBf16(mine, got);
    }
  }
};

struct gpushare_gemm_skinny : Gemm<kGemmSkinnyRing.stages, kGemmSkinnyRing.depth> {
  static constexpr int kWorkersPerSm = 1;
};

struct gpushare_gemm_skinny_compact
    : Gemm<kGemmSkinnyCompactRing.stages, kGemmSkinnyCompactRing.depth> {
  static constexpr int kWorkersPerSm = 2;  // one is 15 % slower, three are not faster
  static_assert(sizeof(Shared) <= kGemmSkinnyCompactSharedBytes,
                "it fits beside a worker of gemm_roomy");
};

}  // namespace gemm_skinny

using gemm_skinny::gpushare_gemm_skinny;
using gemm_skinny::gpushare_gemm_skinny_compact;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_TENSOR_GEMM_SKINNY_CUH_
