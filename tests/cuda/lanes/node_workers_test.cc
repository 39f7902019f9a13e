// The feed of a lane whose graph has segments that run as workers, with a fake driver: nothing is
// behind workers, what they leave is launched first, and the graph's signal waits for all of it.

#include "src/cuda/lanes/node_workers.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/cuda/lanes/cuda_lane.h"
#include "src/cuda/lanes/segment_feed.h"

namespace gpushare::cuda {
namespace {

constexpr int64_t kBlockTasks = 100;
constexpr int64_t kNodeNs = 1'000'000;
constexpr int64_t kShortNs = 80'000;

// What was launched, in order: "0" for the instance of segment 0, "1+" for workers of segment 1
// from its first block task on, "1~" for the rest of it; "!" for the signal.
struct Stream {
  std::vector<std::string> launched;
  int count = 0;  // launches, without signals
  int ended = 0;
  std::map<CUevent, int> recorded;
  intptr_t events = 0;
  int64_t left = 0;  // by the workers that end next
  bool has_record = true;
};

Stream& Fake() {
  static Stream stream;
  return stream;
}

const CUevent kSignal = reinterpret_cast<CUevent>(intptr_t{1000});  // NOLINT

DriverApi FakeDriver() {
  Fake() = Stream();
  DriverApi api;
  api.cuGetErrorName = api.cuGetErrorString = [](CUresult /*code*/, const char** text) {
    *text = "an error";
    return CUDA_SUCCESS;
  };
  api.cuEventCreate = [](CUevent* event, unsigned int /*flags*/) {
    *event = reinterpret_cast<CUevent>(++Fake().events);  // NOLINT
    return CUDA_SUCCESS;
  };
  api.cuEventRecord = [](CUevent event, CUstream /*stream*/) {
    if (event == kSignal) Fake().launched.emplace_back("!");
    Fake().recorded[event] = Fake().count;
    return CUDA_SUCCESS;
  };
  api.cuEventQuery = [](CUevent event) {
    return Fake().recorded.at(event) <= Fake().ended ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  };
  api.cuStreamQuery = [](CUstream /*stream*/) {
    return Fake().ended == Fake().count ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  };
  api.cuGraphLaunch = [](CUgraphExec graph, CUstream /*stream*/) {
    ++Fake().count;
    Fake().launched.push_back(std::to_string(reinterpret_cast<intptr_t>(graph) - 1));  // NOLINT
    return CUDA_SUCCESS;
  };
  return api;
}

class FakeWorkers final : public NodeWorkers {
 public:
  CUresult LaunchNode(CudaLane& /*lane*/, const SegmentRun& /*run*/, size_t segment, bool begins,
                      uint64_t number) override {
    ++Fake().count;
    Fake().launched.push_back(std::to_string(segment) + (begins ? "+" : "~"));
    EXPECT_GT(number, number_) << "a record of an earlier launch would look like this one's";
    number_ = number;
    return CUDA_SUCCESS;
  }
  Ended EndOfNode(const CudaLane& /*lane*/, const SegmentRun& /*run*/, size_t /*segment*/,
                  uint64_t number) const override {
    EXPECT_EQ(number, number_);
    return {Fake().has_record, Fake().left, kBlockTasks};
  }

 private:
  uint64_t number_ = 0;
};

// Segments 1 and 3 of four may run as workers.
class NodeWorkersTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(feed_.Open(api_).ok());
    for (intptr_t i = 1; i <= 4; ++i) {
      segments_.push_back(reinterpret_cast<CUgraphExec>(i));  // NOLINT
    }
  }
  void Start(size_t first = 0, int64_t rest_ns = 0, bool evicts = true) {
    SegmentRun run;
    run.segments = segments_;
    run.durations_ns = durations_ns_;
    run.segment_ns = 100'000;
    run.longer = longer_;
    run.groups = groups_;
    run.longest_ns = &longest_ns_;
    run.block_tasks_ns = block_tasks_ns_;
    run.workers = &workers_;
    run.lane = &lane_;
    run.evicts_workers = evicts;
    run.first = first;
    run.rest_ns = rest_ns;
    run.epoch = 1;
    run.eviction_word = &word_;
    run.signal = kSignal;
    ASSERT_EQ(feed_.Start(api_, nullptr, run, 0), CUDA_SUCCESS);
  }
  bool EndOne(int64_t left = 0) {
    ++Fake().ended;
    Fake().left = left;
    return Advance();
  }
  bool Advance() { return feed_.Advance(api_, nullptr, ++now_ns_); }
  void Evict(uint32_t keep = 0) { word_ = uint64_t{1} << 32 | keep; }
  static std::vector<std::string> Launched() { return Fake().launched; }

  const DriverApi api_ = FakeDriver();
  FakeWorkers workers_;
  CudaLane lane_;
  std::vector<CUgraphExec> segments_;
  const std::vector<int64_t> durations_ns_ = {kShortNs, kNodeNs, kShortNs, kNodeNs};
  const std::vector<int64_t> block_tasks_ns_ = {0, 10'000, 0, 10'000};
  // All of it, and groups of segment 0 and of the others.
  const std::vector<core::LongerCut> longer_ = {{core::kNever, {0}}, {2'500'000, {0, 1}}};
  const std::vector<std::vector<CUgraphExec>> groups_ = {
      {reinterpret_cast<CUgraphExec>(intptr_t{100})},   // NOLINT
      {reinterpret_cast<CUgraphExec>(intptr_t{1}),      // NOLINT
       reinterpret_cast<CUgraphExec>(intptr_t{102})}};  // NOLINT
  std::atomic<int64_t> longest_ns_{0};
  std::atomic<uint64_t> word_{0};
  SegmentFeed feed_;
  core::TimeNs now_ns_ = 0;
};

TEST_F(NodeWorkersTest, WorkersAreBehindASegmentAndNothingIsBehindWorkers) {
  Start();
  EXPECT_EQ(Launched(), (std::vector<std::string>{"0", "1+"}));
  EXPECT_FALSE(EndOne());
  EXPECT_EQ(Launched().size(), 2U) << "the workers have not left";
  EXPECT_FALSE(EndOne());
  EXPECT_EQ(Launched(), (std::vector<std::string>{"0", "1+", "2", "3+"}));
  EXPECT_FALSE(EndOne());
  EXPECT_TRUE(EndOne());
  EXPECT_EQ(Launched().back(), "!") << "the signal waits for the last workers";
  EXPECT_TRUE(feed_.finished());
}

TEST_F(NodeWorkersTest, WhatWorkersLeaveIsTheNextRunsFirstLaunch) {
  Start();
  EndOne();
  Evict();
  EXPECT_EQ(feed_.NextLookNs(5), 5) << "they leave within a block task";
  EXPECT_TRUE(EndOne(40));
  EXPECT_EQ(feed_.next(), 1U) << "the segment is not done";
  EXPECT_EQ(feed_.rest_ns(), kNodeNs * 40 / kBlockTasks);
  EXPECT_FALSE(feed_.finished());
  feed_.Take();
  word_ = 0;
  Start(1, feed_.rest_ns());
  EXPECT_EQ(Launched(), (std::vector<std::string>{"0", "1+", "1~"}));
  EXPECT_FALSE(EndOne());
  EXPECT_EQ(Launched().size(), 5U);
  EXPECT_EQ(Launched().back(), "3+");
}

TEST_F(NodeWorkersTest, TheLastSegmentsWorkersThatLeaveDoNotSignal) {
  Start(3);
  Evict();
  EXPECT_TRUE(EndOne(1));
  EXPECT_EQ(Launched(), std::vector<std::string>{"3+"});
  feed_.Take();
  word_ = 0;
  Start(3, feed_.rest_ns());
  EXPECT_TRUE(EndOne());
  EXPECT_EQ(Launched(), (std::vector<std::string>{"3+", "3~", "!"}));
}

// An eviction that comes in time stops the run behind workers that are done.
TEST_F(NodeWorkersTest, AnEvictionBehindWorkersThatAreDoneStartsNothing) {
  Start(1);
  Evict();
  EXPECT_TRUE(EndOne());
  EXPECT_EQ(Launched(), std::vector<std::string>{"1+"});
  EXPECT_EQ(feed_.next(), 2U);
  EXPECT_EQ(feed_.rest_ns(), 0);
}

TEST_F(NodeWorkersTest, AWordThatKeepsWorkersKeepsNone) {
  Start(1);
  Evict(8);
  EXPECT_FALSE(Advance());
  EXPECT_EQ(word_.load(), uint64_t{1} << 32);
}

TEST_F(NodeWorkersTest, AnOlderWordKeepsItsWorkers) {
  Start(1);
  word_ = 8;  // epoch 0, of a launch before this one
  EXPECT_FALSE(Advance());
  EXPECT_EQ(word_.load(), 8U);
}

TEST_F(NodeWorkersTest, TheRestOfANodeIsNoPartOfALongerSegment) {
  longest_ns_ = core::kNever;
  Start(0);
  EXPECT_EQ(Launched(), (std::vector<std::string>{"99", "!"})) << "the whole graph is one launch";
  EndOne();
  feed_.Take();
  Start(1, 1);
  EXPECT_EQ(Launched().back(), "1~");
  EndOne();
  feed_.Take();
  Start(1);
  EXPECT_EQ(Launched().back(), "!") << "the group of segments 1 to 3, from its first block task on";
}

// LC work in segments has such a lane.
TEST_F(NodeWorkersTest, OnALaneWithoutAWordForWorkersOnlyTheRestOfANodeRunsAsWorkers) {
  Start(1, 400'000, false);
  EXPECT_EQ(Launched(), std::vector<std::string>{"1~"});
  EXPECT_FALSE(EndOne());
  EXPECT_FALSE(EndOne());
  EXPECT_EQ(Launched(), (std::vector<std::string>{"1~", "2", "3", "!"}));
}

TEST_F(NodeWorkersTest, WorkersWithoutARecordFailTheRun) {
  Start(1);
  Fake().has_record = false;
  EXPECT_TRUE(EndOne());
  EXPECT_NE(feed_.error(), CUDA_SUCCESS);
}

}  // namespace
}  // namespace gpushare::cuda
