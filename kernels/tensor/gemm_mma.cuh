// gemm_mma: C[m, n] = A[m, k] * B[n, k]^T in bf16 with float32 sums, by mma.sync, for any GPU from
// sm_80 on. A block task is a tile of 128 x 128 of C.
//
// Four stages of 32 columns of k come by cp.async, three of them ahead of the one in use, with one
// barrier a stage. Eight warps compute 64 x 32 each, which is 64 sums a thread and leaves room for
// two workers an SM: one computes while the other waits at its barrier. The stages take 64 KB.
// Per stage and worker ldmatrix reads 48 KB and cp.async writes 16 KB, 512 clocks at 128 bytes,
// for 2^20 operations: shared memory bounds the form at 2048 operations a clock and SM, half of
// what wgmma's operands in shared memory allow. Layout and fragments: gemm_mma_layout.h.
//
// Tiles are taken in columns of kGroupM tiles: the 264 that an H200 works on at a time then read 16
// panels of A and about as many of B, which stay in L2.

#ifndef GPUSHARE_KERNELS_TENSOR_GEMM_MMA_CUH_
#define GPUSHARE_KERNELS_TENSOR_GEMM_MMA_CUH_

#include "kernels/tensor/gemm_mma.h"
#include "kernels/tensor/gemm_mma_layout.h"
#include "kernels/tensor/gemm_tile.h"
#include "kernels/tensor/mma.cuh"

namespace gpushare::kernels {
namespace gemm_mma {

static_assert(kGemmMmaTile == kTileM && kGemmMmaTile == kTileN, "tiles are square");

constexpr uint32_t kThreadCount = 256;
constexpr uint32_t kGroupM = 16;
constexpr uint32_t kTilesM = kWarpM / kMmaM;  // mma tiles of a warp
constexpr uint32_t kTilesN = kWarpN / kMmaN;
constexpr uint32_t kRowsApart = kThreadCount / kRowChunks;  // rows that one copy of all covers
constexpr uint32_t kOutRowsApart = kThreadCount / kOutChunks;

struct Tile {
  uint32_t row;
  uint32_t column;
};

__device__ __forceinline__ Tile TileOf(const GemmMmaParams& params, uint32_t block_task) {
  const uint32_t index = block_task % (params.tiles_m * params.tiles_n);
  const TilePlace place = PlaceOfTile(index, params.tiles_m, params.tiles_n, kGroupM);
  return {place.m * kTileM, place.n * kTileN};
}

// What a thread copies of every stage: one chunk of rows r and r + kRowsApart of A and of B.
struct Source {
  const uint16_t* a[2];
  const uint16_t* b[2];
  uint32_t column;  // of k, of the next stage
  uint32_t k;
  uint32_t to;  // byte within an operand's part of a stage
};

// A cut tile reads its last row again in place of missing rows, whose results are not stored.
__device__ __forceinline__ Source SourceOf(const GemmMmaParams& params, const Tile& tile,
                                           uint32_t thread) {
  const uint32_t row = thread / kRowChunks;
  const uint32_t chunk = thread % kRowChunks;
  Source source;
  source.column = chunk * kChunkElements;
  source.k = params.k;
  source.to = ChunkAt(row, chunk);
#pragma unroll
  for (uint32_t i = 0; i < 2; ++i) {
    const uint32_t row_a = min(tile.row + row + i * kRowsApart, params.m - 1);
    const uint32_t row_b = min(tile.column + row + i * kRowsApart, params.n - 1);
    source.a[i] = params.a + static_cast<uint64_t>(row_a) * params.k + source.column;
    source.b[i] = params.b + static_cast<uint64_t>(row_b) * params.k + source.column;
  }
  return source;
}

// Past the end of k it copies zeros.
__device__ __forceinline__ void CopyStage(Source* source, uint32_t stage) {
  const bool valid = source->column < source->k;
  const uint32_t to = stage + source->to;
#pragma unroll
  for (uint32_t i = 0; i < 2; ++i) {
    const uint32_t row = i * kRowsApart * kRowBytes;  // the permutation repeats within it
    mma::CopyAsync(to + row, source->a[i], valid);
    mma::CopyAsync(to + row + kOperandBytes, source->b[i], valid);
    source->a[i] += kTileK;
    source->b[i] += kTileK;
  }
  source->column += kTileK;
}

using Sums = float[kTilesM][kTilesN][4];

__device__ __forceinline__ void MultiplyStage(Sums& sums, uint32_t stage_a, uint32_t stage_b) {
#pragma unroll
  for (uint32_t k16 = 0; k16 < kTileK / kMmaK; ++k16) {
    uint32_t b[kTilesN / 2][4];
#pragma unroll
    for (uint32_t j = 0; j < kTilesN / 2; ++j) {
      mma::LoadMatrices(b[j], (stage_b ^ (k16 * kNextK16)) + j * 2 * kMmaN * kRowBytes);
    }
#pragma unroll
    for (uint32_t i = 0; i < kTilesM; ++i) {
      uint32_t a[4];
      mma::LoadMatrices(a, (stage_a ^ (k16 * kNextK16)) + i * kMmaM * kRowBytes);
#pragma unroll
      for (uint32_t j = 0; j < kTilesN; ++j) {
        mma::Mma(sums[i][j], a[0], a[1], a[2], a[3], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
      }
    }
  }
}

// The sums as bf16 into the stages' place.
__device__ __forceinline__ void PutOutTile(const Sums& sums, uint32_t stages, uint32_t warp_row,
                                           uint32_t warp_column, uint32_t lane) {
#pragma unroll
  for (uint32_t i = 0; i < kTilesM; ++i) {
#pragma unroll
    for (uint32_t j = 0; j < kTilesN; ++j) {
      const uint32_t chunk = (warp_column + j * kMmaN) / kChunkElements;
#pragma unroll
      for (uint32_t half = 0; half < 2; ++half) {
        const uint32_t row = warp_row + i * kMmaM + half * 8 + lane / 4;
        mma::StoreShared(stages + OutChunkAt(row, chunk) + lane % 4 * 4,
                         mma::PackBf16(sums[i][j][half * 2], sums[i][j][half * 2 + 1]));
      }
    }
  }
}

__device__ __forceinline__ void StoreOutTile(const GemmMmaParams& params, const Tile& tile,
                                             uint32_t stages, uint32_t thread) {
  const uint32_t chunk = thread % kOutChunks;
  const uint32_t column = tile.column + chunk * kChunkElements;
  if (column >= params.n) return;
#pragma unroll
  for (uint32_t i = 0; i < kTileM / kOutRowsApart; ++i) {
    const uint32_t row = thread / kOutChunks + i * kOutRowsApart;
    if (tile.row + row >= params.m) return;
    const uint4 value = mma::LoadShared(stages + OutChunkAt(row, chunk));
    uint16_t* const to = params.c + static_cast<uint64_t>(tile.row + row) * params.n + column;
    *reinterpret_cast<uint4*>(to) = value;
  }
}

struct gpushare_gemm_mma {
  using Params = GemmMmaParams;
  struct Shared {
    alignas(128) unsigned char stages[kStages * kStageBytes];
  };
  struct State {};
  static constexpr int kThreads = kThreadCount;
  static constexpr int kMinBlocksPerSm = 2;
  static constexpr int kWorkersPerSm = 2;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const Tile tile = TileOf(params, ctx.block_index());
    const uint32_t stages = mma::SharedAddress(shared.stages);
    Source source = SourceOf(params, tile, ctx.thread());
#pragma unroll
    for (uint32_t s = 0; s + 1 < kStages; ++s) {
      CopyStage(&source, stages + s * kStageBytes);
      mma::CommitCopies();
    }
    const uint32_t lane = ctx.thread() % 32;
    const uint32_t warp = ctx.thread() / 32;
    const uint32_t warp_row = warp % kWarpsM * kWarpM;
    const uint32_t warp_column = warp / kWarpsM * kWarpN;
    const uint32_t from_a = stages + ChunkAt(warp_row + LaneRowA(lane), LaneChunkA(lane));
    const uint32_t from_b =
        stages + kOperandBytes + ChunkAt(warp_column + LaneRowB(lane), LaneChunkB(lane));
    Sums sums = {};
    const uint32_t rounds = (params.k + kTileK - 1) / kTileK;
    uint32_t read = 0;
    uint32_t write = (kStages - 1) * kStageBytes;
#pragma unroll 1
    for (uint32_t round = 0; round < rounds; ++round) {
      // Every thread's part of this stage has arrived, and every thread has left the stage that is
      // written next.
      mma::WaitCopies<kStages - 2>();
      ctx.sync();
      CopyStage(&source, stages + write);
      mma::CommitCopies();
      MultiplyStage(sums, from_a + read, from_b + read);
      write = read;
      read = read + kStageBytes == kStages * kStageBytes ? 0 : read + kStageBytes;
    }
    mma::WaitCopies<0>();  // zeros past the end, which must not land in the output tile
    ctx.sync();
    PutOutTile(sums, stages, warp_row, warp_column, lane);
    ctx.sync();
    StoreOutTile(params, tile, stages, ctx.thread());
  }
};
}  // namespace gemm_mma

using gemm_mma::gpushare_gemm_mma;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_TENSOR_GEMM_MMA_CUH_
