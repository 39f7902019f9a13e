// The self-test of lanes on a real GPU: a lane passes quickly if evictions work, and fails within
// its bound if they are blocked.

#include "src/cuda/lanes/lane_check.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>

#include "src/cuda/driver/errors.h"
#include "tests/cuda/driver/context_fixture.h"

namespace gpushare::cuda {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kLanes = 34;  // as many as the scheduler makes for its splits of an H200

class LaneCheckTest : public ContextTest {
 protected:
  void SetUp() override {
    ContextTest::SetUp();
    if (!ready()) return;
    host_words_ = Mapped<std::atomic<uint64_t>>();
    records_ = Mapped<gpushare_worker_completion>();
    words_ = Memory<uint64_t>();
    scratch_ = Memory<gpushare_worker_scratch>();
    check_ = std::make_unique<LaneCheck>(*context_, core::kMaxLanes);
    ASSERT_TRUE(check_->Open().ok());
    for (int i = 0; i < kLanes; ++i) MakeLane(static_cast<size_t>(i));
  }

  void TearDown() override {
    for (const auto& lane : lanes_) {
      if (lane == nullptr) continue;
      context_->api().cuStreamSynchronize(lane->stream);  // a probe ends by itself within 10 ms
      context_->api().cuStreamDestroy(lane->stream);
    }
  }

  // Room for the first entries of each lane's ring; a check uses two.
  static constexpr size_t kEntries = 4;
  template <class T>
  MappedMemory Mapped() {
    auto memory = MappedMemory::Make(*context_, sizeof(T) * kEntries * kLanes);
    EXPECT_TRUE(memory.ok()) << memory.status();
    return *std::move(memory);
  }
  template <class T>
  DeviceMemory Memory() {
    auto memory = DeviceMemory::Make(*context_, sizeof(T) * kEntries * kLanes);
    EXPECT_TRUE(memory.ok()) << memory.status();
    return *std::move(memory);
  }

  void MakeLane(size_t i) {
    auto lane = std::make_unique<CudaLane>();
    lane->spec.evictable = true;
    ASSERT_TRUE(GPUSHARE_CU(context_->api(),
                            cuStreamCreateWithPriority(&lane->stream, CU_STREAM_NON_BLOCKING, 0))
                    .ok());
    lane->words.host_eviction_word = host_words_.Host<std::atomic<uint64_t>>(i);
    lane->words.host_eviction_word_on_device = host_words_.Device<const uint64_t>(i);
    lane->words.eviction_word = words_.At<uint64_t>(i);
    lane->words.records = records_.Host<gpushare_worker_completion>(i * kEntries);
    lane->words.records_on_device = records_.Device<gpushare_worker_completion>(i * kEntries);
    lane->words.scratch = scratch_.At<gpushare_worker_scratch>(i * kEntries);
    lanes_[i] = std::move(lane);
  }

  MappedMemory host_words_;
  MappedMemory records_;
  DeviceMemory words_;
  DeviceMemory scratch_;
  std::unique_ptr<LaneCheck> check_;
  std::array<std::unique_ptr<CudaLane>, kLanes> lanes_;
};

TEST_F(LaneCheckTest, EveryLanePassesAndAllOfThemTakeLittleTime) {
  const auto begin = steady_clock::now();
  for (int i = 0; i < kLanes; ++i) {
    CudaLane& lane = *lanes_[static_cast<size_t>(i)];
    const absl::Status status = check_->Run(lane, i, static_cast<size_t>(i));
    EXPECT_TRUE(status.ok()) << status;
    // The probe saw its eviction: the check did not pass merely because the probe found no room.
    // The lane is as before.
    EXPECT_EQ(lane.words.records[0].sequence, 1U);
    EXPECT_GT(lane.words.records[0].block_tasks_left, 0U);
    EXPECT_EQ(lane.words.host_eviction_word->load(), 0U);
    EXPECT_EQ(lane.reported.load(), lane.launched.load());
  }
  const auto took = steady_clock::now() - begin;
  EXPECT_LT(took, milliseconds(50));
  RecordProperty(
      "self_test_us",
      static_cast<int>(std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
}

TEST_F(LaneCheckTest, ABlockedEvictionIsReportedAndNotWaitedFor) {
  ASSERT_TRUE(check_->Run(*lanes_[0], 0, 0).ok());  // loads the probe
  check_->BlockEvictions(true);
  const auto begin = steady_clock::now();
  const absl::Status status = check_->Run(*lanes_[1], 1, 1);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_LT(steady_clock::now() - begin, milliseconds(5));
  // The probe ends by itself, and the next check of the lane passes.
  ASSERT_TRUE(GPUSHARE_CU(context_->api(), cuStreamSynchronize(lanes_[1]->stream)).ok());
  check_->BlockEvictions(false);
  EXPECT_TRUE(check_->Run(*lanes_[1], 1, 1).ok());
}

}  // namespace
}  // namespace gpushare::cuda
