// gemm_skinny with TMA, sm_90a: faster than the catalogue's cp.async form alone, and wrong beside
// neighbours that keep an SM's load path busy, which is why it is not the catalogue's. The forms
// here are what a run on a GPU decides about.
//
// A block task is all of k for kColumns columns of C. A producer warp's first thread loads stages
// of kDepth k blocks of 64, each a swizzled box of weights and one of activations; two of four
// consumer warps multiply each window of 32 values of k, half of the columns each.
//
// Invariants
// - full[s] completes when the boxes of stage s are there; empty[s] when the four consumer warps
//   have read them. The producer's first round finds every stage empty (parity 1 of a fresh
//   barrier).
// - With Release::kFenced a consumer's reads are over before it frees a stage: TMA writes by
// another
//   proxy than loads read by, and an arrival does not wait for loads that are under way.
// - Partial sums take the place of the stages, after every consumer has read its last one and
// before
//   the worker loop's barrier, which the producer's next load is behind.
// - Sums are added in an order that the panel alone gives.

#ifndef GPUSHARE_BENCHMARKS_GPU_SKINNY_ALTERNATIVES_CUH_
#define GPUSHARE_BENCHMARKS_GPU_SKINNY_ALTERNATIVES_CUH_

#include <cstdint>
#include <cstdio>

#include "benchmarks/gpu/skinny_alternatives.h"
#include "src/cuda/kernels/tensor/gemm_tile.h"
#include "src/cuda/kernels/tensor/hopper.cuh"
#include "src/cuda/kernels/tensor/mma.cuh"

namespace gpushare::kernels::skinny {

enum class Release : uint8_t { kPlain, kFenced };

constexpr uint32_t kRows = kSkinnyTmaRows;
constexpr uint32_t kWindows = 2;  // of 32 values of k, in a row of a box
constexpr uint32_t kWords = 4;    // of a lane's 16 bytes
constexpr uint32_t kRowTiles = kRows / 8;
constexpr uint32_t kConsumerWarps = 4;
constexpr int kConsumers = 128;
constexpr int kFirstConsumer = 32;

// Lane {g = lane / 4, t = lane % 4} takes the 16 bytes 8t of a window, of row RowOf(g) of each
// group of eight: eight lanes read at once, and the rows of two g differ in bit 2, so that their
// swizzled chunks are in different halves of the banks.
__device__ __forceinline__ uint32_t RowOf(uint32_t index) { return index % 2 * 4 + index / 2; }

__device__ __forceinline__ uint32_t LaneByte(uint32_t window, uint32_t lane) {
  return SwizzledByte(RowOf(lane / 4), (window * 4 + lane % 4) * kWords);
}

struct State {
  uint32_t stage;
  uint32_t parity;
};

using Activations = uint4[kRowTiles];

#if GPUSHARE_WGMMA
__device__ __forceinline__ uint64_t EvictFirst() {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// As hopper::LoadBox, for bytes that nobody reads again.
__device__ __forceinline__ void LoadBoxOnce(uint32_t to, const void* map, uint32_t barrier,
                                            int32_t x, int32_t y, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "l"(policy)
      : "memory");
}
#endif

template <uint32_t kColumns, uint32_t kStages, uint32_t kDepth, Release kRelease>
struct Form {
  static constexpr uint32_t kWarpColumns = kColumns / 2;
  static constexpr uint32_t kTiles = kWarpColumns / 16;
  static constexpr uint32_t kWeightBytes = kColumns * kSwizzleRowBytes;
  static constexpr uint32_t kBlockBytes = kWeightBytes + kRows * kSwizzleRowBytes;
  static constexpr uint32_t kStageBytes = kDepth * kBlockBytes;
  // The eight columns and four rows of sums that a warp writes at once are in 32 banks.
  static constexpr uint32_t kSumRowWords = kColumns + 8;
  static constexpr uint32_t kPartialWords = kRows * kSumRowWords;
  static_assert(kWindows * kPartialWords * sizeof(float) <= kStages * kStageBytes,
                "partial sums take the place of the stages");
  using Sums = float[kTiles][kRowTiles][4];

  using Params = SkinnyTmaParams;
  using State = skinny::State;
  struct alignas(kSwizzleBytes) Shared {
    unsigned char stages[kStages][kStageBytes];
    uint64_t full[kStages];
    uint64_t empty[kStages];
  };
  static constexpr int kThreads = kFirstConsumer + kConsumers;
  static constexpr int kExtraBarriers = 1;
  static constexpr int kWorkersPerSm = 1;

  template <class Ctx>
  __device__ static void Enter(const Params& params, Shared& shared, State& state, Ctx& ctx) {
#if GPUSHARE_WGMMA
    state.stage = 0;
    // The producer waits for the phase before the first, which counts as complete.
    state.parity = ctx.thread() == 0 ? 1 : 0;
    if (ctx.thread() == 0) {
      hopper::PrefetchMap(&params.activations);
      hopper::PrefetchMap(&params.weights);
      for (uint32_t s = 0; s < kStages; ++s) {
        hopper::BarrierInit(hopper::SharedAddress(&shared.full[s]), 1);
        hopper::BarrierInit(hopper::SharedAddress(&shared.empty[s]), kConsumerWarps);
      }
      hopper::BarrierInitFence();
    }
    ctx.sync();
#endif
  }

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State& state, Ctx& ctx) {
#if GPUSHARE_WGMMA
    const uint32_t panel = ctx.block_index() % params.panels;
    // The same for a whole warp, and the compiler is told so.
    const uint32_t warp = __shfl_sync(~0U, ctx.thread() / 32, 0);
    if (warp == 0) {
      if (ctx.thread() == 0) LoadPanel(params, shared, state, panel);
      __syncwarp();
      return;
    }
    const uint32_t thread = ctx.thread() - kFirstConsumer;
    const uint32_t consumer = warp - kFirstConsumer / 32;
    Sums sums = {};
    Accumulate(params, shared, state, consumer, thread % 32, sums);
    // Every consumer has read its last stage.
    ctx.template SyncSome<0, kFirstConsumer, kConsumers>();
    PutSums(shared, consumer, thread % 32, sums);
    ctx.template SyncSome<0, kFirstConsumer, kConsumers>();
    AddAndStore(params, shared, panel, thread);
    // TMA writes over the sums next, behind the barrier of the worker loop.
    hopper::StoreFence();
#else
    if (ctx.thread() == 0) printf("gpushare: this GEMM needs compute capability 9.0a.\n");
    __trap();
#endif
  }

  template <class Ctx>
  __device__ static void Leave(const Params&, Shared& shared, State&, Ctx& ctx) {
#if GPUSHARE_WGMMA
    ctx.sync();
    if (ctx.thread() != 0) return;
    for (uint32_t s = 0; s < kStages; ++s) {
      hopper::BarrierInvalidate(hopper::SharedAddress(&shared.full[s]));
      hopper::BarrierInvalidate(hopper::SharedAddress(&shared.empty[s]));
    }
#endif
  }

#if GPUSHARE_WGMMA
 private:
  __device__ __forceinline__ static void Advance(State& state) {
    if (++state.stage < kStages) return;
    state.stage = 0;
    state.parity ^= 1;
  }

  // The producer's thread: all k blocks of the panel, from one of its own on, so that panels that
  // run at the same time read different activations.
  __device__ __forceinline__ static void LoadPanel(const Params& params, Shared& shared,
                                                   State& state, uint32_t panel) {
    const uint32_t steps = params.k_blocks / kDepth;
    const auto column = static_cast<int32_t>(panel * kColumns);
    const uint64_t policy = EvictFirst();
    uint32_t step = panel % steps;
#pragma unroll 1
    for (uint32_t i = 0; i < steps; ++i) {
      const uint32_t barrier = state.stage * sizeof(uint64_t);
      const uint32_t full = hopper::SharedAddress(shared.full) + barrier;
      const uint32_t to = hopper::SharedAddress(shared.stages) + state.stage * kStageBytes;
      hopper::BarrierWait(hopper::SharedAddress(shared.empty) + barrier, state.parity);
      hopper::BarrierArriveExpect(full, kStageBytes);
#pragma unroll
      for (uint32_t d = 0; d < kDepth; ++d) {
        const auto k = static_cast<int32_t>((step * kDepth + d) * kSwizzleColumns);
        LoadBoxOnce(to + d * kBlockBytes, &params.weights, full, k, column, policy);
        hopper::LoadBox(to + d * kBlockBytes + kWeightBytes, &params.activations, full, k, 0);
      }
      Advance(state);
      if (++step == steps) step = 0;
    }
  }

  // The products of a warp's columns with the activations of its window. Sixteen columns are mma's
  // rows, eight rows of A its columns.
  __device__ __forceinline__ static void Multiply(uint32_t weights, const Activations& activations,
                                                  Sums& sums) {
#pragma unroll
    for (uint32_t tile = 0; tile < kTiles; ++tile) {
      const uint4 upper = mma::LoadShared(weights + 2 * tile * kSwizzleBytes);
      const uint4 lower = mma::LoadShared(weights + (2 * tile + 1) * kSwizzleBytes);
#pragma unroll
      for (uint32_t j = 0; j < kRowTiles; ++j) {
        mma::Mma(sums[tile][j], upper.x, lower.x, upper.y, lower.y, activations[j].x,
                 activations[j].y);
      }
#pragma unroll
      for (uint32_t j = 0; j < kRowTiles; ++j) {
        mma::Mma(sums[tile][j], upper.z, lower.z, upper.w, lower.w, activations[j].z,
                 activations[j].w);
      }
    }
  }

  __device__ __forceinline__ static void Accumulate(const Params& params, Shared& shared,
                                                    State& state, uint32_t warp, uint32_t lane,
                                                    Sums& sums) {
    const uint32_t steps = params.k_blocks / kDepth;
    const uint32_t at = LaneByte(warp % kWindows, lane);
    const uint32_t columns_at = warp / kWindows * kWarpColumns * kSwizzleRowBytes + at;
#pragma unroll 1
    for (uint32_t i = 0; i < steps; ++i) {
      const uint32_t barrier = state.stage * sizeof(uint64_t);
      const uint32_t stage = hopper::SharedAddress(shared.stages) + state.stage * kStageBytes;
      hopper::BarrierWait(hopper::SharedAddress(shared.full) + barrier, state.parity);
#pragma unroll
      for (uint32_t d = 0; d < kDepth; ++d) {
        const uint32_t block = stage + d * kBlockBytes;
        Activations activations;
#pragma unroll
        for (uint32_t j = 0; j < kRowTiles; ++j) {
          activations[j] = mma::LoadShared(block + kWeightBytes + at + j * kSwizzleBytes);
        }
        Multiply(block + columns_at, activations, sums);
      }
      if constexpr (kRelease == Release::kFenced) hopper::StoreFence();
      __syncwarp();
      if (lane == 0) hopper::BarrierArrive(hopper::SharedAddress(shared.empty) + barrier);
      Advance(state);
    }
  }

  __device__ __forceinline__ static void PutSums(Shared& shared, uint32_t warp, uint32_t lane,
                                                 const Sums& sums) {
    float* const to = reinterpret_cast<float*>(shared.stages) + warp % kWindows * kPartialWords;
    const uint32_t column = warp / kWindows * kWarpColumns + RowOf(lane / 4);
#pragma unroll
    for (uint32_t i = 0; i < kTiles; ++i) {
#pragma unroll
      for (uint32_t j = 0; j < kRowTiles; ++j) {
#pragma unroll
        for (uint32_t c = 0; c < 4; ++c) {
          const uint32_t row = j * 8 + RowOf(lane % 4 * 2 + c % 2);
          to[row * kSumRowWords + column + i * 16 + c / 2 * 8] = sums[i][j][c];
        }
      }
    }
  }

  // Four columns of a row a thread; partial sums in their order, so the bits are always the same.
  __device__ __forceinline__ static void AddAndStore(const Params& params, const Shared& shared,
                                                     uint32_t panel, uint32_t thread) {
    constexpr uint32_t kFours = kColumns / 4;
    const auto* const partials = reinterpret_cast<const float*>(shared.stages);
    const uint32_t column = thread % kFours * 4;
#pragma unroll 1
    for (uint32_t row = thread / kFours; row < params.m; row += kConsumers / kFours) {
      float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
      for (uint32_t i = 0; i < kWindows; ++i) {
        const float4 more = *reinterpret_cast<const float4*>(partials + i * kPartialWords +
                                                             row * kSumRowWords + column);
        sum = make_float4(sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w);
      }
      uint16_t* const to =
          params.c + static_cast<uint64_t>(row) * params.n + panel * kColumns + column;
      *reinterpret_cast<uint2*>(to) =
          make_uint2(mma::PackBf16(sum.x, sum.y), mma::PackBf16(sum.z, sum.w));
    }
  }
#endif
};

}  // namespace gpushare::kernels::skinny

#endif  // GPUSHARE_BENCHMARKS_GPU_SKINNY_ALTERNATIVES_CUH_
