// The workloads of im2col, of 2-byte and of 4-byte elements. The input is words of seeded bits:
// they are only copied, so what they say as numbers plays no part.

#include <cstring>
#include <memory>

#include "benchmarks/kernels/dnn/sizes.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/workload_base.h"
#include "kernels/dnn/im2col.h"

namespace gpushare::kernels {
namespace {

// Whole images of Im2colShapeFor where the ring is bounded by memory.
constexpr uint32_t kRingStep = 64;

// Bytes of an element: 2 or 4.
class Im2colWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options,
              uint32_t element_bytes) {
    seed_ = options.seed;
    per_word_ = sizeof(uint32_t) / element_bytes;
    // Ten values for a pixel and channel: one read, nine written.
    const double bytes_per_tile =
        (1.0 + kIm2colTaps) * element_bytes * kIm2colPixels * kIm2colChannels;
    const uint32_t tiles = UnitsPerBlockTask(options, kernel.workers_per_sm, bytes_per_tile);
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    work_per_block_task_ = bytes_per_tile * tiles;
    distinct_block_tasks_ = DnnRing(options, grid_.x, work_per_block_task_);
    if (distinct_block_tasks_ > kRingStep && distinct_block_tasks_ < grid_.x) {
      distinct_block_tasks_ -= distinct_block_tasks_ % kRingStep;
    }
    shape_ = Im2colShapeFor(distinct_block_tasks_ * tiles);
    const uint64_t values =
        static_cast<uint64_t>(shape_.images) * shape_.channels * shape_.height * shape_.width;
    Status status = input_.Allocate(values * element_bytes);
    if (status.ok()) status = input_.FillUniform(seed_, -1.0F, 1.0F);
    if (status.ok()) status = AllocateOutput(values * kIm2colTaps / per_word_, 1);
    if (!status.ok()) return status;
    integers_ = true;
    tolerance_ = 0;  // copies
    reference_ns_ = 60;
    SetParams(Im2colParams{input_.data(), output_.data(), shape_, distinct_block_tasks_, tiles});
    return {};
  }

 private:
  // The bits of an element of the input.
  uint32_t Input(uint64_t element) const {
    const float value = Uniform(seed_, static_cast<uint32_t>(element / per_word_), -1.0F, 1.0F);
    uint32_t word = 0;
    std::memcpy(&word, &value, sizeof(word));
    if (per_word_ == 1) return word;
    return element % 2 == 0 ? word & 0xFFFFU : word >> 16;
  }

  uint32_t Output(uint64_t element) const {
    const uint64_t columns = static_cast<uint64_t>(shape_.channels) * kIm2colTaps;
    const uint64_t row = element / columns;
    const uint64_t column = element % columns;
    const uint64_t image = row / shape_.width / shape_.height;
    const uint64_t channel = column / kIm2colTaps;
    const uint64_t tap = column % kIm2colTaps;
    // The place in the image plus one, because zeros surround it.
    const uint64_t y = row / shape_.width % shape_.height + tap / kIm2colSide;
    const uint64_t x = row % shape_.width + tap % kIm2colSide;
    if (y < 1 || y > shape_.height || x < 1 || x > shape_.width) return 0;
    const uint64_t plane = image * shape_.channels + channel;
    return Input((plane * shape_.height + y - 1) * shape_.width + x - 1);
  }

  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    uint32_t word = Output(index * per_word_);
    if (per_word_ == 2) word |= Output(index * 2 + 1) << 16;
    expected[0] = word;
  }

  DeviceBuffer input_;
  Im2colShape shape_ = {};
  uint32_t per_word_ = 1;
};

}  // namespace

extern const WorkloadMaker kMakeIm2col = MakeAs<Im2colWorkload, sizeof(uint16_t)>;
extern const WorkloadMaker kMakeIm2colFloat = MakeAs<Im2colWorkload, sizeof(float)>;

}  // namespace gpushare::kernels
