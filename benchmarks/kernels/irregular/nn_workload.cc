// The workload of nn.

#include <cmath>
#include <cstring>
#include <memory>

#include "benchmarks/kernels/block_task_share.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/irregular/nn.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr double kInputBytesMax = 1 << 30;
constexpr double kBytesPerPass = 2.0 * sizeof(float) * kNnRecordsPerPass;
// The places that the records are spread over, as degrees; the query is among them.
constexpr float kLow = 0.0F;
constexpr float kHigh = 64.0F;
constexpr NnQuery kQuery = {30.5F, 40.25F};

class NnWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    const double bytes = BlockTaskBytes(options, kReferenceDramBytesPerUs, kernel.workers_per_sm);
    const uint32_t passes = WholeUnits(bytes, kBytesPerPass);
    records_per_chunk_ = passes * kNnRecordsPerPass;
    distinct_block_tasks_ = RingWithin(options, grid_.x, kInputBytesMax, kBytesPerPass * passes);
    const uint64_t floats = 2 * static_cast<uint64_t>(distinct_block_tasks_) * records_per_chunk_;
    Status status = input_.Allocate(floats * sizeof(float));
    if (status.ok()) status = input_.FillUniform(seed_, kLow, kHigh);
    if (status.ok()) status = AllocateOutput(distinct_block_tasks_, 2);
    if (!status.ok()) return status;
    work_per_block_task_ = kBytesPerPass * passes;
    integers_ = true;  // the distance is compared by its bits
    tolerance_ = 0;
    reference_ns_ = records_per_chunk_ * 12.0;
    SetParams(NnParams{input_.as<const float>(), output_.as<uint32_t>(), passes,
                       distinct_block_tasks_, kQuery});
    return {};
  }

 private:
  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const uint32_t first = static_cast<uint32_t>(index) * records_per_chunk_;
    uint32_t nearest = 0;
    uint32_t nearest_bits = 0xFFFFFFFFU;
    for (uint32_t record = first; record < first + records_per_chunk_; ++record) {
      const float latitude = Uniform(seed_, 2 * record, kLow, kHigh);
      const float longitude = Uniform(seed_, 2 * record + 1, kLow, kHigh);
      const float distance = NnDistance(kQuery, latitude, longitude);
      uint32_t bits;
      std::memcpy(&bits, &distance, sizeof(bits));
      if (bits >= nearest_bits) continue;
      nearest = record;
      nearest_bits = bits;
    }
    expected[0] = nearest;
    expected[1] = nearest_bits;
  }

  DeviceBuffer input_;
  uint32_t records_per_chunk_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakeNn = MakeAs<NnWorkload>;

}  // namespace gpushare::kernels
