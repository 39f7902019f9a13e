// A new kernel's record from a like one.

#include "src/models/training/like_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "src/models/learned/learned.h"
#include "src/models/online/online_model.h"
#include "src/models/pairs/pair_model.h"

namespace gpushare::models {
namespace {

using ::testing::HasSubstr;

core::KernelCounters Counters(double instructions, double issue, double dram) {
  core::KernelCounters counters = {.instructions = instructions, .issue = issue, .dram = dram};
  return counters;
}

core::KernelDesc Kernel(const std::string& name, const core::KernelCounters& counters) {
  core::KernelDesc kernel;
  kernel.name = name;
  kernel.resources.workers_per_sm_max = 2;
  kernel.evictable = true;
  kernel.counters = counters;
  kernel.simulation.present = true;
  kernel.simulation.block_task_ns = 1000;
  kernel.simulation.memory_parallelism = 1.5;
  kernel.simulation.demand = {.issue = 0.8, .dram = 0.5};
  kernel.simulation.speed = {{4, 0.7}, {10, 1}};
  return kernel;
}

// "busy" and "slow" are measured beside the graph; "busy" issues, "slow" waits for DRAM.
class LikeKernelTest : public ::testing::Test {
 protected:
  LikeKernelTest() {
    profile_.device.sm_count = 10;
    core::KernelDesc graph;
    graph.name = "graph";
    graph.code = core::GraphCode();
    graph.solo_hint_ns = 1000;
    profile_.kernels = {Kernel("busy", Counters(1000, 0.8, 0.1)),
                        Kernel("slow", Counters(100, 0.1, 0.9)), graph};
    Learned learned;
    learned.pairs = {{"graph", "busy", 4, {64, 0.9, 0}},
                     {"graph", "slow", 4, {64, 0.4, 0}},
                     {"busy", "slow", 4, {3, 0.6, 0}}};
    profile_.learned = FormatLearned(learned);
    request_.kernel = "mine";
  }

  std::string Filled() {
    const absl::StatusOr<std::string> like = FillLike(request_, profile_);
    EXPECT_TRUE(like.ok()) << like.status();
    EXPECT_TRUE(ParseProfile(FormatProfile(profile_)).ok());
    return like.ok() ? *like : "";
  }

  Profile profile_;
  LikeRequest request_;
};

TEST_F(LikeKernelTest, ANewKernelGetsTheRecordOfTheNamedOneAndItsPairs) {
  request_.like = "slow";
  EXPECT_EQ(Filled(), "slow");
  const core::KernelDesc* mine = profile_.FindKernel("mine");
  ASSERT_NE(mine, nullptr);
  EXPECT_TRUE(mine->evictable);
  EXPECT_EQ(mine->resources.workers_per_sm_max, 2);
  EXPECT_EQ(mine->simulation.block_task_ns, 1000);
  EXPECT_EQ(mine->simulation.memory_parallelism, 1.5);
  EXPECT_EQ(mine->simulation.demand.dram, 0.5);
  ASSERT_EQ(mine->simulation.speed.size(), 2u);
  EXPECT_FALSE(mine->counters.present());  // those of the other are not its own
  const Learned learned = ParseLearned(profile_.learned).value();
  ASSERT_EQ(learned.pairs.size(), 5u);
  EXPECT_EQ(learned.pairs[3].kernel, "graph");
  EXPECT_EQ(learned.pairs[3].neighbour, "mine");
  EXPECT_EQ(learned.pairs[3].speed.mean, 0.4);
  EXPECT_EQ(learned.pairs[3].speed.samples, kPairSamplesTrusted);
  EXPECT_EQ(learned.pairs[4].kernel, "busy");
  EXPECT_EQ(learned.pairs[4].speed.samples, 3);  // no more than were measured
  EXPECT_TRUE(learned.kernels.empty());
}

// As an LC kernel too, and the planner finds it.
TEST_F(LikeKernelTest, PairsAreKnownFromTheFirstPlanOn) {
  request_.like = "busy";
  EXPECT_EQ(Filled(), "busy");
  const std::unique_ptr<core::CostModel> model = MakeOnlineModel(profile_.device);
  ASSERT_TRUE(model->Load(profile_.learned).ok());
  std::vector<core::KernelDesc> kernels = profile_.kernels;
  for (size_t i = 0; i < kernels.size(); ++i) {
    kernels[i].id = core::KernelId{static_cast<uint32_t>(i + 1)};
    model->AddKernel(kernels[i]);
  }
  EXPECT_DOUBLE_EQ(model->neighbours().SpeedBeside(kernels[2], 4, kernels[3], 6), 0.9);
  const Learned learned = ParseLearned(profile_.learned).value();
  EXPECT_EQ(learned.pairs.back().kernel, "mine");
  EXPECT_EQ(learned.pairs.back().neighbour, "slow");
}

// Twice the instructions at half the rate take four times as long.
TEST_F(LikeKernelTest, CountersScaleBlockTaskAndDemands) {
  request_.like = "busy";
  request_.counters = Counters(2000, 0.4, 0.15);
  Filled();
  const core::SimulationRecord& record = profile_.FindKernel("mine")->simulation;
  EXPECT_EQ(record.block_task_ns, 4000);
  EXPECT_DOUBLE_EQ(record.demand.issue, 0.4);
  EXPECT_DOUBLE_EQ(record.demand.dram, 0.75);
  EXPECT_EQ(profile_.FindKernel("mine")->counters.instructions, 2000);
}

// A kernel that is described, but not measured: with twice the workers an SM its block tasks take
// twice as long at the same rate.
TEST_F(LikeKernelTest, AKnownKernelKeepsItsShape) {
  core::KernelDesc described;
  described.name = "mine";
  described.resources.workers_per_sm_max = 4;
  described.counters = Counters(1000, 0.8, 0.1);
  profile_.kernels.push_back(described);
  EXPECT_EQ(Filled(), "busy");
  ASSERT_EQ(profile_.kernels.size(), 4u);
  EXPECT_EQ(profile_.kernels[3].resources.workers_per_sm_max, 4);
  EXPECT_FALSE(profile_.kernels[3].evictable);
  EXPECT_EQ(profile_.kernels[3].simulation.block_task_ns, 2000);
}

TEST_F(LikeKernelTest, WithoutANameTheNearestByCountersIsTaken) {
  request_.counters = Counters(500, 0.3, 0.7);
  EXPECT_EQ(Filled(), "slow");
}

TEST_F(LikeKernelTest, WhatCannotBeFilledIsRefusedAndNothingChanges) {
  const std::string before = FormatProfile(profile_);
  const auto refusal = [&] { return FillLike(request_, profile_).status(); };
  EXPECT_THAT(refusal().message(), HasSubstr("Nobody counted kernel 'mine'"));
  request_.like = "none";
  EXPECT_TRUE(absl::IsNotFound(refusal()));
  request_.like = "graph";
  EXPECT_THAT(refusal().message(), HasSubstr("'graph', which has no simulation record"));
  request_.like = "busy";
  request_.kernel = "slow";
  EXPECT_THAT(refusal().message(), HasSubstr("Kernel 'slow' has a record"));
  request_.kernel = "mine";
  EXPECT_EQ(FormatProfile(profile_), before);
  profile_.learned = "{";
  EXPECT_TRUE(absl::IsInvalidArgument(refusal()));
  EXPECT_EQ(profile_.kernels.size(), 3u);
}

}  // namespace
}  // namespace gpushare::models
