// The marks of a lane, with a fake driver: the test decides when an event is reached.

#include "src/cuda/lanes/lane_marks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "src/cuda/driver/driver_api.h"

namespace gpushare::cuda {
namespace {

enum class State { kIdle, kPending, kReached, kBroken, kCaptured };

std::map<CUevent, State>& Events() {
  static std::map<CUevent, State> events;
  return events;
}

CUresult record_answer = CUDA_SUCCESS;

DriverApi FakeDriver() {
  Events().clear();
  record_answer = CUDA_SUCCESS;
  DriverApi api;
  api.cuGetErrorName = api.cuGetErrorString = [](CUresult /*code*/, const char** text) {
    *text = "an error";
    return CUDA_SUCCESS;
  };
  api.cuEventCreate = [](CUevent* event, unsigned int /*flags*/) {
    *event = reinterpret_cast<CUevent>(Events().size() + 1);  // NOLINT: a handle, never followed
    Events()[*event] = State::kIdle;
    return CUDA_SUCCESS;
  };
  api.cuEventDestroy = [](CUevent event) {
    return Events().erase(event) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  };
  api.cuEventRecord = [](CUevent event, CUstream /*stream*/) {
    if (record_answer == CUDA_SUCCESS) Events()[event] = State::kPending;
    return record_answer;
  };
  api.cuEventQuery = [](CUevent event) {
    switch (Events()[event]) {
      case State::kPending:
        return CUDA_ERROR_NOT_READY;
      case State::kBroken:
        return CUDA_ERROR_ILLEGAL_ADDRESS;
      case State::kCaptured:
        return CUDA_ERROR_CAPTURED_EVENT;
      case State::kIdle:
      case State::kReached:
        break;
    }
    return CUDA_SUCCESS;
  };
  return api;
}

CUevent Event(uint64_t number) { return reinterpret_cast<CUevent>(number); }  // NOLINT

class LaneMarksTest : public testing::Test {
 protected:
  static constexpr uint64_t kMarks = 8;

  void SetUp() override { ASSERT_TRUE(marks_.Open(api_, nullptr, 7, kMarks).ok()); }
  void Set(uint64_t sequence) { ASSERT_TRUE(marks_.Set(api_, nullptr, sequence).ok()); }

  const DriverApi api_ = FakeDriver();
  LaneMarks marks_;
};

TEST_F(LaneMarksTest, BeginsBehindWhatWasReported) {
  EXPECT_EQ(marks_.set(), 7);
  EXPECT_EQ(marks_.Reached(api_), 7);
}

TEST_F(LaneMarksTest, ReportsTheNewestMarkReached) {
  Set(8);
  Set(12);
  EXPECT_EQ(marks_.set(), 12);
  EXPECT_EQ(marks_.Reached(api_), 7);
  Events()[Event(1)] = State::kReached;
  EXPECT_EQ(marks_.Reached(api_), 8);
  Events()[Event(2)] = State::kReached;
  EXPECT_EQ(marks_.Reached(api_), 12);
}

TEST_F(LaneMarksTest, ALaterMarkDoesNotPassAnEarlierOne) {
  Set(8);
  Set(9);
  Events()[Event(2)] = State::kReached;
  EXPECT_EQ(marks_.Reached(api_), 7);
}

TEST_F(LaneMarksTest, WithoutRoomNothingIsSetUntilOneIsRead) {
  for (uint64_t i = 0; i < kMarks; ++i) Set(8 + i);
  const uint64_t last = 7 + kMarks;
  Set(last + 1);
  EXPECT_EQ(marks_.set(), last);
  Events()[Event(1)] = State::kReached;
  EXPECT_EQ(marks_.Reached(api_), 8);
  Set(last + 1);
  EXPECT_EQ(marks_.set(), last + 1);
  EXPECT_EQ(Events()[Event(1)], State::kPending);
}

TEST_F(LaneMarksTest, TheRingWrapsManyTimes) {
  for (uint64_t sequence = 8; sequence < 8 + 5 * kMarks; ++sequence) {
    Set(sequence);
    EXPECT_EQ(marks_.Reached(api_), sequence - 1);
    for (auto& [event, state] : Events()) {
      if (state == State::kPending) state = State::kReached;
    }
    EXPECT_EQ(marks_.Reached(api_), sequence);
  }
}

TEST_F(LaneMarksTest, ARefusedMarkIsNotSet) {
  record_answer = CUDA_ERROR_INVALID_HANDLE;
  EXPECT_FALSE(marks_.Set(api_, nullptr, 8).ok());
  EXPECT_EQ(marks_.set(), 7);
  EXPECT_EQ(marks_.Reached(api_), 7);
}

TEST_F(LaneMarksTest, AfterAStickyErrorNothingIsReached) {
  Set(8);
  Set(9);
  Events()[Event(1)] = State::kBroken;
  Events()[Event(2)] = State::kReached;
  EXPECT_EQ(marks_.Reached(api_), 7);
  EXPECT_FALSE(marks_.lost());
}

TEST_F(LaneMarksTest, ALostMarkIsSkippedAndReported) {
  Set(8);
  Set(9);
  Events()[Event(1)] = State::kCaptured;
  EXPECT_EQ(marks_.Reached(api_), 7);
  EXPECT_TRUE(marks_.lost());
  Events()[Event(2)] = State::kReached;
  EXPECT_EQ(marks_.Reached(api_), 9);
  marks_.Replaced();
  EXPECT_FALSE(marks_.lost());
}

TEST_F(LaneMarksTest, AStreamThatTakesNoEventFailsAtOnce) {
  LaneMarks other;
  record_answer = CUDA_ERROR_INVALID_HANDLE;
  EXPECT_FALSE(other.Open(api_, nullptr, 0, kMarks).ok());
}

TEST_F(LaneMarksTest, CloseEndsEveryEvent) {
  EXPECT_EQ(Events().size(), kMarks);
  marks_.Close(api_);
  EXPECT_TRUE(Events().empty());
  marks_.Close(api_);
}

}  // namespace
}  // namespace gpushare::cuda
