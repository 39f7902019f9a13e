#include "src/models/markov/pair_cache.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace gpushare::models::markov {
namespace {

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15U;  // the golden ratio, of 64 bits
  return hash ^ (hash >> 32U);
}

size_t SetOf(const SideKey& low, const SideKey& high) {
  uint64_t hash = 0;
  for (const SideKey* side : {&low, &high}) {
    hash = Mix(hash, side->kernel);
    hash = Mix(hash, static_cast<uint64_t>(side->blocks_per_sm));
    hash = Mix(hash, static_cast<uint64_t>(side->blocks));
  }
  return hash % kCacheSets;
}

}  // namespace

const PairPrediction* PairCache::Find(const SideKey& first, const SideKey& second) const {
  const bool swapped = second < first;
  const SideKey& low = swapped ? second : first;
  const SideKey& high = swapped ? first : second;
  for (const Entry& entry : sets_[SetOf(low, high)].entries) {
    if (entry.used && entry.low == low && entry.high == high) {
      return &entry.predictions[swapped ? 1 : 0];
    }
  }
  return nullptr;
}

void PairCache::Insert(const SideKey& first, const SideKey& second,
                       const PairPrediction& prediction) {
  const bool swapped = second < first;
  PairPrediction mirrored = prediction;
  std::swap(mirrored.sides[0], mirrored.sides[1]);
  const Entry fresh = {
      .used = true,
      .low = swapped ? second : first,
      .high = swapped ? first : second,
      .predictions = {swapped ? mirrored : prediction, swapped ? prediction : mirrored}};
  Set& set = sets_[SetOf(fresh.low, fresh.high)];
  const auto same = std::find_if(set.entries.begin(), set.entries.end(), [&](const Entry& entry) {
    return entry.used && entry.low == fresh.low && entry.high == fresh.high;
  });
  if (same != set.entries.end()) {
    *same = fresh;
    return;
  }
  set.entries[set.oldest] = fresh;
  set.oldest = (set.oldest + 1) % kCacheWays;
}

void PairCache::Clear() {
  for (Set& set : sets_) set = {};
}

}  // namespace gpushare::models::markov
