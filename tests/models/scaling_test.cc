// Speed on fewer SMs, and the shares of DRAM and L2 that two neighbours get.

#include "src/models/durations/scaling.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace gpushare::models {
namespace {

using core::GraphNode;
using core::KernelDesc;

constexpr int32_t kSms = 132;

KernelDesc KernelWithSpeeds(std::vector<core::SpeedPoint> speeds) {
  KernelDesc kernel;
  kernel.simulation.speed = std::move(speeds);
  return kernel;
}

// At full speed on any number of SMs, so that its demands do not shrink.
KernelDesc Kernel(double dram, double l2, double memory_parallelism = 0) {
  KernelDesc kernel = KernelWithSpeeds({{1, 1.0}, {kSms, 1.0}});
  kernel.simulation.demand.dram = dram;
  kernel.simulation.demand.l2 = l2;
  kernel.simulation.memory_parallelism = memory_parallelism;
  return kernel;
}

double SpeedBeside(const KernelDesc& self, int32_t sms, const KernelDesc& neighbour,
                   int32_t their_sms) {
  return SpeedBesideNeighbour({&self, sms}, {&neighbour, their_sms}, kSms);
}

TEST(SpeedOnSmsTest, WithoutATableItIsInProportionUpToTheDevice) {
  const KernelDesc kernel;
  EXPECT_DOUBLE_EQ(SpeedOnSms(kernel, 1, kSms), 1.0 / kSms);
  EXPECT_DOUBLE_EQ(SpeedOnSms(kernel, 66, kSms), 0.5);
  EXPECT_DOUBLE_EQ(SpeedOnSms(kernel, kSms, kSms), 1);
  EXPECT_DOUBLE_EQ(SpeedOnSms(kernel, kSms + 1, kSms), 1);
}

TEST(SpeedOnSmsTest, WithoutATableCountersTellTheKnee) {
  KernelDesc kernel;
  kernel.counters.instructions = 1000;
  kernel.counters.dram = 0.8;
  kernel.counters.issue = 0.05;
  EXPECT_DOUBLE_EQ(SpeedOnSms(kernel, 66, kSms), 1);
  EXPECT_LT(SpeedOnSms(kernel, 33, kSms), 0.6);
  kernel.counters.dram = 0.1;
  EXPECT_DOUBLE_EQ(SpeedOnSms(kernel, 66, kSms), 0.5) << "compute-intensive";
  kernel.counters.dram = 0.8;
  kernel.simulation.speed = {{66, 0.7}, {kSms, 1.0}};
  EXPECT_DOUBLE_EQ(SpeedOnSms(kernel, 66, kSms), 0.7) << "a measured curve counts";
}

TEST(SpeedOnSmsTest, ATableIsInterpolatedWhateverItsShape) {
  const KernelDesc decode = KernelWithSpeeds({{84, 0.96}, {124, 0.80}});
  EXPECT_DOUBLE_EQ(SpeedOnSms(decode, 42, kSms), 0.48) << "in proportion to the first point";
  EXPECT_DOUBLE_EQ(SpeedOnSms(decode, 84, kSms), 0.96);
  EXPECT_DOUBLE_EQ(SpeedOnSms(decode, 94, kSms), 0.92);
  EXPECT_DOUBLE_EQ(SpeedOnSms(decode, 124, kSms), 0.80);
  EXPECT_DOUBLE_EQ(SpeedOnSms(decode, 126, kSms), 0.85) << "towards 1 on the whole device";
  EXPECT_DOUBLE_EQ(SpeedOnSms(decode, kSms, kSms), 1);
  EXPECT_DOUBLE_EQ(SpeedOnSms(decode, 140, kSms), 1);
}

TEST(SpeedOnSmsTest, ATableOfALargerDeviceCountsAsItStands) {
  const KernelDesc kernel = KernelWithSpeeds({{100, 0.5}, {200, 0.7}});
  EXPECT_DOUBLE_EQ(SpeedOnSms(kernel, 150, kSms), 0.6);
  EXPECT_DOUBLE_EQ(SpeedOnSms(kernel, 200, kSms), 0.7);
  EXPECT_DOUBLE_EQ(SpeedOnSms(kernel, 201, kSms), 1);
}

TEST(SpeedOnSmsTest, NothingRunsOnNoSms) {
  const KernelDesc kernel = KernelWithSpeeds({{84, 0.96}});
  EXPECT_EQ(SpeedOnSms(kernel, 0, kSms), 0);
  EXPECT_EQ(SpeedOnSms(kernel, -1, kSms), 0);
  EXPECT_EQ(SpeedOnSms(kernel, 84, 0), 0);
  EXPECT_EQ(SpeedOnSms(kernel, 84, -1), 0);
}

// Together they ask for 1.0 of each resource, and for more from then on.
TEST(SpeedBesideNeighbourTest, BandwidthThatSufficesDelaysNobody) {
  EXPECT_EQ(SpeedBeside(Kernel(0.5, 0), 66, Kernel(0.5, 0), 66), 1);
  EXPECT_EQ(SpeedBeside(Kernel(0, 0.75), 66, Kernel(0, 0.25), 66), 1);
  EXPECT_LT(SpeedBeside(Kernel(0.5, 0), 66, Kernel(0.625, 0), 66), 1);
  EXPECT_LT(SpeedBeside(Kernel(0, 0.75), 66, Kernel(0, 0.5), 66), 1);
  EXPECT_EQ(SpeedBeside(Kernel(0, 0), 66, Kernel(1, 1), 66), 1) << "it asks for nothing";
  EXPECT_EQ(SpeedBeside(Kernel(0.9, 0), 66, Kernel(0, 0.9), 66), 1) << "each asks for one of them";
}

// Without a measured parallelism the weight is the demand times the SMs.
TEST(SpeedBesideNeighbourTest, BandwidthThatIsShortIsSharedByWeight) {
  EXPECT_DOUBLE_EQ(SpeedBeside(Kernel(1, 0), 66, Kernel(1, 0), 66), 0.5);
  EXPECT_DOUBLE_EQ(SpeedBeside(Kernel(1, 0), 99, Kernel(1, 0), 33), 0.75);
  EXPECT_DOUBLE_EQ(SpeedBeside(Kernel(0.8, 0), 66, Kernel(0.8, 0, 3), 22), 0.8 / (0.8 + 1) / 0.8);
  EXPECT_DOUBLE_EQ(SpeedBeside(Kernel(0, 1), 66, Kernel(0, 0.6), 66), 1 / 1.6);
  EXPECT_DOUBLE_EQ(SpeedBeside(Kernel(1, 1, 1), 66, Kernel(1, 1, 3), 66), 0.25);
}

TEST(SpeedBesideNeighbourTest, WhatTheNeighbourDoesNotUseIsOurs) {
  EXPECT_DOUBLE_EQ(SpeedBeside(Kernel(1, 0, 1), 66, Kernel(0.25, 0, 9), 66), 0.75);
  EXPECT_DOUBLE_EQ(SpeedBeside(Kernel(0.8, 0, 1), 66, Kernel(0.25, 0, 9), 66), 0.75 / 0.8);
}

TEST(SpeedBesideNeighbourTest, TheShorterResourceDecides) {
  const KernelDesc self = Kernel(1, 1);
  EXPECT_DOUBLE_EQ(SpeedBeside(self, 66, Kernel(1, 0.25, 0), 66), 0.5);
  EXPECT_DOUBLE_EQ(SpeedBeside(self, 66, Kernel(0.25, 1, 0), 66), 0.5);
}

TEST(SpeedBesideNeighbourTest, WithoutARecordCountersStateTheDemands) {
  KernelDesc counted = KernelWithSpeeds({{1, 1.0}, {kSms, 1.0}});
  counted.counters.instructions = 1000;
  counted.counters.dram = 0.8;
  counted.counters.l2 = 0.5;
  EXPECT_EQ(SpeedBeside(Kernel(0.8, 0.5), 66, counted, 66),
            SpeedBeside(Kernel(0.8, 0.5), 66, Kernel(0.8, 0.5), 66));
  EXPECT_EQ(SpeedBeside(counted, 66, counted, 66), SpeedBeside(counted, 66, Kernel(0.8, 0.5), 66));
  EXPECT_LT(SpeedBeside(counted, 66, counted, 66), 1);
  counted.simulation.present = true;
  EXPECT_EQ(SpeedBeside(counted, 66, counted, 66), 1) << "its record asks for nothing";
}

// A kernel that is slower on its SMs asks for less.
TEST(SpeedBesideNeighbourTest, DemandsShrinkWithTheSpeedOnFewerSms) {
  KernelDesc slow = Kernel(1, 0);
  slow.simulation.speed = {{66, 0.25}};
  const KernelDesc full = Kernel(0.75, 0);
  EXPECT_EQ(SpeedBeside(full, 66, slow, 66), 1);
  EXPECT_EQ(SpeedBeside(slow, 66, full, 66), 1);
  slow.simulation.speed = {{66, 0.5}};
  EXPECT_DOUBLE_EQ(SpeedBeside(full, 66, slow, 66), 0.5 / 0.75);
}

// 6 ms of nodes, 2 ms of gaps between them.
TEST(SpeedBesideNeighbourTest, AGraphAsksForTheMeanOfItsNodesOverItsTime) {
  KernelDesc graph = Kernel(0.01, 0.01);
  graph.simulation.node_gap_ns = 400'000;
  GraphNode copy = {.duration_ns = 1'000'000, .repeat = 4, .demand = {.dram = 0.9, .l2 = 0.2}};
  GraphNode compute = {.duration_ns = 2'000'000, .demand = {.dram = 0.2, .l2 = 0.9}};
  graph.simulation.nodes = {copy, compute};
  const KernelDesc mean = Kernel((4 * 0.9 + 2 * 0.2) / 8, (4 * 0.2 + 2 * 0.9) / 8);
  for (const auto& [dram, l2] : {std::pair{0.9, 0.0}, std::pair{0.0, 0.9}}) {
    const KernelDesc neighbour = Kernel(dram, l2);
    EXPECT_LT(SpeedBeside(mean, 66, neighbour, 66), 1);
    EXPECT_DOUBLE_EQ(SpeedBeside(graph, 66, neighbour, 66), SpeedBeside(mean, 66, neighbour, 66));
  }
}

TEST(SpeedBesideNeighbourTest, AGraphWhoseNodesStateNothingAsksForWhatItStatesItself) {
  const KernelDesc neighbour = Kernel(0.9, 0.9);
  for (const int64_t duration_ns : {0, 1'000'000}) {
    KernelDesc graph = Kernel(0.8, 0.7);
    GraphNode node;
    node.duration_ns = duration_ns;
    graph.simulation.nodes = {node};
    EXPECT_DOUBLE_EQ(SpeedBeside(graph, 66, neighbour, 66),
                     SpeedBeside(Kernel(0.8, 0.7), 66, neighbour, 66));
  }
  KernelDesc graph = Kernel(0.8, 0.7);
  GraphNode node;
  node.duration_ns = 1'000'000;
  node.demand.l2 = 0.8;
  graph.simulation.nodes = {node};
  EXPECT_DOUBLE_EQ(SpeedBeside(graph, 66, neighbour, 66),
                   SpeedBeside(Kernel(0, 0.8), 66, neighbour, 66))
      << "one demand of a node is enough";
}

}  // namespace
}  // namespace gpushare::models
