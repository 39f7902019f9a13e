// The workload of histogram.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "benchmarks/kernels/block_task_share.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/hashed_fill.h"
#include "benchmarks/kernels/irregular/histogram.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr double kInputBytesMax = 1 << 30;
constexpr double kSharedBytesPerByte = 8;  // a counter read and written
constexpr double kSharedBytesPerClock = 128;

class HistogramWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    const double bytes_per_us =
        kReferenceClockMhz * kSharedBytesPerClock / kSharedBytesPerByte * options.sms;
    const double bytes = BlockTaskBytes(options, bytes_per_us, kernel.workers_per_sm);
    const uint32_t passes = WholeUnits(bytes, kHistogramBytesPerPass);
    const uint64_t chunk_bytes = static_cast<uint64_t>(passes) * kHistogramBytesPerPass;
    words_per_chunk_ = static_cast<uint32_t>(chunk_bytes / sizeof(uint32_t));
    distinct_block_tasks_ =
        RingWithin(options, grid_.x, kInputBytesMax, static_cast<double>(chunk_bytes));
    Status status = input_.Allocate(chunk_bytes * distinct_block_tasks_);
    if (status.ok()) status = FillHashed(input_, seed_, 0xFFFFFFFFU);
    if (status.ok()) {
      status = AllocateOutput(static_cast<uint64_t>(distinct_block_tasks_) * kHistogramBins, 1);
    }
    if (!status.ok()) return status;
    work_per_block_task_ = kSharedBytesPerByte * static_cast<double>(chunk_bytes);
    integers_ = true;
    tolerance_ = 0;
    // Records come in order, and those of a chunk share the count.
    reference_ns_ = std::max(10.0, words_per_chunk_ * 8.0 / kHistogramBins);
    SetParams(HistogramParams{input_.as<const uint32_t>(), output_.as<uint32_t>(), passes,
                              distinct_block_tasks_});
    return {};
  }

 private:
  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const auto chunk = static_cast<int64_t>(index / kHistogramBins);
    if (chunk != counted_chunk_) Count(static_cast<uint32_t>(chunk));
    counted_chunk_ = chunk;
    expected[0] = counts_[index % kHistogramBins];
  }

  void Count(uint32_t chunk) const {
    counts_ = {};
    const uint32_t first = chunk * words_per_chunk_;
    for (uint32_t i = 0; i < words_per_chunk_; ++i) {
      uint32_t word = Hash(seed_, first + i);
      for (int byte = 0; byte < 4; ++byte, word >>= 8) ++counts_[word & 0xFF];
    }
  }

  DeviceBuffer input_;
  uint32_t words_per_chunk_ = 0;
  // The counts of the chunk that was asked for last.
  mutable std::array<uint32_t, kHistogramBins> counts_ = {};
  mutable int64_t counted_chunk_ = -1;
};

}  // namespace

extern const WorkloadMaker kMakeHistogram = MakeAs<HistogramWorkload>;

}  // namespace gpushare::kernels
