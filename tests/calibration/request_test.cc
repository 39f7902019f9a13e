// Launch requests that are made from an item.

#include "src/calibration/launch/request.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace gpushare::models {
namespace {

CalibrationItem Item(core::TaskKind kind) {
  CalibrationItem item;
  item.kernel.name = "a";
  item.kernel.code = core::CodeOfKind(kind);
  item.block_tasks = 100;
  item.arguments = {1, 2, 3};
  return item;
}

TEST(RequestTest, AnyPartOfAKernelIsOfTheWholeGrid) {
  const CalibrationItem item = Item(core::TaskKind::kKernel);
  for (const core::LaunchRequest& request :
       {OrdinaryRequest(item, 3), WorkerRequest(item, 3, 40, 2), SliceRequest(item, 3, 20, 40)}) {
    EXPECT_EQ(request.parts[0].lane, 3);
    EXPECT_EQ(request.parts[0].work.kernel, &item.kernel);
    EXPECT_EQ(request.parts[0].work.grid[0], 100);
    EXPECT_EQ(request.parts[0].work.arguments, item.arguments.data());
    EXPECT_EQ(request.parts[0].work.arguments_bytes, 3u);
    EXPECT_EQ(NameOf(request), "Kernel 'a'");
  }
  EXPECT_EQ(OrdinaryRequest(item, 3).parts[0].block_count, 100);
  const core::LaunchRequest workers = WorkerRequest(item, 3, 40, 2, 1);
  EXPECT_EQ(workers.parts[0].block_count, 40);
  EXPECT_EQ(workers.workers, 2);
  EXPECT_EQ(workers.parts[0].counter, 1);
  EXPECT_TRUE(workers.parts[0].reset_counter);
  const core::LaunchRequest slice = SliceRequest(item, 3, 20, 40);
  EXPECT_EQ(slice.block_begin, 20);
  EXPECT_EQ(slice.parts[0].block_count, 40);
  EXPECT_EQ(slice.parts[0].counter, -1);
}

TEST(RequestTest, AGraphHasNoBlockTasks) {
  const CalibrationItem item = Item(core::TaskKind::kGraph);
  const core::LaunchRequest request = OrdinaryRequest(item, 0);
  EXPECT_EQ(request.form, core::Form::kGraph);
  EXPECT_EQ(request.parts[0].block_count, 0);
  EXPECT_EQ(request.parts[0].work.grid[0], 0);
}

TEST(RequestTest, BothPartsOfAFusedLaunchHaveTheirOwnCounters) {
  const CalibrationItem tensor = Item(core::TaskKind::kKernel);
  CalibrationItem cuda = Item(core::TaskKind::kKernel);
  cuda.block_tasks = 70;
  core::FusedKernelDesc fused;
  fused.name = "a_b";
  const core::LaunchRequest request = FusedRequest(fused, {tensor, 1, 50}, {cuda, 2, 60});
  EXPECT_EQ(NameOf(request), "Fused kernel 'a_b'");
  EXPECT_EQ(request.parts[0].block_count, 50);
  EXPECT_EQ(request.parts[1].work.kernel, &cuda.kernel);
  EXPECT_EQ(request.parts[1].lane, 2);
  EXPECT_EQ(request.parts[1].work.grid[0], 70);
  EXPECT_EQ(request.parts[1].block_count, 60);
  EXPECT_NE(request.parts[0].counter, request.parts[1].counter);
}

}  // namespace
}  // namespace gpushare::models
