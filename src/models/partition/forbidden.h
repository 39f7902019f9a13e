// Pairs that shall not be merged again (thesis 3.5.3).
//
// Two lists. A failed merge forbids its two partitions. With ACT, every pair of tasks is tested
// ahead, and a pair that cannot be merged keeps every two partitions apart that hold it. (3.5.3
// swaps the names; 3.6.2 has them as here.) Threads: one a list.

#ifndef GPUSHARE_SRC_MODELS_PARTITION_FORBIDDEN_H_
#define GPUSHARE_SRC_MODELS_PARTITION_FORBIDDEN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/models/partition/lemmas.h"

namespace gpushare::models::partition {

// A square of flags.
class PairFlags {
 public:
  explicit PairFlags(int count)
      : words_((static_cast<size_t>(count) + 63) / 64),
        bits_(words_ * static_cast<size_t>(count)) {}

  void Set(int a, int b) {
    bits_[At(a, b)] |= Bit(b);
    bits_[At(b, a)] |= Bit(a);
  }
  bool Has(int a, int b) const { return (bits_[At(a, b)] & Bit(b)) != 0; }
  // The flags of all pairs with `a`, 64 in a word.
  std::span<const uint64_t> Row(int a) const {
    return std::span(bits_).subspan(static_cast<size_t>(a) * words_, words_);
  }

 private:
  size_t At(int row, int column) const {
    return (static_cast<size_t>(row) * words_) + (static_cast<size_t>(column) / 64);
  }
  static uint64_t Bit(int column) { return uint64_t{1} << (column % 64); }

  size_t words_;
  std::vector<uint64_t> bits_;
};

// ACT's list: the pairs of tasks that have no valid merge, from the partitions of OneEach.
PairFlags TestAllPairs(Tester& tester, const std::vector<Partition>& singles);

// The tasks of a partition, and those that must not join them, as flags.
class Apart {
 public:
  Apart(const PairFlags& pairs, std::span<const int32_t> tasks);
  bool Forbids(const Apart& other) const;

 private:
  std::vector<uint64_t> members_;
  std::vector<uint64_t> forbidden_;
};

}  // namespace gpushare::models::partition

#endif  // GPUSHARE_SRC_MODELS_PARTITION_FORBIDDEN_H_
