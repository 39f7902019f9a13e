// A kernel that gpushare can schedule: one body, and the three variants that the macro makes of it.
// Run without arguments; without a GPU it says so and exits with 77.

#include <cstdio>
#include <gpushare/device/variants.cuh>

struct Saxpy {
  struct Params {
    const float* x;
    float* y;
    float a;
    unsigned n;
  };
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;

  template <class Ctx>
  __device__ static void Run(const Params& p, Shared&, State&, Ctx& ctx) {
    const unsigned i = ctx.block_index() * kThreads + ctx.thread();
    if (i < p.n) p.y[i] = p.a * p.x[i] + p.y[i];
  }
};
GPUSHARE_KERNEL(Saxpy);

int main() {
  gpushare_kernel_variants variants;
  const int code = Saxpy_variants(&variants);
  if (code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver) {
    std::printf("No GPU: nothing to run.\n");
    return 77;
  }
  if (code != 0) {
    std::printf("Saxpy does not load: %s.\n", cudaGetErrorString(static_cast<cudaError_t>(code)));
    return 1;
  }
  // A registered kernel takes the two handles; gpushare launches them.
  std::printf("Saxpy: %u registers a thread as workers, %u workers an SM.\n",
              variants.worker_registers, variants.workers_per_sm);
  return variants.workers_per_sm > 0 ? 0 : 1;
}
