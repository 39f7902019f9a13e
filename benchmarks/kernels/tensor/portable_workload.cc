#include "benchmarks/kernels/tensor/portable_workload.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "benchmarks/kernels/hash.h"

namespace gpushare::kernels {
namespace {

constexpr uint64_t kReadWords = 16;  // of a sample: its reads are many and small
constexpr uint64_t kSampleReadsMax = 4096;
constexpr double kProductNs = 4;

uint32_t SeedOfA(uint32_t seed) { return seed; }
uint32_t SeedOfB(uint32_t seed) { return seed + 0x51ED27U; }

}  // namespace

double PortableTolerance(uint32_t k) {
  // Inputs are uniform in (-1, 1), so a sum of k products has the standard deviation sqrt(k) / 3.
  // Seven of them are not reached by any of 10^9 results.
  const double largest = std::max(1.0, std::min<double>(k, 7 * std::sqrt(k) / 3));
  const double last_place = std::exp2(std::floor(std::log2(largest)) - 7);
  // Below 2^8 sums are exact (portable_inputs.h); beyond, and where Tensor cores cut bits off, each
  // of k / 8 additions loses less than 2^-23 of the sum.
  return last_place / 2 + k / 8.0 * std::exp2(-23) * largest;
}

float FromBf16(uint16_t bits) {
  const uint32_t word = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

Status PortableGemmWorkload::MakeBuffers(const WorkloadOptions& options, uint32_t m, uint32_t n,
                                         uint32_t k) {
  seed_ = options.seed;
  m_ = m;
  n_ = n;
  k_ = k;
  tolerance_ = PortableTolerance(k);
  reference_ns_ = 2.0 * kProductNs * k;
  Status status = a_.Allocate(static_cast<size_t>(m) * k * sizeof(uint16_t));
  if (status.ok()) status = b_.Allocate(static_cast<size_t>(n) * k * sizeof(uint16_t));
  if (status.ok()) status = FillPortableInputs(&a_, SeedOfA(seed_));
  if (status.ok()) status = FillPortableInputs(&b_, SeedOfB(seed_));
  if (status.ok()) status = AllocateOutput(static_cast<uint64_t>(m) * n / 2, 1);
  return status;
}

double PortableGemmWorkload::Element(uint64_t row, uint64_t column) const {
  const auto a = static_cast<uint32_t>(row * k_);
  const auto b = static_cast<uint32_t>(column * k_);
  double sum = 0;
  for (uint32_t i = 0; i < k_; ++i) {
    sum += static_cast<double>(PortableInput(SeedOfA(seed_), a + i)) *
           static_cast<double>(PortableInput(SeedOfB(seed_), b + i));
  }
  return sum;
}

void PortableGemmWorkload::Reference(uint64_t index, double expected[kRecordWordsMax]) const {
  const uint64_t row = index / (n_ / 2);
  const uint64_t column = index % (n_ / 2) * 2;
  expected[0] = Element(row, column);
  expected[1] = Element(row, column + 1);
}

void PortableGemmWorkload::CompareWord(uint64_t index, uint32_t word,
                                       Verification* verification) const {
  double expected[kRecordWordsMax] = {};
  Reference(index, expected);
  ++verification->checked;
  bool wrong = false;
  for (uint32_t half = 0; half < 2; ++half) {
    const double value = static_cast<double>(FromBf16(static_cast<uint16_t>(word >> half * 16)));
    const double error = std::abs(value - expected[half]);
    verification->error_max = std::max(verification->error_max, error);
    if (error <= tolerance_) continue;  // false for a NaN: what was never written is wrong
    wrong = true;
    if (!verification->first_wrong.empty()) continue;
    verification->first_wrong = "Element " + std::to_string(2 * index + half) + " of " +
                                std::to_string(m_) + " x " + std::to_string(n_) + " is " +
                                std::to_string(value) + ", and " + std::to_string(expected[half]) +
                                " within " + std::to_string(tolerance_) + " is expected.";
  }
  if (wrong) ++verification->wrong;
}

// The first and the last words, and between them groups of words anywhere: each tile of a small
// output has some.
Status PortableGemmWorkload::Verify(double budget_s, Verification* verification) {
  *verification = {};
  verification->records = records_;
  verification->tolerance = tolerance_;
  const double affordable = std::max(1.0, budget_s * 1e9 / reference_ns_ / kReadWords);
  const uint64_t groups_in_all = (records_ + kReadWords - 1) / kReadWords;
  const bool all = affordable >= static_cast<double>(groups_in_all);
  const auto sampled = static_cast<uint64_t>(std::min<double>(affordable, kSampleReadsMax));
  const uint64_t groups = all ? groups_in_all : std::max<uint64_t>(2, sampled);
  std::vector<uint32_t> words(kReadWords);
  for (uint64_t g = 0; g < groups; ++g) {
    uint64_t chosen = g;
    if (!all && g == 1) chosen = groups_in_all - 1;
    if (!all && g > 1) chosen = Hash(seed_ + 17, static_cast<uint32_t>(g)) % groups_in_all;
    const uint64_t first = chosen * kReadWords;
    const uint64_t count = std::min(kReadWords, records_ - first);
    Status status = output_.Read(first * sizeof(uint32_t), count * sizeof(uint32_t), words.data());
    if (!status.ok()) return status;
    for (uint64_t i = 0; i < count; ++i) CompareWord(first + i, words[i], verification);
  }
  return {};
}

}  // namespace gpushare::kernels
