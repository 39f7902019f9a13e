// The workloads of the wgmma GEMMs: as many tiles as block tasks, up to a ring, as a matrix that is
// about square; K by the wanted length of a block task. A number of block tasks that the options
// name is the ring itself, tile by tile, where memory allows it.

#include <algorithm>
#include <cmath>
#include <memory>

#include "benchmarks/kernels/tensor/portable_workload.h"
#include "kernels/tensor/gemm_wgmma.h"

namespace gpushare::kernels {
namespace {

// 8192 x 8192 of the larger tile; with 2 K of k 64 MB of inputs and 128 MB of outputs.
constexpr uint32_t kRingMax = 2048;
// Where the options name the number of block tasks: 512 MB of outputs of the larger tile.
constexpr uint32_t kRingOfTasksMax = 8192;
constexpr double kInputBytesMax = 1 << 30;
// What an SM of the reference GPU does: 700 TFLOP/s over 132 SMs.
constexpr double kMultiplyAddsPerUs = 700e6 / 2 / 132;

// The largest ring for which A and B, with a C that is about square, take at most kInputBytesMax.
uint32_t RingMaxOf(double tile, uint32_t k, uint32_t most) {
  const double side = kInputBytesMax / (2.0 * k * sizeof(uint16_t));
  return static_cast<uint32_t>(std::clamp(side * side / tile, 1.0, static_cast<double>(most)));
}

// How many tiles a row of C has: about as many as make C square. Where the options name the number
// of block tasks, rows are whole; a number without such divisors makes C long, and if A and B then
// pass kInputBytesMax, the ring gives up the tiles of its last row.
uint32_t TilesAcross(const WorkloadOptions& options, const GemmTileShape& shape, uint32_t ring,
                     uint32_t k) {
  const double square = std::sqrt(static_cast<double>(ring) * shape.m / shape.n);
  const uint32_t across = std::clamp(static_cast<uint32_t>(square), 1U, ring);
  if (options.block_tasks == 0) return across;
  uint32_t whole = across;
  while (ring % whole != 0) --whole;
  const double lines = static_cast<double>(ring / whole) * shape.m + 1.0 * whole * shape.n;
  return lines * k * sizeof(uint16_t) <= kInputBytesMax ? whole : across;
}

class GemmWgmmaWorkload : public PortableGemmWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options,
              const GemmTileShape& shape) {
    Status status = CheckWgmma();
    if (!status.ok()) return status;
    const uint32_t block_tasks =
        CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    const double tile = static_cast<double>(shape.m) * shape.n;
    const double k_blocks = options.block_task_us * kMultiplyAddsPerUs / (tile * kGemmKBlock);
    const auto k = std::max(1U, static_cast<uint32_t>(std::lround(k_blocks))) * kGemmKBlock;
    const uint32_t most = options.block_tasks > 0 ? kRingOfTasksMax : kRingMax;
    const uint32_t ring = RingOf(options, block_tasks, RingMaxOf(tile, k, most));
    const uint32_t tiles_n = TilesAcross(options, shape, ring, k);
    const uint32_t tiles_m = ring / tiles_n;
    status = MakeBuffers(options, tiles_m * static_cast<uint32_t>(shape.m),
                         tiles_n * static_cast<uint32_t>(shape.n), k);
    if (!status.ok()) return status;
    const GemmProblem problem = {
        static_cast<int>(m_), static_cast<int>(n_), static_cast<int>(k_), a_.data(), b_.data(),
        output_.data()};
    GemmWgmmaParams params = {};
    status = MakeWgmmaParams(shape, problem, 1, 1, &params, &grid_);
    if (!status.ok()) return status;
    distinct_block_tasks_ = params.distinct;
    grid_ = {block_tasks, 1, 1};
    work_per_block_task_ = tile * k;
    SetParams(params);
    return {};
  }
};

}  // namespace

extern const WorkloadMaker kMakeGemmWgmma = MakeAs<GemmWgmmaWorkload, kGemmWgmmaTile>;
extern const WorkloadMaker kMakeGemmRoomy = MakeAs<GemmWgmmaWorkload, kGemmRoomyTile>;

}  // namespace gpushare::kernels
