// Kernels that test the kernel contract itself: what they record tells whether every block task ran
// once, where, and with what index.

#include <gpushare/device/fused.cuh>
#include <gpushare/device/variants.cuh>

#include "tests/kernels/test_kernels.h"

namespace gpushare::kernels {
namespace {

constexpr int kTestThreads = 256;

// At least one read of the timer; ends by itself.
__device__ void Spin(uint64_t spin_ns) {
  const uint64_t begin = device::GlobalTimerNs();
  while (device::GlobalTimerNs() - begin < spin_ns) {
  }
}

template <class Ctx>
__device__ uint32_t Linear(const CountParams& params, Ctx& ctx) {
  const dim3 block = ctx.block();
  return block.x + params.grid_x * (block.y + params.grid_y * block.z);
}

// By the first thread: where this block task ran, and whether its index is sound.
template <class Ctx>
__device__ void Record(const CountParams& params, Ctx& ctx) {
  const dim3 block = ctx.block();
  const dim3 grid = ctx.grid();
  const bool sound = grid.x == params.grid_x && grid.y == params.grid_y &&
                     grid.z == params.grid_z && block.x < grid.x && block.y < grid.y &&
                     block.z < grid.z && ctx.block_index() == Linear(params, ctx) &&
                     ctx.threads() == kTestThreads;
  if (!sound) {
    atomicAdd(params.wrong, 1U);
    return;
  }
  uint32_t sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  atomicAdd(&params.executions[Linear(params, ctx)], 1U);
  atomicAdd(&params.by_sm[sm], 1U);
}

}  // namespace

struct gpushare_test_count {
  using Params = CountParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = kTestThreads;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    Spin(params.spin_ns);
    if (ctx.thread() != 0) return;
    Record(params, ctx);
    if (params.by_worker != nullptr) atomicAdd(&params.by_worker[blockIdx.x], 1U);
  }
};
GPUSHARE_KERNEL(gpushare_test_count);

// A thread's result comes from another thread's word, written once and again: a block task that
// begins before the one before it has ended gets a wrong one.
template <int kWords>
struct SharedBody {
  using Params = CountParams;
  struct Shared {
    uint32_t words[kWords];
  };
  struct State {};
  static constexpr int kThreads = kTestThreads;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const uint32_t thread = ctx.thread();
    const uint32_t block = ctx.block_index();
    for (uint32_t i = thread; i < kWords; i += kThreads) shared.words[i] = block * 7919U + i;
    ctx.sync();
    const uint32_t other = shared.words[kWords - 1 - thread];
    // The warps end at different times, so that the barrier between block tasks is needed.
    if (thread / 32 % 2 == 1) Spin(params.spin_ns);
    const uint32_t again = shared.words[kWords - 1 - thread];
    params.results[block * kThreads + thread] = other == again ? other : ~0U;
    if (thread == 0) Record(params, ctx);
  }
};

struct gpushare_test_shared : SharedBody<kTestThreads> {};
GPUSHARE_KERNEL(gpushare_test_shared);

struct gpushare_test_large_shared : SharedBody<16384> {};
GPUSHARE_KERNEL(gpushare_test_large_shared);

struct gpushare_test_steps {
  using Params = CountParams;
  struct Shared {
    uint32_t words[kTestThreads];
  };
  struct State {
    uint32_t value;
  };
  static constexpr int kThreads = kTestThreads;
  static constexpr bool kYields = true;

  __device__ static uint32_t Steps(const Params& params) { return params.steps; }

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State& state, Ctx& ctx) {
    const uint32_t thread = ctx.thread();
    const uint32_t at = ctx.block_index() * kThreads + thread;
    if (ctx.step() == 0) state.value = at;
    // Through Shared and back, so that a step that begins too early is seen.
    shared.words[(thread + 1) % kThreads] = state.value;
    ctx.sync();
    state.value = shared.words[(thread + 1) % kThreads] * 1664525U + 1013904223U + ctx.step();
    // Every other step asks for the eviction word early.
    if (ctx.step() % 2 == 1) ctx.look_ahead();
    Spin(params.spin_ns);
    if (thread == 0) Record(params, ctx);
    if (ctx.step() + 1 == params.steps) params.results[at] = state.value;
  }

  template <class Ctx>
  __device__ static void Save(const Params& params, Shared&, State& state, Ctx& ctx) {
    params.saved[ctx.block_index() * kThreads + ctx.thread()] = state.value;
  }

  template <class Ctx>
  __device__ static void Restore(const Params& params, Shared&, State& state, Ctx& ctx) {
    state.value = params.saved[ctx.block_index() * kThreads + ctx.thread()];
  }
};
GPUSHARE_KERNEL(gpushare_test_steps);

struct gpushare_test_enter_leave {
  using Params = CountParams;
  struct Shared {
    uint32_t entered;
  };
  struct State {
    uint32_t block_tasks;
  };
  static constexpr int kThreads = kTestThreads;

  template <class Ctx>
  __device__ static void Enter(const Params&, Shared& shared, State& state, Ctx& ctx) {
    state.block_tasks = 0;
    if (ctx.thread() == 0) shared.entered = 1;
    ctx.sync();
  }
  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State& state, Ctx& ctx) {
    ++state.block_tasks;
    if (ctx.thread() == 0) Record(params, ctx);
  }
  template <class Ctx>
  __device__ static void Leave(const Params& params, Shared& shared, State& state, Ctx& ctx) {
    if (ctx.thread() == kThreads - 1) params.by_worker[blockIdx.x] += state.block_tasks;
    if (shared.entered != 1) atomicAdd(params.wrong, 1U);
  }
};
GPUSHARE_KERNEL(gpushare_test_enter_leave);

struct gpushare_test_early_return {
  using Params = CountParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = kTestThreads;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    if (ctx.thread() % 2 == 1) return;
    ctx.sync();
    if (ctx.thread() == 0) Record(params, ctx);
  }
};
GPUSHARE_KERNEL(gpushare_test_early_return);

// The same results as gpushare_test_shared's within each half: a half that leaves its barrier with
// the other half's threads reads words that are not there yet.
struct gpushare_test_extra {
  using Params = CountParams;
  struct Shared {
    uint32_t words[kTestThreads];
  };
  struct State {};
  static constexpr int kThreads = kTestThreads;
  static constexpr int kHalf = kTestThreads / 2;
  static constexpr int kExtraBarriers = 2;
  static constexpr int kMinBlocksPerSm = 8;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const uint32_t thread = ctx.thread();
    const uint32_t block = ctx.block_index();
    const uint32_t half = thread / kHalf;
    // The halves come at different times, and the warps of a half too.
    if (thread / 32 % 4 == half) Spin(params.spin_ns / 2);
    shared.words[thread] = block * 7919U + thread;
    if (half == 0) {
      ctx.template SyncSome<0, 0, kHalf>();
    } else {
      ctx.template SyncSome<1, kHalf, kHalf>();
    }
    const uint32_t from = half * kHalf + kHalf - 1 - thread % kHalf;
    params.results[block * kThreads + thread] = shared.words[from];
    if (thread == 0) Record(params, ctx);
  }
};
GPUSHARE_KERNEL(gpushare_test_extra);

// In as few registers as the part of a fused kernel that gives some away.
struct gpushare_test_small_shared : SharedBody<kTestThreads> {
  static constexpr int kMinBlocksPerSm = 8;
};

GPUSHARE_FUSED_KERNEL(gpushare_test_fused_count, gpushare_test_count, 1, gpushare_test_shared, 2,
                      GPUSHARE_FUSED_PLAIN);
GPUSHARE_FUSED_KERNEL(gpushare_test_fused_large, gpushare_test_shared, 2,
                      gpushare_test_large_shared, 1, GPUSHARE_FUSED_PLAIN);
GPUSHARE_FUSED_KERNEL(gpushare_test_fused_steps, gpushare_test_steps, 1, gpushare_test_extra, 1,
                      GPUSHARE_FUSED_PLAIN);
GPUSHARE_FUSED_KERNEL(gpushare_test_fused_extra, gpushare_test_extra, 2, gpushare_test_extra, 2,
                      GPUSHARE_FUSED_PLAIN);
GPUSHARE_FUSED_KERNEL(gpushare_test_fused_registers, gpushare_test_count, 1,
                      gpushare_test_small_shared, 1, GPUSHARE_FUSED_SETMAXNREG);
GPUSHARE_FUSED_KERNEL(gpushare_test_fused_direct, gpushare_test_count, 1, gpushare_test_shared, 1,
                      GPUSHARE_FUSED_DIRECT);
GPUSHARE_FUSED_KERNEL(gpushare_test_fused_quota, gpushare_test_extra, 1, gpushare_test_count, 2,
                      GPUSHARE_FUSED_PLAIN);
GPUSHARE_FUSED_KERNEL(gpushare_test_fused_too_wide, gpushare_test_count, 2, gpushare_test_shared, 3,
                      GPUSHARE_FUSED_PLAIN);
static_assert(!gpushare_test_fused_too_wide_layout::kFeasible, "1,280 threads are no block");
static_assert(gpushare_test_fused_registers_layout::kRegisters == 128 &&
                  gpushare_test_fused_registers_layout::kCudaRegisters == 48 &&
                  gpushare_test_fused_registers_layout::kTensorRegisters == 208,
              "what one half gives the other takes");

}  // namespace gpushare::kernels

extern "C" bool gpushare_test_has_checks() { return GPUSHARE_DEVICE_CHECKS != 0; }
