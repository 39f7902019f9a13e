#include "benchmarks/kernels/workload_base.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "benchmarks/kernels/hash.h"

namespace gpushare::kernels {
namespace {

// Records of one read when all are checked, and how many reads a sample is made of, about.
constexpr uint64_t kWholeReadRecords = 1U << 20;
constexpr uint64_t kSampleRecordsMin = 16;
constexpr double kSampleReads = 256;

double WordValue(uint32_t word, bool integer) {
  if (integer) return word;
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

}  // namespace

Grid GridOf(uint32_t block_tasks, uint32_t across) {
  const uint32_t rows = block_tasks / across;
  uint32_t y = std::min(rows, kGridYMax);
  while (rows % y != 0) --y;
  return {block_tasks / y, y, 1};
}

uint32_t RingOf(const WorkloadOptions& options, uint32_t block_tasks, uint32_t fallback) {
  const uint32_t limit = options.ring_max > 0 ? options.ring_max : fallback;
  return std::max(1U, std::min(block_tasks, limit));
}

Status RecordWorkload::AllocateOutput(uint64_t records, uint32_t words_per_record) {
  records_ = records;
  words_ = words_per_record;
  Status status = output_.Allocate(records * words_per_record * sizeof(uint32_t));
  if (status.ok()) status = output_.FillPattern();
  return status;
}

void RecordWorkload::Compare(uint64_t index, const uint32_t* words,
                             Verification* verification) const {
  double expected[kRecordWordsMax] = {};
  Reference(index, expected);
  ++verification->checked;
  for (uint32_t w = 0; w < words_; ++w) {
    const double value = WordValue(words[w], integers_);
    const double error = std::abs(value - expected[w]);
    if (error > verification->error_max) verification->error_max = error;
    if (error <= tolerance_) continue;  // false for a NaN: what was never written is wrong
    ++verification->wrong;
    if (verification->first_wrong.empty()) {
      verification->first_wrong = "Word " + std::to_string(w) + " of record " +
                                  std::to_string(index) + " is " + std::to_string(value) +
                                  ", and " + std::to_string(expected[w]) + " within " +
                                  std::to_string(tolerance_) + " is expected.";
    }
    return;
  }
}

Status RecordWorkload::Verify(double budget_s, Verification* verification) {
  *verification = {};
  verification->records = records_;
  verification->tolerance = tolerance_;
  const double affordable = std::max(1.0, budget_s * 1e9 / reference_ns_);
  const bool all = affordable >= static_cast<double>(records_);
  const uint64_t sampled =
      std::clamp(static_cast<uint64_t>(std::min(affordable, 1e9) / kSampleReads), kSampleRecordsMin,
                 kWholeReadRecords);
  const uint64_t group = std::min(records_, all ? kWholeReadRecords : sampled);
  const uint64_t groups_in_all = (records_ + group - 1) / group;
  const uint64_t groups =
      all ? groups_in_all
          : std::max<uint64_t>(2, static_cast<uint64_t>(affordable / static_cast<double>(group)));
  std::vector<uint32_t> words(group * words_);
  for (uint64_t g = 0; g < groups; ++g) {
    // The first and the last group are always in a sample.
    uint64_t chosen = g;
    if (!all && g == 1) chosen = groups_in_all - 1;
    if (!all && g > 1) chosen = Hash(seed_ + 17, static_cast<uint32_t>(g)) % groups_in_all;
    const uint64_t first = chosen * group;
    const uint64_t count = std::min(group, records_ - first);
    const size_t record_bytes = words_ * sizeof(uint32_t);
    const Status status = output_.Read(first * record_bytes, count * record_bytes, words.data());
    if (!status.ok()) return status;
    for (uint64_t i = 0; i < count; ++i) Compare(first + i, &words[i * words_], verification);
  }
  return {};
}

}  // namespace gpushare::kernels
