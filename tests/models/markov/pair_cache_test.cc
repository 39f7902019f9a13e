// What the cache of pairs finds, in which order, and what it gives up.

#include "src/models/markov/pair_cache.h"

#include <cstdint>
#include <memory>

#include "gtest/gtest.h"

namespace gpushare::models::markov {
namespace {

PairPrediction Prediction(double first, double second) {
  PairPrediction prediction;
  prediction.known = true;
  prediction.sides[0].finish_ns = first;
  prediction.sides[1].finish_ns = second;
  return prediction;
}

class MarkovPairCacheTest : public testing::Test {
 protected:
  std::unique_ptr<PairCache> cache_ = std::make_unique<PairCache>();
};

TEST_F(MarkovPairCacheTest, APairIsFoundInBothOrdersWithItsOwnSides) {
  const SideKey a = {.kernel = 7, .blocks_per_sm = 2, .blocks = 100};
  const SideKey b = {.kernel = 3, .blocks_per_sm = 4, .blocks = 50};
  EXPECT_EQ(cache_->Find(a, b), nullptr);
  cache_->Insert(a, b, Prediction(1, 2));
  ASSERT_NE(cache_->Find(a, b), nullptr);
  EXPECT_EQ(cache_->Find(a, b)->sides[0].finish_ns, 1);
  ASSERT_NE(cache_->Find(b, a), nullptr);
  EXPECT_EQ(cache_->Find(b, a)->sides[0].finish_ns, 2);
}

TEST_F(MarkovPairCacheTest, AnotherSplitOrSizeIsAnotherPair) {
  const SideKey a = {.kernel = 1, .blocks_per_sm = 2, .blocks = 100};
  const SideKey b = {.kernel = 2, .blocks_per_sm = 4, .blocks = 50};
  cache_->Insert(a, b, Prediction(1, 2));
  EXPECT_EQ(cache_->Find({1, 3, 100}, b), nullptr);
  EXPECT_EQ(cache_->Find(a, {2, 4, 51}), nullptr);
  EXPECT_EQ(cache_->Find({3, 2, 100}, b), nullptr);
}

TEST_F(MarkovPairCacheTest, ANewPredictionReplacesTheOldOne) {
  const SideKey a = {.kernel = 1};
  const SideKey b = {.kernel = 2};
  for (int i = 1; i <= 10; ++i) cache_->Insert(b, a, Prediction(i, 2));
  EXPECT_EQ(cache_->Find(b, a)->sides[0].finish_ns, 10);
  cache_->Clear();
  EXPECT_EQ(cache_->Find(a, b), nullptr);
}

TEST_F(MarkovPairCacheTest, AFullCacheKeepsTheNewestAndAnswersOnlyForItsPairs) {
  constexpr uint32_t kPairs = 4 * kCacheSets * kCacheWays;
  for (uint32_t i = 0; i < kPairs; ++i) {
    cache_->Insert({.kernel = i}, {.kernel = i + 1}, Prediction(i, -1.0 * i));
    const PairPrediction* const newest = cache_->Find({.kernel = i}, {.kernel = i + 1});
    ASSERT_NE(newest, nullptr);
    ASSERT_EQ(newest->sides[0].finish_ns, i);
  }
  uint32_t kept = 0;
  for (uint32_t i = 0; i < kPairs; ++i) {
    const PairPrediction* const found = cache_->Find({.kernel = i}, {.kernel = i + 1});
    if (found == nullptr) continue;
    ++kept;
    EXPECT_EQ(found->sides[0].finish_ns, i);
  }
  EXPECT_LE(kept, kCacheSets * kCacheWays);
  EXPECT_GT(kept, kCacheSets * kCacheWays * 3 / 4) << "the sets fill unevenly";
}

}  // namespace
}  // namespace gpushare::models::markov
