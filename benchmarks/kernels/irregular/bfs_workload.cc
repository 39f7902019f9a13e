// The workload of bfs.

#include <algorithm>
#include <cmath>
#include <memory>

#include "benchmarks/kernels/block_task_share.h"
#include "benchmarks/kernels/irregular/bfs.h"
#include "benchmarks/kernels/irregular/inputs.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr double kInputBytesMax = 1 << 30;
// Where an eighth of all vertices is the frontier, a search in a list of d looks at
// 8 (1 - (7/8)^d) of its vertices, which is 6.275 in the mean of all lists; half of the vertices
// search. A look costs an edge and a sector with the neighbour's level.
constexpr double kLooksPerVertex = 6.275 / 2;
constexpr double kBytesPerLook = 4 + 32;
// The looks, where the list begins, the vertex' level, and the level and parent written.
constexpr double kBytesPerVertex = kLooksPerVertex * kBytesPerLook + 4 + 1 + 8;
constexpr double kBytesPerPass = kBytesPerVertex * kBfsVerticesPerPass;
constexpr double kInputBytesPerVertex = 4.0 * BfsShape::kGroupElements / BfsShape::kGroup + 5;
constexpr uint32_t kEdgeSeed = 2;
constexpr uint32_t kLevelSeed = 3;

class BfsWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    const double bytes = BlockTaskBytes(options, kReferenceL2BytesPerUs, kernel.workers_per_sm);
    const uint32_t passes = WholeUnits(bytes, kBytesPerPass);
    distinct_block_tasks_ = RingWithin(options, grid_.x, kInputBytesMax,
                                       kInputBytesPerVertex * kBfsVerticesPerPass * passes);
    vertices_ = distinct_block_tasks_ * passes * kBfsVerticesPerPass;
    const Status status = Fill();
    if (!status.ok()) return status;
    work_per_block_task_ = kBytesPerPass * passes;
    integers_ = true;
    tolerance_ = 0;
    reference_ns_ = 500;
    SetParams(BfsParams{begins_.as<const uint32_t>(), neighbours_.as<const uint32_t>(),
                        levels_.as<const uint8_t>(), output_.as<uint32_t>(), passes,
                        distinct_block_tasks_});
    return {};
  }

 private:
  Status Fill() {
    const size_t edges =
        static_cast<size_t>(vertices_ / BfsShape::kGroup) * BfsShape::kGroupElements;
    Status status = begins_.Allocate((static_cast<size_t>(vertices_) + 1) * sizeof(uint32_t));
    const size_t whole = (edges + kBfsLooks - 1) / kBfsLooks * kBfsLooks;
    if (status.ok()) status = neighbours_.Allocate(whole * sizeof(uint32_t));
    if (status.ok()) status = levels_.Allocate(vertices_);
    if (status.ok()) status = FillBfs(seed_, vertices_, begins_, neighbours_, levels_);
    if (status.ok()) status = AllocateOutput(vertices_, 2);
    return status;
  }

  // Looks at all neighbours, in any order.
  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const auto vertex = static_cast<uint32_t>(index);
    expected[0] = BfsLevelOf(seed_ + kLevelSeed, vertex);
    expected[1] = kBfsNoParent;
    if (BfsLevelOf(seed_ + kLevelSeed, vertex) != kBfsUnvisited) return;
    const uint32_t begin = BfsShape::Begin(seed_, vertex);
    const uint32_t degree = BfsShape::Length(seed_, vertex);
    for (uint32_t k = 0; k < degree; ++k) {
      const uint32_t neighbour = BfsNeighbour(seed_ + kEdgeSeed, vertices_, degree, k, begin + k);
      if (BfsLevelOf(seed_ + kLevelSeed, neighbour) != kBfsLevel) continue;
      expected[0] = kBfsLevel + 1;
      expected[1] = std::min<double>(expected[1], neighbour);
    }
  }

  DeviceBuffer begins_;
  DeviceBuffer neighbours_;
  DeviceBuffer levels_;
  uint32_t vertices_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakeBfs = MakeAs<BfsWorkload>;

}  // namespace gpushare::kernels
