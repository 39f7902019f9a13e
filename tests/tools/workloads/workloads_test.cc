// The options of tasks on a device where a kernel is only its record in the profile.

#include "tools/gpushare/workloads/workloads.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace gpushare::tool {
namespace {

TEST(NoWorkloadsTest, TasksCarryWhatTheScenarioSays) {
  const std::unique_ptr<Workloads> workloads = MakeNoWorkloads();
  WorkItem kernel = {.kernel = "sincos_27us", .block_tasks = 1056};
  WorkItem copy;
  copy.direction = CopyDirection::kDeviceToHost;
  copy.bytes = 4096;
  copy.pinned = false;
  const std::vector<TaskBinding> bindings = workloads->Bind("app", {kernel, copy});
  ASSERT_EQ(bindings.size(), 2u);
  const gpushare_task_options first = TaskOptionsOf(bindings[0], nullptr);
  EXPECT_EQ(first.kind, GPUSHARE_TASK_DEFAULT);
  EXPECT_EQ(first.block_tasks, 1056);
  EXPECT_EQ(first.detached, 1);
  EXPECT_EQ(first.arguments, nullptr);
  const gpushare_task_options second = TaskOptionsOf(bindings[1], nullptr);
  EXPECT_EQ(second.kind, GPUSHARE_TASK_MEMCPY);
  EXPECT_EQ(second.copy_direction, GPUSHARE_COPY_DEVICE_TO_HOST);
  EXPECT_EQ(second.copy_size_bytes, 4096);
  EXPECT_EQ(second.copy_pageable, 1);
  EXPECT_EQ(second.block_tasks, 0);
}

TEST(NoWorkloadsTest, KernelsAreTheProfilesRecords) {
  const std::unique_ptr<Workloads> workloads = MakeNoWorkloads();
  EXPECT_TRUE(workloads->CanRun("anything", true));
  EXPECT_FALSE(workloads->CanRun("anything", false));
  EXPECT_TRUE(workloads->CountsBlocks("anything", GPUSHARE_TASK_KERNEL));
  EXPECT_FALSE(workloads->CountsBlocks("anything", GPUSHARE_TASK_GRAPH));
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  EXPECT_TRUE(workloads->FillKernel("anything", GPUSHARE_TASK_GRAPH, options));
  EXPECT_EQ(options.kind, GPUSHARE_TASK_GRAPH);
  EXPECT_EQ(options.capture, nullptr);
  // Without results to check, Verify returns false and does not fail.
  EXPECT_FALSE(workloads->Verify("app", 5));
}

TEST(NoWorkloadsTest, SimulatedDevicesHaveNone) {
  DeviceFacts facts;
  facts.name = "sim";
  EXPECT_EQ(MakeWorkloads(facts)->Hardware().gpu, "");
}

}  // namespace
}  // namespace gpushare::tool
