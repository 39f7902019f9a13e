// Which segments a feed measures, with a fake driver: the test decides when each one ends, and when
// the host looks.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>

#include "src/cuda/lanes/segment_feed.h"

namespace gpushare::cuda {
namespace {

constexpr int64_t kUs = 1000;

struct Stream {
  int launched = 0;
  int ended = 0;
  int events = 0;
  std::map<CUevent, int> recorded;  // event: what was launched before it
};

Stream& Fake() {
  static Stream stream;
  return stream;
}

DriverApi FakeDriver() {
  Fake() = Stream();
  DriverApi api;
  api.cuEventCreate = [](CUevent* event, unsigned int /*flags*/) {
    *event = reinterpret_cast<CUevent>(static_cast<intptr_t>(++Fake().events));  // NOLINT
    return CUDA_SUCCESS;
  };
  api.cuEventRecord = [](CUevent event, CUstream /*stream*/) {
    Fake().recorded[event] = Fake().launched;
    return CUDA_SUCCESS;
  };
  api.cuEventQuery = [](CUevent event) {
    return Fake().recorded[event] <= Fake().ended ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  };
  api.cuGraphLaunch = [](CUgraphExec /*graph*/, CUstream /*stream*/) {
    ++Fake().launched;
    return CUDA_SUCCESS;
  };
  return api;
}

class SegmentTimingTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(feed_.Open(api_).ok()); }
  void Start(bool starts_at_once) {
    SegmentRun run;
    run.segments = segments_;
    run.epoch = 1;
    run.eviction_word = &word_;
    run.starts_at_once = starts_at_once;
    ASSERT_EQ(feed_.Start(api_, nullptr, run, 0), CUDA_SUCCESS);
  }
  void LookAt(int64_t now_us) { feed_.Advance(api_, nullptr, now_us * kUs); }
  // Looks 5 us before the end of a segment, and then.
  void EndAt(int64_t now_us) {
    LookAt(now_us - 5);
    ++Fake().ended;
    LookAt(now_us);
  }

  const DriverApi api_ = FakeDriver();
  const std::array<CUgraphExec, 5> segments_{};
  std::atomic<uint64_t> word_{0};
  SegmentFeed feed_;
};

TEST_F(SegmentTimingTest, TheFirstSegmentOfAnEmptyLaneIsMeasured) {
  Start(true);
  EndAt(300);
  EndAt(400);
  EXPECT_EQ(feed_.longest_ns(), 300 * kUs);
}

TEST_F(SegmentTimingTest, AFirstSegmentThatMayHaveWaitedIsNotMeasured) {
  Start(false);
  EndAt(300);
  EXPECT_EQ(feed_.longest_ns(), 0);
  EndAt(400);
  EXPECT_EQ(feed_.longest_ns(), 100 * kUs);
}

TEST_F(SegmentTimingTest, AnEndThatTheHostSawLateIsNotMeasured) {
  Start(true);
  EndAt(100);
  LookAt(110);
  ++Fake().ended;  // at 200 us
  LookAt(5000);
  EXPECT_EQ(feed_.longest_ns(), 100 * kUs);
  EndAt(5120);
  EXPECT_EQ(feed_.longest_ns(), 120 * kUs) << "the next one is";
}

TEST_F(SegmentTimingTest, WhatEndsAfterAnEvictionIsNotMeasured) {
  Start(true);
  EndAt(100);
  word_ = uint64_t{1} << 32;
  EndAt(500);
  EXPECT_EQ(feed_.longest_ns(), 100 * kUs);
}

}  // namespace
}  // namespace gpushare::cuda
