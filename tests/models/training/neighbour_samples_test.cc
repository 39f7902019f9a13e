// Measured pairs on partitions, with what is known of the neighbour.

#include "src/models/training/neighbour_samples.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpushare::models {
namespace {

constexpr int32_t kSms = 132;

class NeighbourSamplesTest : public ::testing::Test {
 protected:
  NeighbourSamplesTest() {
    samples_.head.sm_count = kSms;
    SampleRow counters;
    counters.what = SampleKind::kCounters;
    counters.kernel = "be";
    counters.block_tasks = 100;
    counters.counters = {{"instructions", 1e6},
                         {"issue", 0.5},
                         {"dram", 0.8},
                         {"l2", 0.7},
                         {"tensor", 0.1},
                         {"dram_bytes", 1000},
                         {"dram_write_bytes", 250}};
    samples_.rows.push_back(counters);
    SampleRow pair;
    pair.what = SampleKind::kBeside;
    pair.kernel = "lc";
    pair.form = core::Form::kGraph;
    pair.sms = kSms - 33;
    pair.neighbour = counters.kernel;
    pair.neighbour_sms = 33;
    pair.alone_ns = {90, 100, 110};
    pair.ns = {190, 200, 210};
    samples_.rows.push_back(pair);
  }

  void AddSolo(int64_t block_tasks, int32_t sms, int32_t workers_per_sm, double ns) {
    SampleRow row;
    row.kernel = "be";
    row.form = core::Form::kWorkers;
    row.block_tasks = block_tasks;
    row.sms = sms;
    row.workers_per_sm = workers_per_sm;
    row.ns = {ns};
    samples_.rows.push_back(row);
  }

  Samples samples_;
};

TEST_F(NeighbourSamplesTest, APairHasTheCountersTheShareAndTheFactor) {
  const std::vector<MeasuredNeighbour> pairs = MeasuredNeighbours(samples_);
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs[0].kernel, "lc");
  EXPECT_EQ(pairs[0].neighbour, "be");
  EXPECT_EQ(pairs[0].sms, kSms - 33);
  EXPECT_EQ(pairs[0].sample.neighbour.dram, 0.8);
  EXPECT_EQ(pairs[0].sample.neighbour.l2, 0.7);
  EXPECT_EQ(pairs[0].sample.neighbour.tensor, 0.1);
  EXPECT_DOUBLE_EQ(pairs[0].sample.neighbour.dram_write, 0.2);
  EXPECT_EQ(pairs[0].sample.place.share, 0.25);
  EXPECT_EQ(pairs[0].sample.factor, 0.5);
}

// A smaller task has other rounds, and fewer workers are another speed.
TEST_F(NeighbourSamplesTest, TheSpeedIsOfTheCurveOfTheWholeTaskAndAllWorkers) {
  AddSolo(1000, kSms, 0, 100);
  AddSolo(1000, 66, 0, 110);
  AddSolo(1000, 33, 0, 200);
  AddSolo(1000, 33, 1, 700);
  AddSolo(500, kSms, 0, 50);
  AddSolo(500, 33, 0, 500);
  EXPECT_EQ(MeasuredNeighbours(samples_).at(0).sample.place.speed, 0.5);
}

// Half of an SM's issue slots: 1.2 times that share of the SMs takes the whole bandwidth.
TEST_F(NeighbourSamplesTest, WithoutACurveTheCountersTellTheSpeed) {
  AddSolo(1000, kSms, 0, 100);
  AddSolo(500, kSms, 0, 50);
  EXPECT_NEAR(MeasuredNeighbours(samples_).at(0).sample.place.speed, 0.25 / 0.6, 1e-12);
}

TEST_F(NeighbourSamplesTest, WithoutACounterNothingIsKnown) {
  const std::vector<CounterValue> all = samples_.rows[0].counters;
  for (size_t i = 0; i < all.size(); ++i) {
    samples_.rows[0].counters = all;
    samples_.rows[0].counters.erase(samples_.rows[0].counters.begin() +
                                    static_cast<std::ptrdiff_t>(i));
    EXPECT_TRUE(MeasuredNeighbours(samples_).empty()) << all[i].name;
  }
}

}  // namespace
}  // namespace gpushare::models
