// sgemm: bound by the issue of fused multiply-adds. A block computes 128 x 128 of C, a thread 8 x 8
// in registers; stages of 8 in k come by cp.async into a ring in shared memory, three ahead, with
// one barrier a stage.
//
// A warp has 32 x 64 of the tile, and a thread four pieces of 4 x 4 in it. Lanes are dealt out so
// that a half of a warp reads 128 bytes at most and neighbours (of columns) or every second lane
// (of rows) the same 16: then shared memory serves a half at once, and not a quarter.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_SGEMM_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_SGEMM_CUH_

#include "benchmarks/kernels/compute/sgemm.h"

namespace gpushare::kernels {
namespace sgemm {

constexpr uint32_t kStages = 4;
constexpr uint32_t kPiece = 4;          // floats of a 16-byte read
constexpr uint32_t kRows = 2 * kPiece;  // of a thread
constexpr uint32_t kColumns = 2 * kPiece;
constexpr uint32_t kLanesAcross = 8;  // of a warp, 4 pieces of rows by 8 of columns
constexpr uint32_t kRowsApart = 16;   // between the two pieces of a thread
constexpr uint32_t kColumnsApart = 32;
constexpr uint32_t kWarpRows = 32;
constexpr uint32_t kWarpColumns = 64;
constexpr uint32_t kWarpsAcross = kSgemmTile / kWarpColumns;

struct Stage {
  float a[kSgemmDepth][kSgemmTile];
  float b[kSgemmDepth][kSgemmTile];
};

__device__ __forceinline__ void CopyPiece(float* to, const float* from) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
__device__ __forceinline__ void EndStage() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most kPending of the thread's stages are on their way.
template <uint32_t kPending>
__device__ __forceinline__ void WaitStages() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// What one thread copies of every stage: one piece of a row of A and of B. Offsets in floats: both
// factors are below 2^32 of them, and pointers would be spilled.
struct Copier {
  uint32_t a;
  uint32_t b;

  __device__ __forceinline__ void Copy(const SgemmParams& params, uint32_t thread, Stage& stage) {
    const uint32_t place = thread * kPiece;
    CopyPiece(&stage.a[0][0] + place, params.a + a);
    CopyPiece(&stage.b[0][0] + place, params.b + b);
    a += params.m * kSgemmDepth;
    b += params.n * kSgemmDepth;
  }
};

__device__ __forceinline__ void ReadPieces(const float* from, uint32_t apart, float to[kRows]) {
  const float4 first = *reinterpret_cast<const float4*>(from);
  const float4 second = *reinterpret_cast<const float4*>(from + apart);
  to[0] = first.x;
  to[1] = first.y;
  to[2] = first.z;
  to[3] = first.w;
  to[4] = second.x;
  to[5] = second.y;
  to[6] = second.z;
  to[7] = second.w;
}

struct gpushare_sgemm {
  using Params = SgemmParams;
  struct Shared {
    alignas(16) Stage stages[kStages];
  };
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 2;  // 128 registers: 64 of sums, and room to read ahead

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const uint32_t stages = params.k / kSgemmDepth;
    Copier copier = CopierOf(params, CornerOf(params, ctx.block_index()), ctx.thread());
#pragma unroll
    for (uint32_t s = 0; s + 1 < kStages; ++s) {
      if (s < stages) copier.Copy(params, ComputeAgain(ctx.thread()), shared.stages[s]);
      EndStage();
    }
    const Corner mine = PieceOf(ctx.thread());
    float sums[kRows][kColumns] = {};
#pragma unroll 1
    for (uint32_t s = 0; s < stages; ++s) {
      // s + 3 stages are requested, and the newest two may be on their way. All threads have left
      // the previous stage, so the stage that is three ahead takes its place. An empty stage counts
      // too.
      WaitStages<kStages - 2>();
      ctx.sync();
      if (s + kStages - 1 < stages)
        copier.Copy(params, ComputeAgain(ctx.thread()), shared.stages[(s + kStages - 1) % kStages]);
      EndStage();
      AddStage(shared.stages[s % kStages], mine, sums);
    }
    const Corner tile = CornerOf(params, ComputeAgain(ctx.block_index()));
    const Corner piece = PieceOf(ComputeAgain(ctx.thread()));
    Store(params.c + static_cast<uint64_t>(tile.row + piece.row) * params.n + tile.column +
              piece.column,
          params.n, sums);
  }

 private:
  struct Corner {
    uint32_t row;
    uint32_t column;
  };

  // Returns `value` so that the compiler computes what depends on it here, and does not keep it in
  // registers that the loop needs.
  __device__ __forceinline__ static uint32_t ComputeAgain(uint32_t value) {
    asm volatile("" : "+r"(value));
    return value;
  }

  // The block task's place in C.
  __device__ __forceinline__ static Corner CornerOf(const Params& params, uint32_t block_index) {
    const uint32_t tile = block_index % params.ring;
    const uint32_t across = params.n / kSgemmTile;
    return {tile / across * kSgemmTile, tile % across * kSgemmTile};
  }

  // A thread's first piece in the tile.
  __device__ __forceinline__ static Corner PieceOf(uint32_t thread) {
    const uint32_t lane = thread % 32;
    const uint32_t warp = thread / 32;
    const uint32_t lane_row = lane % 2 + lane / 16 * 2;
    const uint32_t lane_column = lane / 2 % kLanesAcross;
    return {warp / kWarpsAcross * kWarpRows + lane_row * kPiece,
            warp % kWarpsAcross * kWarpColumns + lane_column * kPiece};
  }

  __device__ __forceinline__ static Copier CopierOf(const Params& params, const Corner& corner,
                                                    uint32_t thread) {
    constexpr uint32_t kPiecesAcross = kSgemmTile / kPiece;
    static_assert(kThreads == kPiecesAcross * kSgemmDepth, "one piece a thread is a stage");
    const uint32_t row = thread / kPiecesAcross;
    const uint32_t column = thread % kPiecesAcross * kPiece;
    return {row * params.m + corner.row + column, row * params.n + corner.column + column};
  }

  // What a thread multiplies in one step of k.
  struct Factors {
    float a[kRows];
    float b[kColumns];

    __device__ __forceinline__ void Read(const Stage& stage, uint32_t k, const Corner& mine) {
      ReadPieces(&stage.a[k][mine.row], kRowsApart, a);
      ReadPieces(&stage.b[k][mine.column], kColumnsApart, b);
    }
  };

  // One step is read while the step before is added. Two steps a round: with more the compiler
  // gives workers other registers than the grid, whose operands share a bank more often.
  __device__ __forceinline__ static void AddStage(const Stage& stage, const Corner& mine,
                                                  float sums[kRows][kColumns]) {
    static_assert(kSgemmDepth % 2 == 0, "a round is two steps");
    Factors even;
    Factors odd;
    even.Read(stage, 0, mine);
#pragma unroll 1
    for (uint32_t k = 0; k < kSgemmDepth; k += 2) {
      odd.Read(stage, k + 1, mine);
      AddStep(even, sums);
      if (k + 2 < kSgemmDepth) even.Read(stage, k + 2, mine);
      AddStep(odd, sums);
    }
  }

  // Two columns at a time, alternately down and up the rows, starting with the column used last.
  // Then nearly every addition reuses one factor of the previous one, and reads two operands from
  // the register file and not three.
  __device__ __forceinline__ static void AddStep(const Factors& factors,
                                                 float sums[kRows][kColumns]) {
#pragma unroll
    for (uint32_t pair = 0; pair < kColumns; pair += 2) {
#pragma unroll
      for (uint32_t n = 0; n < kRows; ++n) {
        const uint32_t i = pair / 2 % 2 == 0 ? n : kRows - 1 - n;
        const uint32_t first = pair + n % 2;
        const uint32_t second = pair + 1 - n % 2;
        sums[i][first] = fmaf(factors.a[i], factors.b[first], sums[i][first]);
        sums[i][second] = fmaf(factors.a[i], factors.b[second], sums[i][second]);
      }
    }
  }

  __device__ __forceinline__ static void Store(float* to, uint32_t width,
                                               const float sums[kRows][kColumns]) {
#pragma unroll
    for (uint32_t i = 0; i < kRows; ++i) {
      const uint32_t row = i % kPiece + i / kPiece * kRowsApart;
      float* at = to + static_cast<uint64_t>(row) * width;
#pragma unroll
      for (uint32_t j = 0; j < kColumns; j += kPiece) {
        __stcs(reinterpret_cast<float4*>(at + j / kPiece * kColumnsApart),
               make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]));
      }
    }
  }
};
}  // namespace sgemm

using sgemm::gpushare_sgemm;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_SGEMM_CUH_
