// sincos and sincos_steps: bound by the special-function pipe (16 results a clock and SM),
// registers only. sincos_steps is the same sum with yield points between steps, for long block
// tasks.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_SINCOS_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_SINCOS_CUH_

#include "benchmarks/kernels/compute/sincos.h"
#include "kernels/warp_reduce.cuh"

namespace gpushare::kernels {
namespace sincos {

struct Sum {
  float cosine;
  float sine;
};

// Two special-function results an iteration, 16 clocks of a scheduler's quarter of the pipe, and
// about 9 other instructions. Each term errs by at most 7e-7: 2^-21.2 of the intrinsic, and the
// rounding of the phase.
__device__ __forceinline__ void AddTerms(uint32_t iterations, uint32_t phase_step, uint32_t* phase,
                                         Sum* sum) {
  constexpr uint32_t kTwo = 0x40000000U;  // 2.0f: with 23 bits of fraction, [2, 4)
  constexpr float kPi = 3.14159265358979F;
#pragma unroll 4
  for (uint32_t i = 0; i < iterations; ++i) {
    const float turn = __uint_as_float((*phase & kPhaseMask) | kTwo) - 3.0F;
    const float angle = turn * kPi;
    sum->cosine += __cosf(angle);
    sum->sine += __sinf(angle);
    *phase += phase_step;
  }
}

struct gpushare_sincos {
  using Params = SincosParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  // As fast as eight, and a block task takes half of the time: an eviction waits for less.
  static constexpr int kWorkersPerSm = 4;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint32_t thread = (ctx.block_index() % params.ring) * kThreads + ctx.thread();
    uint32_t phase = SincosFirstPhase(params.seed, thread);
    Sum sum = {0, 0};
    AddTerms(params.iterations, SincosPhaseStep(params.seed, thread), &phase, &sum);
    const float2 record = make_float2(WarpSum(sum.cosine), WarpSum(sum.sine));
    if (thread % kWarpThreads != 0) return;
    reinterpret_cast<float2*>(params.out)[thread / kWarpThreads] = record;
  }
};
// The sums of a block task stay in registers between its steps. An interrupted one keeps them in
// its own place of the output, so ring is at least the number of block tasks.
struct gpushare_sincos_steps {
  using Params = SincosParams;
  struct Shared {};
  struct State {
    Sum sum;
    uint32_t phase;
    uint32_t phase_step;
  };
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  // As fast as eight, and a block task takes half of the time: an eviction waits for less.
  static constexpr int kWorkersPerSm = 4;
  static constexpr bool kYields = true;

  __device__ static uint32_t Steps(const Params& params) { return params.steps; }

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State& state, Ctx& ctx) {
    if (ctx.step() == 0) Begin(params, {}, state, ctx);
    const uint32_t last = params.iterations < kIterationsAfterLook ? 0 : kIterationsAfterLook;
    AddTerms(params.iterations - last, state.phase_step, &state.phase, &state.sum);
    ctx.look_ahead();
    AddTerms(last, state.phase_step, &state.phase, &state.sum);
    if (ctx.step() + 1 == params.steps) Save(params, shared, state, ctx);
  }

  template <class Ctx>
  __device__ static void Save(const Params& params, const Shared&, State& state, Ctx& ctx) {
    reinterpret_cast<float2*>(params.out)[Thread(params, ctx)] =
        make_float2(state.sum.cosine, state.sum.sine);
  }

  template <class Ctx>
  __device__ static void Restore(const Params& params, Shared&, State& state, Ctx& ctx) {
    const float2 saved = reinterpret_cast<const float2*>(params.out)[Thread(params, ctx)];
    Begin(params, {saved.x, saved.y}, state, ctx);
  }

 private:
  // 1.5 us at full occupancy, twice what a read of the eviction word takes.
  static constexpr uint32_t kIterationsAfterLook = 12;

  // Computes the phase before the step that the context names.
  template <class Ctx>
  __device__ static void Begin(const Params& params, Sum sum, State& state, Ctx& ctx) {
    const uint32_t thread = Thread(params, ctx);
    const uint32_t phase_step = SincosPhaseStep(params.seed, thread);
    state = {sum,
             SincosFirstPhase(params.seed, thread) + ctx.step() * params.iterations * phase_step,
             phase_step};
  }
  template <class Ctx>
  __device__ static uint32_t Thread(const Params& params, Ctx& ctx) {
    return (ctx.block_index() % params.ring) * kThreads + ctx.thread();
  }
};
}  // namespace sincos

using sincos::gpushare_sincos;
using sincos::gpushare_sincos_steps;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_SINCOS_CUH_
