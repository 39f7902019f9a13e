// ACT's list. See forbidden.h.

#include "src/models/partition/forbidden.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpushare::models::partition {

PairFlags TestAllPairs(Tester& tester, const std::vector<Partition>& singles) {
  PairFlags pairs(static_cast<int>(singles.size()));
  for (size_t a = 0; a < singles.size(); ++a) {
    for (size_t b = a + 1; b < singles.size(); ++b) {
      // The largest valid size decides, because a larger one never holds less.
      const int most = std::min(singles[a].size + singles[b].size - 1, tester.workload().sizes());
      const int32_t both[] = {static_cast<int32_t>(a), static_cast<int32_t>(b)};
      const bool valid = most >= std::max(singles[a].size, singles[b].size);
      if (!valid || !tester.Holds(both, most)) pairs.Set(static_cast<int>(a), static_cast<int>(b));
    }
  }
  return pairs;
}

Apart::Apart(const PairFlags& pairs, std::span<const int32_t> tasks)
    : members_(pairs.Row(0).size()), forbidden_(members_.size()) {
  for (const int32_t task : tasks) {
    members_[static_cast<size_t>(task) / 64] |= uint64_t{1} << (task % 64);
    const std::span<const uint64_t> row = pairs.Row(task);
    for (size_t i = 0; i < row.size(); ++i) forbidden_[i] |= row[i];
  }
}

bool Apart::Forbids(const Apart& other) const {
  for (size_t i = 0; i < members_.size(); ++i) {
    if ((forbidden_[i] & other.members_[i]) != 0) return true;
  }
  return false;
}

}  // namespace gpushare::models::partition
