// Priors of durations, from a kernel's record, an app's hint and a link's rate.

#include "src/models/durations/prior.h"

#include <gtest/gtest.h>

namespace gpushare::models {
namespace {

TEST(KernelPriorTest, ARecordComesBeforeAHintAndAHintBeforeTheDefault) {
  core::DeviceProfile device;
  device.sm_count = 10;
  core::KernelDesc kernel;
  kernel.resources.workers_per_sm_max = 2;
  EXPECT_EQ(KernelPrior(device, kernel).NsOf(1000), kUnknownDurationNs);
  kernel.solo_hint_ns = 700;
  EXPECT_EQ(KernelPrior(device, kernel).NsOf(1000), 700);
  kernel.simulation.present = true;
  kernel.simulation.block_task_ns = 50;
  EXPECT_EQ(KernelPrior(device, kernel).NsOf(20), 50);
  EXPECT_EQ(KernelPrior(device, kernel).NsOf(21), 100);
  // Two nodes, one of them twice, with a gap between each two launches.
  core::GraphNode node;
  node.duration_ns = 10;
  kernel.simulation.nodes = {node, node};
  kernel.simulation.nodes[1].repeat = 2;
  kernel.simulation.node_gap_ns = 3;
  EXPECT_EQ(KernelPrior(device, kernel).NsOf(0), 36);
}

// 10 SMs issue at most 40 instructions a cycle, and the kernel issues 30 of them.
TEST(KernelPriorTest, CountersStandInForARecordAndAHint) {
  core::DeviceProfile device;
  device.sm_count = 10;
  device.clock_mhz = 2000;
  core::KernelDesc kernel;
  kernel.counters.instructions = 600;
  kernel.counters.issue = 0.75;
  const KernelPrior prior(device, kernel);
  EXPECT_TRUE(prior.known());
  EXPECT_DOUBLE_EQ(prior.NsOf(1000), 10000);
  EXPECT_DOUBLE_EQ(prior.NsOf(1), 10);
  kernel.solo_hint_ns = 700;
  EXPECT_EQ(KernelPrior(device, kernel).NsOf(1000), 700);
  kernel.solo_hint_ns = 0;
  kernel.counters.issue = 0;
  EXPECT_FALSE(KernelPrior(device, kernel).known());
  EXPECT_EQ(KernelPrior(device, kernel).NsOf(1000), kUnknownDurationNs);
  // A graph has no block tasks.
  kernel.counters.issue = 0.75;
  kernel.code = core::GraphCode();
  EXPECT_EQ(KernelPrior(device, kernel).NsOf(0), kUnknownDurationNs);
}

TEST(CopyPriorTest, IsTheLatencyAndTheBytesOverTheRateOfTheDirection) {
  core::DeviceProfile device;
  device.copy_latency_ns = 100;
  device.pinned_bytes_per_ns = 50;
  device.pageable_h2d_bytes_per_ns = 10;
  device.pageable_d2h_bytes_per_ns = 20;
  EXPECT_EQ(CopyPriorNs(device, core::CopyDirection::kDeviceToHost, true, 1000), 120);
  EXPECT_EQ(CopyPriorNs(device, core::CopyDirection::kHostToDevice, false, 1000), 200);
  EXPECT_EQ(CopyPriorNs(device, core::CopyDirection::kDeviceToHost, false, 1000), 150);
}

}  // namespace
}  // namespace gpushare::models
