// The feed of a lane, with a fake driver: the test decides what ends and what fails.

#include "src/cuda/lanes/segment_feed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

namespace gpushare::cuda {
namespace {

// A stream: what was launched on it, and how much of it has ended.
struct Stream {
  int launched = 0;
  int ended = 0;
  std::map<CUevent, int> recorded;  // event: what was launched before it
  int events = 0;
  // By count of launches: the answer to the event behind that one.
  std::map<int, CUresult> record_answers;
  CUresult query_answer = CUDA_SUCCESS;
  CUresult launch_answer = CUDA_SUCCESS;
  std::vector<CUgraphExec> instances;  // that were launched
  CUresult stream_answer = CUDA_SUCCESS;
};

Stream& Fake() {
  static Stream stream;
  return stream;
}

DriverApi FakeDriver() {
  Fake() = Stream();
  DriverApi api;
  api.cuGetErrorName = api.cuGetErrorString = [](CUresult /*code*/, const char** text) {
    *text = "an error";
    return CUDA_SUCCESS;
  };
  api.cuEventCreate = [](CUevent* event, unsigned int /*flags*/) {
    *event = reinterpret_cast<CUevent>(static_cast<intptr_t>(++Fake().events));  // NOLINT
    return CUDA_SUCCESS;
  };
  api.cuEventRecord = [](CUevent event, CUstream /*stream*/) {
    Stream& stream = Fake();
    const auto answer = stream.record_answers.find(stream.launched);
    if (answer != stream.record_answers.end()) return answer->second;
    stream.recorded[event] = stream.launched;
    return CUDA_SUCCESS;
  };
  // As CUDA: an event that was never recorded has been reached.
  api.cuEventQuery = [](CUevent event) {
    const Stream& stream = Fake();
    if (stream.query_answer != CUDA_SUCCESS) return stream.query_answer;
    const auto recorded = stream.recorded.find(event);
    const bool reached = recorded == stream.recorded.end() || recorded->second <= stream.ended;
    return reached ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  };
  api.cuStreamQuery = [](CUstream /*stream*/) {
    const Stream& stream = Fake();
    if (stream.stream_answer != CUDA_SUCCESS) return stream.stream_answer;
    return stream.ended == stream.launched ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  };
  api.cuGraphLaunch = [](CUgraphExec graph, CUstream /*stream*/) {
    if (Fake().launch_answer == CUDA_SUCCESS) ++Fake().launched;
    if (Fake().launch_answer == CUDA_SUCCESS) Fake().instances.push_back(graph);
    return Fake().launch_answer;
  };
  return api;
}

CUgraphExec Instance(int number) {
  return reinterpret_cast<CUgraphExec>(static_cast<intptr_t>(number));  // NOLINT
}

class SegmentFeedTest : public testing::Test {
 protected:
  static constexpr int kSegments = 5;

  void SetUp() override { ASSERT_TRUE(feed_.Open(api_).ok()); }
  CUresult Start() {
    SegmentRun run;
    run.segments = segments_;
    run.durations_ns = durations_ns_;
    run.segment_ns = 10;
    run.epoch = 1;
    run.eviction_word = &word_;
    return feed_.Start(api_, nullptr, run, 0);
  }
  bool Advance() { return feed_.Advance(api_, nullptr, ++now_ns_); }

  const DriverApi api_ = FakeDriver();
  const std::array<CUgraphExec, kSegments> segments_{};
  std::vector<int64_t> durations_ns_;  // empty: unknown
  std::atomic<uint64_t> word_{0};
  SegmentFeed feed_;
  core::TimeNs now_ns_ = 0;
};

TEST_F(SegmentFeedTest, TwoSegmentsAreOutstandingUntilTheLast) {
  ASSERT_EQ(Start(), CUDA_SUCCESS);
  for (int ended = 0; ended < kSegments; ++ended) {
    EXPECT_FALSE(Advance());
    EXPECT_EQ(Fake().launched, std::min(kSegments, ended + 2));
    ++Fake().ended;
  }
  EXPECT_TRUE(Advance());
  EXPECT_TRUE(feed_.finished());
  EXPECT_EQ(feed_.error(), CUDA_SUCCESS);
}

// Twelve segments of 100 us, with the instances 1 to 12; three groups of them, 101, 105 and 109,
// and all of them, 1000.
class LongerSegmentsTest : public SegmentFeedTest {
 protected:
  static constexpr size_t kCount = 12;
  static constexpr int64_t kSegmentNs = 100'000;
  static constexpr int64_t kGroupNs = 400'000;

  void SetUp() override {
    SegmentFeedTest::SetUp();
    for (size_t i = 0; i < kCount; ++i) own_.push_back(Instance(static_cast<int>(i) + 1));
    ASSERT_EQ(longer_.size(), 2U);
  }
  void StartAt(size_t first) {
    SegmentRun run;
    run.segments = own_;
    run.durations_ns = durations_ns_;
    run.segment_ns = kSegmentNs;
    run.longer = longer_;
    run.groups = groups_;
    run.longest_ns = &longest_ns_;
    run.first = first;
    run.sequence = sequence_;
    run.epoch = 1;
    run.eviction_word = &word_;
    run.starts_at_once = true;
    ASSERT_EQ(feed_.Start(api_, nullptr, run, 0), CUDA_SUCCESS);
  }
  bool EndOne() {
    ++Fake().ended;
    return Advance();
  }
  static std::vector<int> Launched() {
    std::vector<int> numbers;
    for (CUgraphExec instance : Fake().instances) {
      numbers.push_back(static_cast<int>(reinterpret_cast<intptr_t>(instance)));  // NOLINT
    }
    return numbers;
  }

  std::vector<CUgraphExec> own_;
  const std::vector<core::LongerCut> longer_ = core::LongerCuts({}, kCount, kSegmentNs);
  const std::vector<std::vector<CUgraphExec>> groups_ = {
      {Instance(1000)}, {Instance(101), Instance(105), Instance(109)}};
  std::atomic<int64_t> longest_ns_{0};
  uint64_t sequence_ = 0;
};

TEST_F(LongerSegmentsTest, TheWholeGraphIsOneLaunchWhereTheDeviceAllowsIt) {
  longest_ns_ = core::kNever;
  StartAt(0);
  EXPECT_EQ(Launched(), std::vector<int>{1000});
  EXPECT_TRUE(feed_.finished());
  EXPECT_FALSE(Advance());
  EXPECT_TRUE(EndOne());
  EXPECT_EQ(feed_.longest_ns(), 0) << "it is none of the graph's own segments";
}

TEST_F(LongerSegmentsTest, TwoGroupsAreOutstandingAndARunThatMustBecomeShorterDoesBehindThem) {
  longest_ns_ = kGroupNs;
  StartAt(0);
  EXPECT_EQ(Launched(), (std::vector<int>{101, 105}));
  longest_ns_ = 0;
  EXPECT_FALSE(EndOne());
  EXPECT_EQ(Launched().size(), 2U) << "a segment behind the group would make its wait longer";
  EXPECT_FALSE(EndOne());
  EXPECT_EQ(Launched(), (std::vector<int>{101, 105, 9, 10}));
  EXPECT_FALSE(EndOne());
  EXPECT_FALSE(EndOne());
  EXPECT_FALSE(EndOne());
  EXPECT_TRUE(EndOne());
  EXPECT_EQ(Launched(), (std::vector<int>{101, 105, 9, 10, 11, 12}));
}

TEST_F(LongerSegmentsTest, ARunBecomesLongerWhereAGroupBegins) {
  StartAt(1);
  EXPECT_EQ(Launched(), (std::vector<int>{2, 3}));
  longest_ns_ = core::kNever;
  EndOne();
  EXPECT_EQ(Launched(), (std::vector<int>{2, 3, 4})) << "no group begins before it";
  EndOne();
  EXPECT_EQ(Launched(), (std::vector<int>{2, 3, 4, 105}));
  EndOne();
  EXPECT_EQ(Launched(), (std::vector<int>{2, 3, 4, 105, 109}));
  EXPECT_EQ(feed_.next(), kCount);
}

TEST_F(LongerSegmentsTest, AnEvictionEndsTheRunBehindTheGroups) {
  longest_ns_ = kGroupNs;
  StartAt(0);
  word_ = uint64_t{1} << 32;
  EXPECT_FALSE(EndOne());
  EXPECT_TRUE(EndOne());
  EXPECT_EQ(feed_.next(), 8U);
  EXPECT_FALSE(feed_.finished());
}

// The host sleeps until shortly before the end of a long launch, as of a short one.
TEST_F(LongerSegmentsTest, TheNextLookIsShortlyBeforeTheEndOfTheGroup) {
  durations_ns_.assign(kCount, kSegmentNs);
  longest_ns_ = core::kNever;
  StartAt(0);
  const core::TimeNs look_ns = feed_.NextLookNs(1);
  EXPECT_GT(look_ns, 1'100'000);
  EXPECT_LT(look_ns, 1'200'000);
}

// A core would spin for a whole graph, and groups are never measured.
TEST_F(LongerSegmentsTest, AGroupIsNeverLookedForWithoutAPause) {
  longest_ns_ = core::kNever;
  StartAt(0);
  core::TimeNs now_ns = 1;
  for (; now_ns < 10'000'000; now_ns = feed_.NextLookNs(now_ns)) {
    ASSERT_GE(feed_.NextLookNs(now_ns), now_ns + core::kNapNsMin) << "nobody knows its duration";
    ASSERT_LE(feed_.NextLookNs(now_ns), now_ns + kSegmentNs);
  }
}

TEST_F(LongerSegmentsTest, OnlySegmentsThatNobodyMeasuredAreLookedForWithoutAPause) {
  sequence_ = 1;
  StartAt(0);
  EXPECT_EQ(feed_.NextLookNs(1), 1) << "its end is to be seen at once";
}

TEST_F(LongerSegmentsTest, SegmentsThatWereMeasuredAreLookedForAtTheirEnd) {
  sequence_ = 1;
  durations_ns_.assign(kCount, kSegmentNs);
  StartAt(0);
  EXPECT_GT(feed_.NextLookNs(1), kSegmentNs * 9 / 10);
}

TEST_F(LongerSegmentsTest, GroupsAreNotLookedForInTheLaunchThatMeasuresSegments) {
  sequence_ = 1;
  longest_ns_ = kGroupNs;
  StartAt(0);
  EXPECT_GE(feed_.NextLookNs(1), 1 + core::kNapNsMin);
}

// Of 10 units each, two outstanding ones have at most 20.
TEST_F(SegmentFeedTest, ALongSegmentRunsAlone) {
  durations_ns_ = {10, 10, 11, 9, 300};
  ASSERT_EQ(Start(), CUDA_SUCCESS);
  EXPECT_EQ(Fake().launched, 2);
  Fake().ended = 1;
  EXPECT_FALSE(Advance());
  EXPECT_EQ(Fake().launched, 2) << "10 and 11 are longer than two segments";
  Fake().ended = 2;
  EXPECT_FALSE(Advance());
  EXPECT_EQ(Fake().launched, 4) << "11 and 9 are not";
  Fake().ended = 3;
  EXPECT_FALSE(Advance());
  EXPECT_EQ(Fake().launched, 4);
  Fake().ended = 4;
  EXPECT_FALSE(Advance());
  EXPECT_EQ(Fake().launched, 5);
  Fake().ended = 5;
  EXPECT_TRUE(Advance());
}

TEST_F(SegmentFeedTest, AnEvictionEndsTheRunBehindWhatIsOutstanding) {
  ASSERT_EQ(Start(), CUDA_SUCCESS);
  word_ = uint64_t{1} << 32;
  Fake().ended = 1;
  EXPECT_FALSE(Advance());
  Fake().ended = 2;
  EXPECT_TRUE(Advance());
  EXPECT_EQ(feed_.next(), 2U);
}

TEST_F(SegmentFeedTest, AnEventThatIsNotRecordedDoesNotEndTheRunBeforeTheStream) {
  Fake().record_answers[2] = CUDA_ERROR_INVALID_HANDLE;
  ASSERT_EQ(Start(), CUDA_SUCCESS);
  ASSERT_EQ(Fake().launched, 2);
  EXPECT_FALSE(Advance());
  Fake().ended = 1;
  EXPECT_FALSE(Advance());
  Fake().ended = 2;
  EXPECT_TRUE(Advance());
  EXPECT_EQ(feed_.error(), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Fake().launched, 2) << "Nothing is launched behind an error.";
}

TEST_F(SegmentFeedTest, AnEventThatIsNotRecordedLaterDoesNotEndTheRunBeforeTheStream) {
  Fake().record_answers[3] = CUDA_ERROR_INVALID_HANDLE;
  ASSERT_EQ(Start(), CUDA_SUCCESS);
  Fake().ended = 1;
  EXPECT_FALSE(Advance());
  ASSERT_EQ(Fake().launched, 3);
  Fake().ended = 2;
  EXPECT_FALSE(Advance());
  Fake().ended = 3;
  EXPECT_TRUE(Advance());
  EXPECT_EQ(feed_.error(), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(SegmentFeedTest, AFailedEventQueryDoesNotEndTheRunBeforeTheStream) {
  ASSERT_EQ(Start(), CUDA_SUCCESS);
  Fake().query_answer = CUDA_ERROR_INVALID_HANDLE;
  EXPECT_FALSE(Advance());
  Fake().query_answer = CUDA_SUCCESS;
  Fake().ended = 1;
  EXPECT_FALSE(Advance());
  EXPECT_EQ(Fake().launched, 2) << "Nothing is launched behind an error.";
  Fake().ended = 2;
  EXPECT_TRUE(Advance());
  EXPECT_EQ(feed_.error(), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(SegmentFeedTest, ARefusedSegmentDoesNotEndTheRunBeforeTheStream) {
  ASSERT_EQ(Start(), CUDA_SUCCESS);
  Fake().launch_answer = CUDA_ERROR_OUT_OF_MEMORY;
  Fake().ended = 1;
  EXPECT_FALSE(Advance());
  Fake().ended = 2;
  EXPECT_TRUE(Advance());
  EXPECT_EQ(feed_.next(), 2U);
  EXPECT_EQ(feed_.error(), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(SegmentFeedTest, NothingThatCanBeAskedKeepsTheLane) {
  ASSERT_EQ(Start(), CUDA_SUCCESS);
  Fake().query_answer = CUDA_ERROR_INVALID_HANDLE;
  Fake().stream_answer = CUDA_ERROR_INVALID_HANDLE;
  EXPECT_FALSE(Advance());
  Fake().ended = 2;
  EXPECT_FALSE(Advance());
}

// The application captures the lane's stream, which the driver then refuses to query.
TEST_F(SegmentFeedTest, TheLastEventAnswersForAStreamThatIsCaptured) {
  ASSERT_EQ(Start(), CUDA_SUCCESS);
  Fake().launch_answer = CUDA_ERROR_OUT_OF_MEMORY;
  Fake().stream_answer = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Fake().ended = 1;
  EXPECT_FALSE(Advance());
  EXPECT_FALSE(Advance()) << "the second segment still runs";
  Fake().ended = 2;
  EXPECT_TRUE(Advance());
  EXPECT_EQ(feed_.error(), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(SegmentFeedTest, AnEventThatWasNotRecordedAnswersForNoStream) {
  Fake().record_answers[2] = CUDA_ERROR_INVALID_HANDLE;
  ASSERT_EQ(Start(), CUDA_SUCCESS);
  Fake().stream_answer = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Fake().ended = 1;
  EXPECT_FALSE(Advance()) << "the second segment may still run";
  Fake().stream_answer = CUDA_SUCCESS;
  Fake().ended = 2;
  EXPECT_TRUE(Advance());
}

TEST_F(SegmentFeedTest, TheLossOfTheDeviceEndsTheRunAtOnce) {
  ASSERT_EQ(Start(), CUDA_SUCCESS);
  Fake().query_answer = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_TRUE(Advance());
  EXPECT_EQ(feed_.error(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(SegmentFeedTest, ARefusedFirstSegmentLeavesTheLaneFree) {
  Fake().launch_answer = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(Start(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(feed_.busy());
}

}  // namespace
}  // namespace gpushare::cuda
