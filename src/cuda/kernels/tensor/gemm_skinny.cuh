// gemm_skinny: the GEMM of decoding, m = 8, 16 or 32 rows against weights that are read once. Bound
// by DRAM. sm_90a; other GPUs run gemm_skinny_portable.cuh.
//
// A block task is all of k for 64 columns of C, so that the activations, which every block task
// reads from L2, are half of what the weights are (gemm_skinny_portable.cuh has the arithmetic).
// - Weights and activations come by TMA into a ring of stages: bytes in flight cost no registers,
//   and one instruction asks for 8 KB. A stage has kDepth k blocks of 64, each a swizzled box of
//   weights and one of activations: a barrier is waited for once in kDepth blocks.
// - Panels begin at different k blocks, and L2 gives up weights first, so that activations stay.
// - A producer warp's first thread loads. It is the first of the part, so a worker claims its next
//   block task while the consumers still add and store.
// - Each of the two windows of a k block is multiplied by two of four consumer warps, half of the
//   columns each: few sums, few registers. Consumers are mma.sync's: wgmma's 64 rows would be half
//   empty. kGroups of four warps take the k blocks of a stage in turn.
//
// Invariants
// - full[s] completes when the boxes of stage s are there; empty[s] when all consumer warps have
//   read them. The producer's first round finds every stage empty (parity 1 of a fresh barrier).
// - A consumer's reads are over before it frees a stage: a fence stands between. TMA writes by
//   another proxy than loads read by, and an arrival does not wait for loads that are under way;
//   without the fence, results were wrong beside neighbours that keep an SM's load path busy.
// - Partial sums take the place of the stages, after every consumer has read its last one and
//   before the worker loop's barrier, which the producer's next load is behind.
// - Sums are added in an order that the panel alone gives.
//
// Two forms: gpushare_gemm_skinny has the fastest ring; gpushare_gemm_skinny_compact has one that
// fits in the shared memory which gpushare_gemm_roomy leaves of an SM (gemm_skinny.h).

#ifndef GPUSHARE_SRC_CUDA_KERNELS_TENSOR_GEMM_SKINNY_CUH_
#define GPUSHARE_SRC_CUDA_KERNELS_TENSOR_GEMM_SKINNY_CUH_

#include <cstdint>
#include <cstdio>

#include "src/cuda/kernels/tensor/gemm_skinny.h"
#include "src/cuda/kernels/tensor/gemm_skinny_layout.h"
#include "src/cuda/kernels/tensor/gemm_skinny_store.cuh"
#include "src/cuda/kernels/tensor/gemm_tile.h"
#include "src/cuda/kernels/tensor/hopper.cuh"
#include "src/cuda/kernels/tensor/mma.cuh"

namespace gpushare::kernels {
namespace gemm_skinny {

static_assert(kSkinnyColumns == kColumns && kSkinnyRowsMax == kRows, "one shape of block tasks");

constexpr int kFirstConsumer = 32;  // behind the producer's warp
constexpr uint32_t kRowTiles = kRows / 8;
constexpr uint32_t kTiles = kWarpColumns / 16;
constexpr uint32_t kWeightBytes = kColumns * kSwizzleRowBytes;
constexpr uint32_t kBlockBytes = kWeightBytes + kRows * kSwizzleRowBytes;

struct State {
  uint32_t stage;
  uint32_t parity;
};

using Activations = uint4[kRowTiles];
using Sums = float[kTiles][kRowTiles][4];

template <uint32_t kStages, uint32_t kDepth, uint32_t kGroups = 1>
struct Gemm {
  using Params = GemmSkinnyParams;
  using State = gemm_skinny::State;

  static constexpr uint32_t kConsumerWarps = kGroupWarps * kGroups;
  static constexpr int kConsumers = 32 * kConsumerWarps;
  static constexpr uint32_t kPartials = kWindows * kGroups;
  static constexpr uint32_t kStageBytes = kDepth * kBlockBytes;
  static constexpr int kThreads = kFirstConsumer + kConsumers;
  static constexpr int kExtraBarriers = 1;
  static constexpr int kWorkersPerSm = 1;

  struct alignas(kSwizzleBytes) Shared {
    unsigned char stages[kStages][kStageBytes];
    uint64_t full[kStages];
    uint64_t empty[kStages];
  };
  static_assert(kDepth % kGroups == 0, "groups have as many k blocks of a stage each");
  static_assert(kPartials * kPartialWords * sizeof(float) <= kStages * kStageBytes,
                "partial sums take the place of the stages");

  template <class Ctx>
  __device__ static void Enter(const Params& params, Shared& shared, State& state, Ctx& ctx) {
#if GPUSHARE_WGMMA
    state.stage = 0;
    // The producer waits for the phase before the first, which counts as complete.
    state.parity = ctx.thread() == 0 ? 1 : 0;
    if (ctx.thread() == 0) {
      hopper::PrefetchMap(&params.activations_map);
      hopper::PrefetchMap(&params.weights_map);
      hopper::RingInit(shared.full, shared.empty, kConsumerWarps);
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
    StorePartials<kPartials, kPartialWords, kSumRowWords, kConsumers>(
        params, reinterpret_cast<const float*>(shared.stages), panel, thread);
    // TMA writes over the sums next, behind the barrier of the worker loop.
    hopper::ProxyFence();
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
  // What the last stage has past the end of k are zeros, which change no sum.
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
#pragma unroll
      for (uint32_t d = 0; d < kDepth; ++d) {
        const auto k = static_cast<int32_t>((step * kDepth + d) * kSwizzleColumns);
        const uint32_t block = to + d * kBlockBytes;
        hopper::LoadBoxOnce(block, &params.weights_map, full, k, column, policy);
        hopper::LoadBox(block + kWeightBytes, &params.activations_map, full, k, 0);
      }
      Advance(state);
      if (++step == steps) step = 0;
    }
  }

  // The products of a warp's columns of a k block with the activations of its window. Sixteen
  // columns are mma's rows, eight rows of A its columns.
  __device__ static __forceinline__ void MultiplyBlock(uint32_t weights,
                                                       const Activations& activations, Sums& sums) {
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

  // A consumer warp: its products of all stages.
  __device__ static __forceinline__ void Accumulate(const Params& params, Shared& shared,
                                                    State& state, uint32_t warp, uint32_t lane,
                                                    Sums& sums) {
    const uint32_t steps = StepsOf(params);
    const uint32_t at = LaneByte(WindowOf(warp), lane);
    const uint32_t columns_at = FirstColumnOf(warp) * kSwizzleRowBytes + at;
    const uint32_t group = GroupOf(warp);
#pragma unroll 1
    for (uint32_t i = 0; i < steps; ++i) {
      const uint32_t barrier = state.stage * sizeof(uint64_t);
      const uint32_t stage = hopper::SharedAddress(shared.stages) + state.stage * kStageBytes;
      hopper::BarrierWait(hopper::SharedAddress(shared.full) + barrier, state.parity);
#pragma unroll
      for (uint32_t turn = 0; turn < kDepth / kGroups; ++turn) {
        const uint32_t block = stage + BlockOf(turn, group, kGroups) * kBlockBytes;
        Activations activations;
#pragma unroll
        for (uint32_t j = 0; j < kRowTiles; ++j) {
          activations[j] = mma::LoadShared(block + kWeightBytes + at + j * kSwizzleBytes);
        }
        MultiplyBlock(block + columns_at, activations, sums);
      }
      // Each lane's, before one of them arrives for all: its own loads are over.
      hopper::ProxyFence();
      __syncwarp();
      if (lane == 0) hopper::BarrierArrive(hopper::SharedAddress(shared.empty) + barrier);
      Advance(state);
    }
  }

  __device__ static __forceinline__ void PutSums(Shared& shared, uint32_t warp, uint32_t lane,
                                                 const Sums& sums) {
    float* const to = reinterpret_cast<float*>(shared.stages) + PartialOf(warp) * kPartialWords;
    const uint32_t column = FirstColumnOf(warp);
#pragma unroll
    for (uint32_t i = 0; i < kTiles; ++i) {
#pragma unroll
      for (uint32_t j = 0; j < kRowTiles; ++j) {
#pragma unroll
        for (uint32_t c = 0; c < 4; ++c) {
          to[SumAt(j * 8 + SumRow(lane, c), column + i * 16 + SumColumn(lane, c))] = sums[i][j][c];
        }
      }
    }
  }
};

struct gpushare_gemm_skinny
    : Gemm<kGemmSkinnyRing.stages, kGemmSkinnyRing.depth, kGemmSkinnyRing.groups> {};

struct gpushare_gemm_skinny_compact
    : Gemm<kGemmSkinnyCompactRing.stages, kGemmSkinnyCompactRing.depth,
           kGemmSkinnyCompactRing.groups> {
  static_assert(sizeof(Shared) <= kGemmSkinnyCompactSharedBytes,
                "it fits beside a worker of gemm_roomy");
};

}  // namespace gemm_skinny

using gemm_skinny::gpushare_gemm_skinny;
using gemm_skinny::gpushare_gemm_skinny_compact;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_SRC_CUDA_KERNELS_TENSOR_GEMM_SKINNY_CUH_
