// The worker probe on a real GPU: workers claim every block task once and leave when evicted.

#include "src/cuda/driver/probe.h"

#include <gtest/gtest.h>

#include "src/cuda/driver/driver.h"

namespace gpushare::cuda {
namespace {

class ProbeTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::Status device = CheckDevice(SystemDriver(), 0);
    if (!device.ok()) GTEST_SKIP() << device.message();
  }
};

TEST_F(ProbeTest, UndisturbedWorkersExecuteEveryBlockTaskOnce) {
  ProbeRequest request;
  const ProbeResult result = RunWorkerProbe(request);
  ASSERT_EQ(result.error, 0) << result.step << ": " << ErrorText(result.error);
  EXPECT_EQ(result.executed, request.block_tasks);
  EXPECT_EQ(result.repeated, 0U);
  EXPECT_EQ(result.finished_workers, request.workers);
}

TEST_F(ProbeTest, EvictedWorkersClaimNothing) {
  ProbeRequest request;
  request.evicted_epoch = request.epoch;
  const ProbeResult result = RunWorkerProbe(request);
  ASSERT_EQ(result.error, 0) << result.step << ": " << ErrorText(result.error);
  EXPECT_EQ(result.claimed, 0U);
  EXPECT_EQ(result.executed, 0U);
  EXPECT_EQ(result.finished_workers, request.workers);
}

TEST_F(ProbeTest, WorkersThatAreKeptTakeOverTheBlockTasksOfTheOthers) {
  ProbeRequest request;
  request.evicted_epoch = request.epoch;
  request.workers_to_keep = 3;
  const ProbeResult result = RunWorkerProbe(request);
  ASSERT_EQ(result.error, 0) << result.step << ": " << ErrorText(result.error);
  EXPECT_EQ(result.executed, request.block_tasks);
  EXPECT_EQ(result.repeated, 0U);
}

TEST_F(ProbeTest, EvictionOfAnEarlierEpochIsIgnoredAcrossTheWrap) {
  ProbeRequest request;
  request.epoch = 2;
  request.evicted_epoch = 0xFFFFFFFFU;  // three launches earlier, across the wrap
  const ProbeResult result = RunWorkerProbe(request);
  ASSERT_EQ(result.error, 0) << result.step << ": " << ErrorText(result.error);
  EXPECT_EQ(result.executed, request.block_tasks);
}

}  // namespace
}  // namespace gpushare::cuda
