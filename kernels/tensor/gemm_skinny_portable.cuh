// gemm_skinny for GPUs that are not sm_90a (gemm_skinny.cuh is): cp.async, from sm_80 on. One
// worker of 128 threads an SM, at most 192 registers each (24 K of an SM) and 58 KB of shared
// memory.
//
// A block task is all of k for 64 columns of C, with the arithmetic of m = 32 and n = k = 8192 on
// an H200 (4.3 TB/s from DRAM, about 7 TB/s from L2, 132 SMs):
// - Each block task reads all activations, 512 KB, from L2. With 16, 32 or 64 columns that is 268,
//   134 or 67 MB beside the weights' 134 MB, which pass L2 too: 57, 38 or 29 us at L2's rate,
//   against 31 us at DRAM's. So 64 columns are the fewest that leave DRAM the bound, and 128 would
//   be block tasks for 64 SMs only.
// - 128 block tasks on 132 SMs: 33 KB a microsecond each, and a loaded DRAM answers in about one.
//   48 KB are in flight, six of seven stages of 8 KB, so an SM also makes good for neighbours that
//   begin or end a block task. Registers could not hold that: the sums take 64 a thread already,
//   which is why there are four warps and not eight.
// - Weights go by cp.async to a place of their lane, which reads them back as fragments of mma: no
//   ldmatrix, no barrier, no permutation of banks. Activations come from L2 straight to registers,
//   kAhead windows ahead. How lanes share out a window of k: gemm_skinny_portable_layout.h.
// - The four warps take windows of k in turn, so that a block reads 256 contiguous bytes of a row;
//   their sums are added in the order of warps.

#ifndef GPUSHARE_KERNELS_TENSOR_GEMM_SKINNY_PORTABLE_CUH_
#define GPUSHARE_KERNELS_TENSOR_GEMM_SKINNY_PORTABLE_CUH_

#include "kernels/tensor/gemm_skinny.h"
#include "kernels/tensor/gemm_skinny_portable_layout.h"
#include "kernels/tensor/mma.cuh"

namespace gpushare::kernels {
namespace gemm_skinny_portable {

static_assert(kSkinnyColumns == kColumns && kSkinnyRowsMax == kRowsMax, "one shape of block tasks");
static_assert(kSkinnyKMultiple % kWindow == 0, "whole windows");

constexpr uint32_t kAhead = 3;  // windows of activations in registers
constexpr uint32_t kColumnTiles = kColumns / 16;
constexpr uint32_t kHalfTiles = kColumnTiles / kHalves;

struct Shared {
  alignas(128) unsigned char stages[kWarps * kWarpBytes];
};

template <uint32_t kRowTiles>
using Sums = float[kColumnTiles][kRowTiles][4];
template <uint32_t kRowTiles>
using Activations = uint4[kRowTiles];

// What a lane reads: columns and rows lane / 4 + 8 i, windows warp + 4 r.
struct Lane {
  const uint16_t* weights;
  const uint16_t* activations;
  uint64_t eight_rows;  // elements
  uint32_t windows;     // of the whole row
  uint32_t warp;
  uint32_t stages;  // shared address of the lane's places

  __device__ __forceinline__ uint32_t WindowOf(uint32_t round) const {
    return round * kWarps + warp;
  }
};

__device__ __forceinline__ Lane LaneOf(const GemmSkinnyParams& params, const Shared& shared,
                                       uint32_t panel, uint32_t thread) {
  const uint32_t lane = thread % 32;
  const uint32_t warp = thread / 32;
  const uint32_t first = warp * kWindow + LaneElement(lane);
  Lane made;
  made.weights =
      params.weights + static_cast<uint64_t>(panel * kColumns + lane / 4) * params.k + first;
  made.activations = params.activations + static_cast<uint64_t>(lane / 4) * params.k + first;
  made.eight_rows = static_cast<uint64_t>(params.k) * 8;
  made.windows = params.k / kWindow;
  made.warp = warp;
  made.stages = mma::SharedAddress(shared.stages) + warp * kWarpBytes + LoadAt(0, lane);
  return made;
}

// Windows past the end of k are zeros: they change no sum.
__device__ __forceinline__ void CopyWeights(const Lane& lane, uint32_t round, uint32_t half,
                                            uint32_t slot) {
  const bool valid = lane.WindowOf(round) < lane.windows;
  const uint16_t* from = lane.weights + static_cast<uint64_t>(round) * (kWarps * kWindow) +
                         half * kStageLoads * lane.eight_rows;
#pragma unroll
  for (uint32_t i = 0; i < kStageLoads; ++i) {
    mma::CopyAsync(lane.stages + slot + LoadAt(i, 0), from, valid);
    from += lane.eight_rows;
  }
  mma::CommitCopies();
}

template <uint32_t kRowTiles>
__device__ __forceinline__ void LoadActivations(const Lane& lane, uint32_t round,
                                                Activations<kRowTiles>& to) {
  const bool valid = lane.WindowOf(round) < lane.windows;
  const uint16_t* from = lane.activations + static_cast<uint64_t>(round) * (kWarps * kWindow);
#pragma unroll
  for (uint32_t j = 0; j < kRowTiles; ++j) {
    to[j] = valid ? mma::LoadPastL1(from) : make_uint4(0, 0, 0, 0);
    from += lane.eight_rows;
  }
}

// Sixteen columns are mma's rows, eight rows of A its columns.
template <uint32_t kRowTiles>
__device__ __forceinline__ void MultiplyTile(float (&sums)[kRowTiles][4], const uint4& upper,
                                             const uint4& lower,
                                             const Activations<kRowTiles>& activations) {
#pragma unroll
  for (uint32_t j = 0; j < kRowTiles; ++j) {
    const uint4& row = activations[j];
    mma::Mma(sums[j], upper.x, lower.x, upper.y, lower.y, row.x, row.y);
  }
#pragma unroll
  for (uint32_t j = 0; j < kRowTiles; ++j) {
    const uint4& row = activations[j];
    mma::Mma(sums[j], upper.z, lower.z, upper.w, lower.w, row.z, row.w);
  }
}

template <uint32_t kRowTiles>
__device__ __forceinline__ void Accumulate(const Lane& lane, Sums<kRowTiles>& sums) {
  const uint32_t rounds = (lane.windows + kWarps - 1) / kWarps;
  Activations<kRowTiles> activations[kAhead];
#pragma unroll
  for (uint32_t stage = 0; stage + 1 < kStages; ++stage) {
    CopyWeights(lane, stage / kHalves, stage % kHalves, stage * kWarpStageBytes);
  }
#pragma unroll
  for (uint32_t i = 0; i < kAhead; ++i) LoadActivations<kRowTiles>(lane, i, activations[i]);
  uint32_t read = 0;
  uint32_t write = (kStages - 1) * kWarpStageBytes;
#pragma unroll 1
  for (uint32_t first = 0; first < rounds; first += kAhead) {
#pragma unroll
    for (uint32_t i = 0; i < kAhead; ++i) {
#pragma unroll
      for (uint32_t half = 0; half < kHalves; ++half) {
        // The newest stages may be under way. What is written over now was read in the stage
        // before, by this lane alone.
        mma::WaitCopies<kStages - 2>();
        constexpr uint32_t kNewest = kStages - 1;
        CopyWeights(lane, first + i + (half + kNewest) / kHalves, (half + kNewest) % kHalves,
                    write);
#pragma unroll
        for (uint32_t tile = 0; tile < kHalfTiles; ++tile) {
          const uint4 upper = mma::LoadShared(lane.stages + read + LoadAt(2 * tile, 0));
          const uint4 lower = mma::LoadShared(lane.stages + read + LoadAt(2 * tile + 1, 0));
          MultiplyTile<kRowTiles>(sums[half * kHalfTiles + tile], upper, lower, activations[i]);
        }
        write = read;
        read = read + kWarpStageBytes == kWarpBytes ? 0 : read + kWarpStageBytes;
      }
      LoadActivations<kRowTiles>(lane, first + i + kAhead, activations[i]);
    }
  }
  mma::WaitCopies<0>();  // zeros past the end, which must not land in the sums
}

template <uint32_t kRowTiles>
__device__ __forceinline__ void PutSums(const Sums<kRowTiles>& sums, float* to, uint32_t lane) {
#pragma unroll
  for (uint32_t i = 0; i < kColumnTiles; ++i) {
#pragma unroll
    for (uint32_t j = 0; j < kRowTiles; ++j) {
#pragma unroll
      for (uint32_t c = 0; c < 4; ++c) {
        const uint32_t row = j * 8 + lane % 4 * 2 + c % 2;
        const uint32_t column = i * 16 + c / 2 * 8 + lane / 4;
        to[SumAt(row, column)] = sums[i][j][c];
      }
    }
  }
}

// Four columns of a row a thread; warps in their order, so the bits are always the same.
__device__ __forceinline__ void AddAndStore(const GemmSkinnyParams& params, const Shared& shared,
                                            uint32_t panel, uint32_t thread) {
  constexpr uint32_t kFours = kColumns / 4;
  const uint32_t column = thread % kFours * 4;
#pragma unroll 1
  for (uint32_t row = thread / kFours; row < params.m; row += kThreadCount / kFours) {
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
    for (uint32_t warp = 0; warp < kWarps; ++warp) {
      const auto* partial = reinterpret_cast<const float*>(shared.stages + warp * kWarpBytes);
      const float4 more = *reinterpret_cast<const float4*>(partial + SumAt(row, column));
      sum = make_float4(sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w);
    }
    uint16_t* const to =
        params.c + static_cast<uint64_t>(row) * params.n + panel * kColumns + column;
    *reinterpret_cast<uint2*>(to) =
        make_uint2(mma::PackBf16(sum.x, sum.y), mma::PackBf16(sum.z, sum.w));
  }
}

template <uint32_t kRowTiles>
__device__ __forceinline__ void MultiplyPanel(const Lane& lane, Shared& shared, uint32_t thread) {
  Sums<kRowTiles> sums = {};
  Accumulate<kRowTiles>(lane, sums);
  // The other lanes of the warp may still read their stages.
  __syncwarp();
  PutSums<kRowTiles>(sums, reinterpret_cast<float*>(shared.stages + lane.warp * kWarpBytes),
                     thread % 32);
}

struct gpushare_gemm_skinny_portable {
  using Params = GemmSkinnyParams;
  using Shared = gemm_skinny_portable::Shared;
  struct State {};
  static constexpr int kThreads = kThreadCount;
  static constexpr int kMinBlocksPerSm = 2;  // three would spill on some GPUs
  static constexpr int kWorkersPerSm = 1;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const uint32_t panel = ctx.block_index() % params.panels;
    const Lane lane = LaneOf(params, shared, panel, ctx.thread());
    if (params.m == 8) {
      MultiplyPanel<1>(lane, shared, ctx.thread());
    } else if (params.m == 16) {
      MultiplyPanel<2>(lane, shared, ctx.thread());
    } else {
      MultiplyPanel<4>(lane, shared, ctx.thread());
    }
    ctx.sync();
    AddAndStore(params, shared, panel, ctx.thread());
  }
};
}  // namespace gemm_skinny_portable

using gemm_skinny_portable::gpushare_gemm_skinny_portable;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_TENSOR_GEMM_SKINNY_PORTABLE_CUH_
