// Values of all splits at once, against the same rule written for one split and one app at a time;
// and values kept from one question to the next, against values computed anew.

#include "src/core/policies/adaptive/arrangement/value.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "src/core/queueing/queue_tail.h"

namespace gpushare::core {
namespace {

constexpr int32_t kApps = 4;
constexpr int32_t kKernels = 12;
constexpr int32_t kSplits = 8;

class ValueTest : public ::testing::Test {
 protected:
  ValueTest() : options_(static_cast<size_t>(kApps * kKernels * kSplits)) {
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
      term.shift_ns = term.fits ? 1000 * static_cast<int64_t>(random_() % 100) : 0;
      term.weight = 1 + static_cast<double>(random_() % 3);
    }
  }

  void ExpectEqual(const char* after) {
    values_.Ask(question_, table_);
    const BySplit kept = values_.Planned();
    const auto fresh = std::make_unique<SplitValues>();
    fresh->Ask(question_, table_);
    ASSERT_EQ(fresh->Planned(), kept) << after;
    for (int32_t split = question_.first_split; split < kSplits; ++split) {
      double value = 0;
      double weights = 0;
      Arrangement arrangement;
      arrangement.split = split;
      values_.FillSides(arrangement);
      for (int32_t b = 0; b < question_.be_count; ++b) {
        const BeTerm& be = question_.be[static_cast<size_t>(b)];
        const Sides sides = arrangement.sides[static_cast<size_t>(be.kernel)];
        ASSERT_NO_FATAL_FAILURE(ExpectSides(be, split, sides)) << after << ", kernel " << be.kernel;
        value += be.weight * ValueOf(be, split, sides);
        weights += be.weight;
      }
      ASSERT_NEAR(kept[static_cast<size_t>(split)], weights > 0 ? value / weights : 0, 1e-9)
          << after << ", split " << split;
      positive_ += value > 0 ? 1 : 0;
    }
  }

  // Loads of the LC apps on the whole device, or on the LC side beside the kernel.
  struct Loads {
    double load = 0;
    double judged = 0;  // with the highest load of late of an app with a target and a stated p99
    double service_ns = 0;
    bool stands = true;  // the queue does not grow without end
  };
  Loads WholeLoads() const {
    Loads loads;
    for (int32_t a = 0; a < question_.lc_count; ++a)
      AddLoad(question_.lc[static_cast<size_t>(a)], 1, loads);
    if (loads.load > 0) loads.service_ns /= loads.load;
    return loads;
  }
  Loads SideLoads(int32_t kernel, int32_t split) const {
    Loads loads;
    double peak = 0;
    for (int32_t a = 0; a < question_.lc_count; ++a) {
      const LcTerm& lc = question_.lc[static_cast<size_t>(a)];
      if (lc.silent) continue;
      const double speed = table_.at(a, kernel, split).lc_speed;
      loads.stands = loads.stands && speed > 0;
      AddLoad(lc, speed, loads);
      peak += lc.peak_load / speed;
    }
    if (loads.load > 0) loads.service_ns /= loads.load;
    loads.stands =
        loads.stands && loads.load < 1 && loads.judged < 1 && (!Targets() || peak <= kQueueLoadMax);
    return loads;
  }
  static void AddLoad(const LcTerm& lc, double speed, Loads& loads) {
    loads.load += lc.load / speed;
    loads.judged += (Stated(lc) ? std::max(lc.load, lc.peak_load) : lc.load) / speed;
    loads.service_ns += lc.load / speed * static_cast<double>(lc.promise.solo_ns) / speed;
  }
  static bool Stated(const LcTerm& lc) { return lc.promise.target_tail > 0 && !lc.promise.bare; }
  bool Targets() const {
    return std::any_of(question_.lc.begin(), question_.lc.begin() + question_.lc_count,
                       [](const LcTerm& lc) { return lc.promise.target_tail > 0; });
  }

  // The room that the LC app closest to its limit has left; below 0: it misses its promise. Apps
  // with targets: whether they keep them, as +1 or -1.
  double Room(int32_t kernel, int32_t split, int64_t blocking_ns) const {
    const Loads whole = WholeLoads();
    const Loads side = SideLoads(kernel, split);
    if (!side.stands) return -1;
    double room = 1;
    for (int32_t a = 0; a < question_.lc_count; ++a) {
      const LcTerm& lc = question_.lc[static_cast<size_t>(a)];
      if (lc.silent) continue;
      const double speed = table_.at(a, kernel, split).lc_speed;
      const double inflation = Queueing(whole.judged, side.judged, question_.load_margin) / speed;
      if (lc.promise.target_tail > 0) {
        const auto solo_ns = static_cast<double>(lc.promise.solo_ns);
        const QueueEffect effect = {inflation,
                                    QueueP99(solo_ns / speed, side.service_ns, side.judged),
                                    QueueP99(solo_ns, whole.service_ns, whole.judged)};
        room = std::min(room, lc.promise.Keeps(effect, blocking_ns) ? 1.0 : -1.0);
      } else {
        room = std::min(
            room, lc.promise.MostInflation().At(static_cast<double>(blocking_ns)) - inflation);
      }
    }
    return room;
  }

  void ExpectSides(const BeTerm& be, int32_t split, Sides sides) {
    constexpr double kTie = 1e-6;
    ++sides_[static_cast<size_t>(sides)];
    const bool judged = std::any_of(question_.lc.begin(), question_.lc.begin() + question_.lc_count,
                                    [](const LcTerm& lc) { return !lc.silent; });
    const double beside = judged ? Room(be.kernel, split, 0) : -1;
    const double both = beside > 0 && be.fits ? Room(be.kernel, split, be.shift_ns) : -1;
    if (std::abs(beside) < kTie || std::abs(both) < kTie) return;  // rounding decides
    const Sides expected = beside < 0 ? Sides::kNone : both < 0 ? Sides::kBeSide : Sides::kBoth;
    ASSERT_EQ(sides, expected) << "split " << split;
  }

  double ValueOf(const BeTerm& be, int32_t split, Sides sides) const {
    if (sides == Sides::kNone) return 0;
    double be_side = 1e9;
    double lc_side = 1e9;
    double returns = 0;
    double load = 0;
    for (int32_t a = 0; a < question_.lc_count; ++a) {
      const LcTerm& lc = question_.lc[static_cast<size_t>(a)];
      load += lc.load;
      if (lc.promise.solo_ns > 0) returns += lc.load / static_cast<double>(lc.promise.solo_ns);
      if (lc.silent) continue;
      be_side = std::min<double>(be_side, table_.at(a, be.kernel, split).be_speed_be_side);
      lc_side = std::min<double>(lc_side, table_.at(a, be.kernel, split).be_speed_lc_side);
    }
    if (sides == Sides::kBeSide || !be.evictable) return be_side;
    const double idle =
        std::max(0.0, 1 - SideLoads(be.kernel, split).load - returns * (1 - load) * kReturnGapNs);
    return idle * (be_side + lc_side) + (1 - idle) * be_side;
  }

  std::mt19937 random_{3};
  std::vector<PairOption> options_;
  PairTable table_;
  Question question_;
  SplitValues values_;
  int positive_ = 0;
  std::array<int, 3> sides_{};  // seen, by Sides
};

TEST_F(ValueTest, AValueIsThatOfTheQuestionWhateverChanged) {
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
