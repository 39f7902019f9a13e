// Shares and orders; see plan.h.

#include "src/calibration/stages/plan.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace gpushare::models {
namespace {

// 0 for the pairs that can gain most.
int RankOf(Intensity a, Intensity b) {
  if (a == Intensity::kUnknown || b == Intensity::kUnknown) return 1;
  return a == b ? 2 : 0;
}

// Indices of `keys`, sorted by them; equal ones stay in order.
template <class Key>
std::vector<size_t> OrderBy(const std::vector<Key>& keys) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  return order;
}

}  // namespace

double SecondsOfStage(Stage stage, double seconds_left, const std::array<size_t, kStages>& work) {
  const auto own = static_cast<size_t>(stage);
  double shares = 0;
  for (size_t i = own; i < kStages; ++i) {
    if (i == own || work[i] > 0) shares += kStageShares[i].share;
  }
  return std::max(0.0, seconds_left) * kStageShares[own].share / shares;
}

std::vector<size_t> KernelsByValue(absl::Span<const uint8_t> queries,
                                   absl::Span<const ItemPair> fused_parts) {
  std::vector<int> keys(queries.size(), 2);
  for (const auto& [tensor, cuda] : fused_parts) keys[tensor] = keys[cuda] = 1;
  for (size_t i = 0; i < queries.size(); ++i) {
    if (queries[i] != 0) keys[i] = 0;
  }
  return OrderBy(keys);
}

std::vector<size_t> PairsByValue(absl::Span<const ItemPair> pairs,
                                 absl::Span<const Intensity> intensities) {
  const size_t items = intensities.size();
  std::vector<std::pair<int, size_t>> keys;
  keys.reserve(pairs.size());
  for (const auto& [first, second] : pairs) {
    // Pairs of equal distance are a diagonal of the table of pairs, on which each item is at most
    // twice.
    keys.emplace_back(RankOf(intensities[first], intensities[second]),
                      (second + items - first) % items);
  }
  return OrderBy(keys);
}

std::vector<size_t> FusedByValue(absl::Span<const ItemPair> parts,
                                 absl::Span<const uint8_t> spills) {
  std::map<ItemPair, size_t> variants;
  std::vector<std::pair<bool, size_t>> keys;
  keys.reserve(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    keys.emplace_back(spills[i] == 0, spills[i] != 0 ? 0 : variants[parts[i]]++);
  }
  return OrderBy(keys);
}

}  // namespace gpushare::models
