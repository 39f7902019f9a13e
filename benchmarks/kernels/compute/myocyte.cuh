// myocyte: bound by the issue of fused multiply-adds with few threads, four warps a scheduler. Long
// block tasks with yield points; a cell's state stays in registers between them.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MYOCYTE_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MYOCYTE_CUH_

#include "benchmarks/kernels/compute/myocyte.h"

namespace gpushare::kernels {
namespace myocyte {

// An interrupted block task keeps its cells in its own place of the output, so ring is at least the
// number of block tasks.
struct gpushare_myocyte {
  using Params = MyocyteParams;
  struct Shared {};
  struct State {
    MyocyteCell cell;
    float current;
  };
  static constexpr int kThreads = kMyocyteThreads;
  static constexpr int kMinBlocksPerSm = 8;
  static constexpr int kWorkersPerSm = 8;  // more would fit, and gain nothing
  static constexpr bool kYields = true;

  __device__ static uint32_t Steps(const Params& params) { return params.steps; }

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State& state, Ctx& ctx) {
    if (ctx.step() == 0) Begin(params, {-1, 1}, state, ctx);
    const uint32_t last = params.iterations < kIterationsAfterLook ? 0 : kIterationsAfterLook;
    Integrate(params.iterations - last, state);
    ctx.look_ahead();
    Integrate(last, state);
    if (ctx.step() + 1 == params.steps) Save(params, shared, state, ctx);
  }

  template <class Ctx>
  __device__ static void Save(const Params& params, const Shared&, State& state, Ctx& ctx) {
    reinterpret_cast<float2*>(params.out)[Cell(params, ctx)] =
        make_float2(state.cell.v, state.cell.w);
  }

  template <class Ctx>
  __device__ static void Restore(const Params& params, Shared&, State& state, Ctx& ctx) {
    const float2 saved = reinterpret_cast<const float2*>(params.out)[Cell(params, ctx)];
    Begin(params, {saved.x, saved.y}, state, ctx);
  }

 private:
  // 1.6 us with all workers, twice what a read of the eviction word takes.
  static constexpr uint32_t kIterationsAfterLook = 20;

  __device__ static void Integrate(uint32_t iterations, State& state) {
#pragma unroll 2
    for (uint32_t i = 0; i < iterations; ++i) {
      state.cell = MyocyteIterate(state.cell, state.current);
    }
  }
  template <class Ctx>
  __device__ static void Begin(const Params& params, const MyocyteCell& cell, State& state,
                               Ctx& ctx) {
    state = {cell, MyocyteCurrent(params.seed, Cell(params, ctx))};
  }
  template <class Ctx>
  __device__ static uint32_t Cell(const Params& params, Ctx& ctx) {
    return (ctx.block_index() % params.ring) * kThreads + ctx.thread();
  }
};
}  // namespace myocyte

using myocyte::gpushare_myocyte;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MYOCYTE_CUH_
