// Predicted pairs by kernel ids and blocks per SM: kCacheSets sets of kCacheWays pairs.
//
// A pair and its mirror image share one entry. Invariants: the size is fixed, and neither a lookup
// nor an insertion allocates. A full set gives up its oldest pair. Threads: the owner's.

#ifndef GPUSHARE_SRC_MODELS_MARKOV_PAIR_CACHE_H_
#define GPUSHARE_SRC_MODELS_MARKOV_PAIR_CACHE_H_

#include <array>
#include <cstdint>
#include <tuple>

#include "src/models/markov/co_schedule.h"
#include "src/models/markov/limits.h"

namespace gpushare::models::markov {

// One kernel of a pair. Launches of different sizes are different pairs.
struct SideKey {
  uint32_t kernel = 0;
  int32_t blocks_per_sm = 0;
  int64_t blocks = 0;

  bool operator==(const SideKey&) const = default;
  bool operator<(const SideKey& other) const {
    return std::tie(kernel, blocks_per_sm, blocks) <
           std::tie(other.kernel, other.blocks_per_sm, other.blocks);
  }
};

class PairCache {
 public:
  // Null if the pair is not in the cache. The sides are in the order of the arguments.
  const PairPrediction* Find(const SideKey& first, const SideKey& second) const;
  void Insert(const SideKey& first, const SideKey& second, const PairPrediction& prediction);
  // After the counters of a kernel have changed.
  void Clear();

 private:
  struct Entry {
    bool used = false;
    SideKey low = {};
    SideKey high = {};
    // Of (low, high), and of (high, low).
    std::array<PairPrediction, 2> predictions = {};
  };
  struct Set {
    std::array<Entry, kCacheWays> entries = {};
    uint32_t oldest = 0;
  };

  std::array<Set, kCacheSets> sets_ = {};
};

}  // namespace gpushare::models::markov

#endif  // GPUSHARE_SRC_MODELS_MARKOV_PAIR_CACHE_H_
