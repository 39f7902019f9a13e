// The wgmma GEMMs: TMA fills a ring of swizzled tiles in shared memory, consumer warpgroups
// multiply from there into registers, each warp stores its sums by TMA.
//
// Warpgroup 0: its first thread is the producer, the rest idle at the barrier. It is the first
// thread of the part, so the worker loop claims the next block task while the consumers still
// multiply and store: a claim costs this kernel nothing. The other warpgroups: 64 rows of the tile
// each. Loads::kByConsumer has no warpgroup 0: the first consumer thread loads, too, and the
// registers of 128 threads are free for others or for a second worker; claims then come after the
// stores.
//
// Invariants
// - full[s] completes when the boxes of A and B of stage s are there; empty[s] when every consumer
//   warp has read them. The producer's first round finds every stage empty (parity 1 of a fresh
//   barrier).
// - A warp's staging buffers belong to it alone: stores of one tile may still be read out of them
//   while the next tile's multiplications run; the warp waits before it writes there again.
// - Sums are added in the order of k, whatever the form and the worker.
//
// Two forms: gpushare_gemm_wgmma is the fastest and takes an SM alone; gpushare_gemm_roomy leaves
// 28 K registers and 65 KB of shared memory an SM to others.

#ifndef GPUSHARE_KERNELS_TENSOR_GEMM_WGMMA_CUH_
#define GPUSHARE_KERNELS_TENSOR_GEMM_WGMMA_CUH_

#include <cuda_bf16.h>

#include <cstdint>
#include <cstdio>

#include "kernels/tensor/gemm_tile.h"
#include "kernels/tensor/gemm_wgmma.h"
#include "kernels/tensor/hopper.cuh"

namespace gpushare::kernels {
namespace gemm_wgmma {

constexpr int kWarpgroup = 128;
constexpr int kWarp = 32;
constexpr int kConsumerWarps = 4;  // of a consumer warpgroup
constexpr int kConsumerRows = 64;  // the rows of one wgmma
constexpr int kStoreRows = 16;     // of one warp
constexpr int kStoreBoxBytes = kStoreRows * static_cast<int>(kSwizzleRowBytes);

struct State {
  uint32_t at;  // phase * kStages + stage
};

enum class Loads { kByProducer, kByConsumer };

// Tiles of 64 * kConsumers rows and kN columns.
template <int kConsumers, int kN, int kStages, Loads kLoads = Loads::kByProducer,
          int kStoreBuffers = 2>
struct Gemm {
  using Params = GemmWgmmaParams;
  using State = gemm_wgmma::State;

  static constexpr int kM = kConsumerRows * kConsumers;
  static constexpr bool kProduces = kLoads == Loads::kByProducer;
  static constexpr int kFirstConsumer = kProduces ? kWarpgroup : 0;
  static constexpr int kThreads = kFirstConsumer + kWarpgroup * kConsumers;
  static constexpr uint32_t kBytesA = kM * kSwizzleRowBytes;
  static constexpr uint32_t kBytesB = kN * kSwizzleRowBytes;
  static constexpr int kSums = kN / 2;  // of a thread

  struct alignas(kSwizzleBytes) Shared {
    unsigned char a[kStages][kBytesA];
    unsigned char b[kStages][kBytesB];
    unsigned char c[kConsumers * kConsumerWarps][kStoreBuffers][kStoreBoxBytes];
    uint64_t full[kStages];
    uint64_t empty[kStages];
  };
  static_assert(kN % (kStoreBuffers * kSwizzleColumns) == 0 && kN <= 256,
                "a tile is a whole number of rounds over the store buffers wide, a box 256 rows");

  template <class Ctx>
  __device__ static void Enter(const Params& params, Shared& shared, State& state, Ctx& ctx) {
#if GPUSHARE_WGMMA
    // The producer waits for the phase before the first, which counts as complete.
    state.at = kProduces && ctx.thread() == 0 ? kStages : 0;
    if (ctx.thread() == 0) {
      hopper::PrefetchMap(&params.a);
      hopper::PrefetchMap(&params.b);
      hopper::PrefetchMap(&params.c);
      hopper::RingInit(shared.full, shared.empty, kConsumers * kConsumerWarps);
    }
    ctx.sync();
#endif
  }

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State& state, Ctx& ctx) {
#if GPUSHARE_WGMMA
    const uint32_t first = ctx.block_index() % params.distinct * params.tiles_per_task;
    const int consumer = static_cast<int>(ctx.thread()) - kFirstConsumer;
    // Uniform over the warp; the shuffle lets the compiler know.
    if (!kProduces || __shfl_sync(~0U, consumer, 0) >= 0) {
      Consume(params, shared, state, first, consumer);
    } else if (ctx.thread() == 0) {
      Produce(params, shared, state, first);
    }
#else
    if (ctx.thread() == 0) printf("gpushare: this GEMM needs compute capability 9.0a.\n");
    __trap();
#endif
  }

  template <class Ctx>
  __device__ static void Leave(const Params&, Shared& shared, State&, Ctx& ctx) {
#if GPUSHARE_WGMMA
    // The thread that stored waits: the launch's end says that all results are in global memory.
    if (static_cast<int>(ctx.thread()) >= kFirstConsumer && ctx.thread() % kWarp == 0)
      hopper::WaitStores();
    ctx.sync();
    if (ctx.thread() == 0) hopper::RingInvalidate(shared.full, shared.empty);
#endif
  }

 private:
  __device__ static __forceinline__ uint32_t Stage(const State& state) {
    return state.at < kStages ? state.at : state.at - kStages;
  }
  __device__ static __forceinline__ uint32_t Phase(const State& state) {
    return state.at < kStages ? 0 : 1;
  }
  __device__ static __forceinline__ State Before(const State& state) {
    return {state.at == 0 ? 2 * kStages - 1 : state.at - 1};
  }
  __device__ static __forceinline__ void Advance(State& state) {
    state.at = state.at == 2 * kStages - 1 ? 0 : state.at + 1;
  }

  // Tiles [first, end) of the block task.
  __device__ static __forceinline__ uint32_t EndOf(const Params& params, uint32_t first) {
    const uint32_t tiles = params.tiles_m * params.tiles_n;
    const uint32_t end = first + params.tiles_per_task;
    return end < tiles ? end : tiles;
  }

  __device__ static __forceinline__ TilePlace PlaceOf(const Params& params, uint32_t tile) {
    return PlaceOfTile(tile, params.tiles_m, params.tiles_n, params.group);
  }

  // Fills the stage with the boxes of A and B at column k, once the phase of `parity` has emptied
  // it. One thread.
  __device__ static __forceinline__ void Load(const Params& params, Shared& shared, uint32_t stage,
                                              uint32_t parity, uint32_t block,
                                              const TilePlace& place) {
    const uint32_t full = hopper::SharedAddress(shared.full) + stage * sizeof(uint64_t);
    const auto k = static_cast<int32_t>(block * kSwizzleColumns);
    hopper::BarrierWait(hopper::SharedAddress(shared.empty) + stage * sizeof(uint64_t), parity);
    hopper::BarrierArriveExpect(full, kBytesA + kBytesB);
    hopper::LoadBox(hopper::SharedAddress(shared.a) + stage * kBytesA, &params.a, full, k,
                    static_cast<int32_t>(place.m * kM));
    hopper::LoadBox(hopper::SharedAddress(shared.b) + stage * kBytesB, &params.b, full, k,
                    static_cast<int32_t>(place.n * kN));
  }

  // The producer: all loads of the block task, as far ahead as there are stages.
  __device__ static __forceinline__ void Produce(const Params& params, Shared& shared, State& state,
                                                 uint32_t first) {
    const uint32_t end = EndOf(params, first);
#pragma unroll 1
    for (uint32_t tile = first; tile < end; ++tile) {
      const TilePlace place = PlaceOf(params, tile);
#pragma unroll 1
      for (uint32_t block = 0; block < params.k_blocks; ++block) {
        Load(params, shared, Stage(state), Phase(state), block, place);
        Advance(state);
      }
    }
  }

  // Without a producer: the first loads of a tile. This warpgroup has read the stages, and Load
  // waits for the others. `state` is where this consumer reads next.
  __device__ static __forceinline__ void LoadFirst(const Params& params, Shared& shared,
                                                   State state, const TilePlace& place) {
#pragma unroll 1
    for (uint32_t block = 0; block < kStages && block < params.k_blocks; ++block) {
      Load(params, shared, Stage(state), Phase(state) ^ 1, block, place);
      Advance(state);
    }
  }

  // The work of a consumer warpgroup; `thread` counts from the first consumer.
  __device__ static __forceinline__ void Consume(const Params& params, Shared& shared, State& state,
                                                 uint32_t first, int thread) {
    const uint32_t end = EndOf(params, first);
    const bool loads = !kProduces && thread == 0;
    if (loads && first < end) LoadFirst(params, shared, state, PlaceOf(params, first));
#pragma unroll 1
    for (uint32_t tile = first; tile < end; ++tile) {
      float sums[kSums];
      const bool loaded = Multiply(params, shared, state, tile, thread, sums);
      // The divisions pass while the last multiplications run.
      const TilePlace place = PlaceOf(params, tile);
      hopper::Hold(place.m);
      hopper::Hold(place.n);
      hopper::WgmmaWait<0>();
      hopper::HoldSums(sums);
      if (!loaded) asm volatile("trap;");
      Release(shared, state, thread);
      if (loads && tile + 1 < end) LoadFirst(params, shared, state, PlaceOf(params, tile + 1));
      Store(params, shared, place, thread, sums);
    }
  }

  // Issues all multiplications of the tile; the last ones still run at the end. False: a load never
  // came. (A trap here would make the compiler wait for each multiplication before the next.)
  __device__ static __forceinline__ bool Multiply(const Params& params, Shared& shared,
                                                  State& state, uint32_t tile, int thread,
                                                  float (&sums)[kSums]) {
    const auto rows_at = static_cast<uint32_t>(__shfl_sync(~0U, thread / kWarpgroup, 0)) *
                         (kConsumerRows * kSwizzleRowBytes);
    const uint32_t a = hopper::SharedAddress(shared.a) + rows_at;
    const uint32_t b = hopper::SharedAddress(shared.b);
    TilePlace place = {0, 0};
    if constexpr (!kProduces) place = PlaceOf(params, tile);
#pragma unroll 1
    for (uint32_t block = 0; block < params.k_blocks; ++block) {
      const uint32_t stage = Stage(state);
      if (!hopper::BarrierWaitBounded(hopper::SharedAddress(shared.full) + stage * sizeof(uint64_t),
                                      Phase(state))) {
        return false;
      }
      const uint64_t stage_a = TileDescriptor(a + stage * kBytesA);
      const uint64_t stage_b = TileDescriptor(b + stage * kBytesB);
      hopper::WgmmaFence();
#pragma unroll
      for (uint32_t step = 0; step < kStepsPerRow; ++step) {
        hopper::Wgmma<kN>::Issue(sums, stage_a + step * kDescriptorPerStep,
                                 stage_b + step * kDescriptorPerStep, block + step);
      }
      hopper::WgmmaCommit();
      // The batch before is done, so its stage is free; this one's multiplications go on.
      hopper::WgmmaWait<1>();
      if (block > 0) {
        Release(shared, state, thread);
        const uint32_t next = block - 1 + kStages;
        if (!kProduces && thread == 0 && next < params.k_blocks) {
          const State before = Before(state);
          Load(params, shared, Stage(before), Phase(before), next, place);
        }
      }
      Advance(state);
    }
    return true;
  }

  // Releases the stage before the next one: this warp has read it.
  __device__ static __forceinline__ void Release(Shared& shared, const State& state, int thread) {
    if (thread % kWarp != 0) return;
    hopper::BarrierArrive(hopper::SharedAddress(shared.empty) +
                          Stage(Before(state)) * sizeof(uint64_t));
  }

  // Each warp stores its 16 rows, 64 columns at a time, through its own shared memory.
  __device__ static __forceinline__ void Store(const Params& params, Shared& shared,
                                               const TilePlace& place, int thread,
                                               const float (&sums)[kSums]) {
    const int warp = thread / kWarp;
    const auto lane = static_cast<uint32_t>(thread % kWarp);
    const uint32_t staging = hopper::SharedAddress(shared.c[warp]);
    const Element mine = AccumulatorElement(0, lane, 0);
    const uint32_t to = staging + SwizzledByte(mine.row, mine.column / 2);
#pragma unroll
    for (int box = 0; box < kN / static_cast<int>(kSwizzleColumns); ++box) {
      constexpr int kBoxSums = static_cast<int>(kSwizzleColumns) / 2;
      const uint32_t buffer = static_cast<uint32_t>(box % kStoreBuffers * kStoreBoxBytes);
      if (lane == 0) hopper::WaitStoresRead<kStoreBuffers - 1>();
      __syncwarp();
#pragma unroll
      for (int r = 0; r < kBoxSums; r += 2) {
        // Swizzled, 8 columns further is another 16-byte chunk of the row: an exclusive or with its
        // number; 8 rows further is 1024 bytes.
        constexpr auto kChunkBytes = 16U;
        const uint32_t chunk = static_cast<uint32_t>(r) / 4 * kChunkBytes;
        const uint32_t down = static_cast<uint32_t>(r) / 2 % 2 * kSwizzleBytes;
        hopper::StoreShared(
            to, chunk, buffer + down,
            __floats2bfloat162_rn(sums[box * kBoxSums + r], sums[box * kBoxSums + r + 1]));
      }
      hopper::ProxyFence();
      __syncwarp();
      if (lane == 0) {
        hopper::StoreBox(
            &params.c, staging + buffer,
            static_cast<int32_t>(place.n) * kN + box * static_cast<int>(kSwizzleColumns),
            static_cast<int32_t>(place.m) * kM + warp * kStoreRows);
      }
    }
  }
};

// 128 x 256 tiles read a fifth less of shared memory and a quarter less of L2 for a product than
// 128 x 128 ones; the sums are 128 registers a thread, so an SM holds one block.
struct gpushare_gemm_wgmma : Gemm<2, kGemmWgmmaTile.n, 4> {
  static_assert(kM == kGemmWgmmaTile.m, "the host encodes its boxes for this tile");
};

struct gpushare_gemm_roomy : Gemm<2, kGemmRoomyTile.n, 4> {
  static_assert(kM == kGemmRoomyTile.m, "the host encodes its boxes for this tile");
  static constexpr int kWorkersPerSm = 1;
};

}  // namespace gemm_wgmma

using gemm_wgmma::gpushare_gemm_roomy;
using gemm_wgmma::gpushare_gemm_wgmma;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_TENSOR_GEMM_WGMMA_CUH_
