// Values kept from one question to the next equal values computed anew, to the last bit, and so do
// the sides of each kernel.

#include "src/core/policies/adaptive/arrangement/split_values.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <vector>

namespace gpushare::core {
namespace {

constexpr int32_t kApps = 4;
constexpr int32_t kKernels = 12;
constexpr int32_t kSplits = 8;

class SplitValuesTest : public ::testing::Test {
 protected:
  SplitValuesTest() : options_(static_cast<size_t>(kApps * kKernels * kSplits)) {
    NewTable();
    question_.splits = kSplits;
    question_.lc_count = kApps;
    for (int32_t a = 0; a < kApps; ++a) NewLcTerm(a);
  }

  double Share() { return static_cast<double>(random_() % 1000) / 1000; }

  void NewTable() {
    for (PairOption& option : options_) {
      option.lc_speed = static_cast<float>(0.8 + 0.25 * Share());
      if (random_() % 50 == 0) option.lc_speed = 0;
      option.lc_speed_alone = 1;
      option.be_speed_be_side = static_cast<float>(Share());
      option.be_speed_lc_side = static_cast<float>(Share());
    }
    table_.options = options_;
    table_.kernels = kKernels;
    table_.splits = kSplits;
    question_.pairs_version = ++table_.version;
  }
  void NewLcTerm(int32_t app) {
    LcTerm& term = question_.lc[static_cast<size_t>(app)];
    term = LcTerm();
    term.load = 0.15 * Share();
    term.promise.p99_ns = random_() % 8 == 0 ? 0 : 2'000'000;
    term.promise.solo_ns = random_() % 8 == 0 ? 0 : 600'000;
    if (random_() % 8 != 0) term.promise.p99_bound = 1.02 + 0.5 * Share();
    if (random_() % 4 == 0) term.promise.p50_bound = 1.02 + 0.5 * Share();
    if (random_() % 4 == 0) term.promise.target_ns = static_cast<int64_t>(2e6 + 2e6 * Share());
    if (random_() % 16 == 0) {
      term.promise.target_ns = 3'000'000;
      term.promise.target_tail = 1;
      term.promise.bare = random_() % 2 == 0;
      term.peak_load = term.load;
    }
    term.silent = random_() % 16 == 0;
    // On the bound: at a speed of 1 and no other load its inflation is 1.
    if (random_() % 8 == 0) term.promise.p99_bound = 1;
  }
  void NewBeTerms() {
    question_.be_count = 0;
    for (int32_t k = 0; k < kKernels; ++k) {
      if (random_() % 3 == 0) continue;
      BeTerm& term = question_.be[static_cast<size_t>(question_.be_count++)];
      term = BeTerm();
      term.kernel = k;
      term.fits = random_() % 2 == 0;
      term.evictable = random_() % 4 != 0;
      term.blocking_ns = term.fits ? 1000 * static_cast<int64_t>(random_() % 100) : 0;
      term.weight = 1 + static_cast<double>(random_() % 3);
    }
  }

  void ExpectEqual(const char* after) {
    const Evaluation evaluation(question_, table_);
    values_.Update(question_, evaluation);
    const SplitValues::Values all = values_.All(question_, evaluation);
    for (int32_t split = question_.first_split; split < kSplits; ++split) {
      const double value =
          evaluation.SplitValue(split, Mechanism::kBest, Speeds::kPlanned, nullptr);
      ASSERT_EQ(all[static_cast<size_t>(split)], value) << after << ", split " << split;
      positive_ += value > 0 ? 1 : 0;
      ASSERT_NO_FATAL_FAILURE(ExpectSides(evaluation, split)) << after;
    }
  }

  void ExpectSides(const Evaluation& evaluation, int32_t split) {
    Arrangement anew;
    evaluation.SplitValue(split, Mechanism::kBest, Speeds::kPlanned, &anew);
    Arrangement kept;
    kept.split = split;
    values_.FillSides(question_, evaluation, kept);
    for (int32_t b = 0; b < question_.be_count; ++b) {
      const auto kernel = static_cast<size_t>(question_.be[static_cast<size_t>(b)].kernel);
      ASSERT_EQ(kept.sides[kernel], anew.sides[kernel]) << "kernel " << kernel;
      ++sides_[static_cast<size_t>(anew.sides[kernel])];
    }
  }

  std::mt19937 random_{3};
  std::vector<PairOption> options_;
  PairTable table_;
  Question question_;
  SplitValues values_;
  int positive_ = 0;
  std::array<int, 3> sides_{};  // seen, by Sides
};

TEST_F(SplitValuesTest, AValueIsThatOfTheQuestionWhateverChanged) {
  for (int step = 0; step < 600; ++step) {
    NewBeTerms();
    ASSERT_NO_FATAL_FAILURE(ExpectEqual("other BE terms"));
    switch (step % 6) {
      case 0:
        NewLcTerm(static_cast<int32_t>(random_() % kApps));
        ASSERT_NO_FATAL_FAILURE(ExpectEqual("another LC term"));
        break;
      case 1:
        NewTable();
        ASSERT_NO_FATAL_FAILURE(ExpectEqual("another table"));
        break;
      case 2:
        question_.load_margin = 0.1 * Share();
        ASSERT_NO_FATAL_FAILURE(ExpectEqual("another margin"));
        break;
      case 3:
        question_.first_split = static_cast<int32_t>(random_() % kSplits);
        ASSERT_NO_FATAL_FAILURE(ExpectEqual("other reservations"));
        break;
      case 4:
        question_.lc[random_() % kApps].load = 0.15 * Share();
        ASSERT_NO_FATAL_FAILURE(ExpectEqual("another load"));
        NewBeTerms();
        ASSERT_NO_FATAL_FAILURE(ExpectEqual("other BE terms after another load"));
        break;
      default:
        question_.lc_count = 1 + static_cast<int32_t>(random_() % kApps);
        ASSERT_NO_FATAL_FAILURE(ExpectEqual("another number of LC apps"));
    }
  }
  EXPECT_GT(positive_, 100);
  for (const int seen : sides_) EXPECT_GT(seen, 100);
}

}  // namespace
}  // namespace gpushare::core
