// The workload of streaming.

#include <algorithm>
#include <cmath>
#include <memory>

#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/memory/streaming.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr double kInputBytesMax = 1 << 30;  // 18 times the L2 of the reference GPU, and as much out
constexpr float kScale = 1.7F;

class StreamingWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& /*kernel*/, const WorkloadOptions& options) {
    seed_ = options.seed;
    const double bytes_per_pass = 2.0 * sizeof(float) * kStreamingFloatsPerPass;
    const double bytes_per_block_task =
        kReferenceDramBytesPerUs * options.block_task_us / (options.sms * kReferenceWorkersPerSm);
    const auto unrolled = static_cast<uint32_t>(
        std::lround(bytes_per_block_task / bytes_per_pass / kStreamingUnroll));
    const uint32_t passes = std::max(1U, unrolled) * kStreamingUnroll;
    grid_.x = CountBlockTasks(options, options.block_task_us);
    const double chunk_bytes = bytes_per_pass / 2 * passes;
    distinct_block_tasks_ =
        RingOf(options, grid_.x, static_cast<uint32_t>(kInputBytesMax / chunk_bytes));
    const uint64_t floats =
        static_cast<uint64_t>(distinct_block_tasks_) * passes * kStreamingFloatsPerPass;
    Status status = input_.Allocate(floats * sizeof(float));
    if (status.ok()) status = input_.FillUniform(seed_, -1.0F, 1.0F);
    if (status.ok()) status = AllocateOutput(floats, 1);
    if (!status.ok()) return status;
    work_per_block_task_ = bytes_per_pass * passes;
    tolerance_ = 1.2e-7;  // one rounding of a value below 2
    reference_ns_ = 20;
    SetParams(StreamingParams{input_.as<const float>(), output_.as<float>(), distinct_block_tasks_,
                              passes, kScale});
    return {};
  }

 private:
  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    expected[0] =
        static_cast<double>(kScale) * Uniform(seed_, static_cast<uint32_t>(index), -1.0F, 1.0F);
  }

  DeviceBuffer input_;
};

}  // namespace

extern const WorkloadMaker kMakeStreaming = MakeAs<StreamingWorkload>;

}  // namespace gpushare::kernels
