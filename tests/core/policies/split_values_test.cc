// Values kept from one question to the next equal values computed anew, to the last bit.

#include "src/core/policies/adaptive/layout/split_values.h"

#include <gtest/gtest.h>

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
    term.load = 0.15 * Share();
    term.p99_bound = 1.02 + 0.5 * Share();
    term.p99_ns = 2'000'000;
    term.solo_ns = 600'000;
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
    const LayoutEvaluation evaluation(question_, table_);
    values_.Update(question_, evaluation);
    for (int32_t split = question_.first_split; split < kSplits; ++split) {
      const double value =
          evaluation.SplitValue(split, Mechanism::kBest, Speeds::kPlanned, nullptr);
      ASSERT_EQ(values_.Of(question_, evaluation, split), value) << after << ", split " << split;
      positive_ += value > 0 ? 1 : 0;
    }
  }

  std::mt19937 random_{3};
  std::vector<PairOption> options_;
  PairTable table_;
  LayoutQuestion question_;
  SplitValues values_;
  int positive_ = 0;
};

TEST_F(SplitValuesTest, AValueIsThatOfTheQuestionWhateverChanged) {
  for (int step = 0; step < 500; ++step) {
    NewBeTerms();
    ASSERT_NO_FATAL_FAILURE(ExpectEqual("other BE terms"));
    switch (step % 5) {
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
      default:
        question_.lc_count = 1 + static_cast<int32_t>(random_() % kApps);
        ASSERT_NO_FATAL_FAILURE(ExpectEqual("another number of LC apps"));
    }
  }
  EXPECT_GT(positive_, 100);
}

}  // namespace
}  // namespace gpushare::core
