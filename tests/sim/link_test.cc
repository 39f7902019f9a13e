// Copies over the full-duplex link: Baymax 6.1's observations and hardware.md's copy figures.

#include "src/sim/physics/link.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/sim/sim_fixture.h"

namespace gpushare::sim {
namespace {

constexpr auto kUp = core::CopyDirection::kHostToDevice;
constexpr auto kDown = core::CopyDirection::kDeviceToHost;
constexpr int64_t kMega = 1 << 20;

class LinkTest : public testing::Test {
 protected:
  // Puts each copy on a lane of its own.
  void Copy(uint64_t id, core::CopyDirection direction, bool pinned, int64_t bytes) {
    core::LaunchRequest request;
    request.parts[0].launch = core::LaunchId{id};
    request.parts[0].lane = *device_->CreateLane({});
    request.form = core::Form::kMemcpy;
    request.parts[0].work.copy = {direction, pinned, bytes, 0, nullptr, nullptr};
    ASSERT_TRUE(device_->Launch(request).ok());
  }
  std::map<uint64_t, double> EndsUs() {
    std::map<uint64_t, double> ends;
    for (const auto& done : RunUntilIdle(*device_)) {
      const auto seen = done.end_ns + H200().device.completion_latency_ns;
      ends[done.launch.value] = static_cast<double>(seen) / 1e3;
    }
    return ends;
  }
  std::unique_ptr<core::Device> device_ = MakeDevice(Tier::kKernel);
};

TEST_F(LinkTest, PinnedCopiesAloneTakeTheMeasuredTimes) {
  const std::map<int64_t, double> measured_us = {{65'536, 8.4}, {kMega, 26.6}, {16 * kMega, 310}};
  for (const auto& [bytes, us] : measured_us) {
    device_ = MakeDevice(Tier::kKernel);
    Copy(1, kUp, true, bytes);
    EXPECT_NEAR(EndsUs()[1], us, us * 0.04) << bytes << " bytes";
  }
}

TEST_F(LinkTest, ASmallCopyWaitsBehindALargePinnedOneATinyOneDoesNot) {
  Copy(1, kUp, true, 256 * kMega);
  Copy(2, kUp, true, 65'536);
  Copy(3, kUp, true, 4'096);
  auto ends = EndsUs();
  EXPECT_NEAR(ends[2], 4'840, 60);  // hardware.md: 4.8 ms
  EXPECT_LT(ends[3], 15);           // 11 us
}

TEST_F(LinkTest, BothDirectionsRunAtTheDuplexRate) {
  Copy(1, kUp, true, 1000 * kMega);
  Copy(2, kDown, true, 1000 * kMega);
  auto ends = EndsUs();
  const double alone_us = 1000.0 * kMega / 55.5 / 1e3;
  EXPECT_NEAR(ends[1] / alone_us, 2 * 55.5 / 101.6, 0.01);
  EXPECT_NEAR(ends[2], ends[1], 1);
}

TEST_F(LinkTest, PageableCopiesShareOneTotalRate) {
  for (uint64_t id = 1; id <= 4; ++id) Copy(id, kUp, false, 100 * kMega);
  const double one_us = 100.0 * kMega / 10.0 / 1e3;
  for (const auto& [id, end] : EndsUs()) EXPECT_NEAR(end / one_us, 4, 0.05) << id;
}

// Baymax 6.1, observation 1: pageable copies do not slow the other direction.
TEST_F(LinkTest, APageableCopyDoesNotSlowTheOtherDirection) {
  Copy(1, kUp, false, 100 * kMega);
  Copy(2, kDown, true, 100 * kMega);
  EXPECT_NEAR(EndsUs()[2], 100.0 * kMega / 55.5 / 1e3, 20);
}

// Observation 2: while a pinned copy runs, other copies of its direction wait.
TEST_F(LinkTest, APinnedCopyMakesThePageableOnesWait) {
  Copy(1, kUp, false, 10 * kMega);
  Copy(2, kUp, true, 1000 * kMega);
  auto ends = EndsUs();
  EXPECT_GT(ends[1], ends[2]);
  EXPECT_NEAR(ends[2], 1000.0 * kMega / 55.5 / 1e3, 20);
  EXPECT_NEAR(ends[1] - ends[2], 10.0 * kMega / 10.0 / 1e3, 20);
}

TEST_F(LinkTest, CopiesDoNotOccupySms) {
  Copy(1, kUp, true, 100 * kMega);
  RunUntilIdle(*device_);
  EXPECT_EQ(device_->BusySmNs(), 0);
}

// A kernel loses in proportion to the DRAM that it uses, while pinned copies run.
TEST(CopySlowdownTest, CopiesSlowWhatUsesDramAndNothingElse) {
  SimOptions options;
  options.profile = H200().device;
  options.profile.copy_in_slowdown = 0.1;
  const auto time = [&options](double dram, bool pinned, core::CopyDirection direction) {
    std::unique_ptr<core::Device> device = *MakeSimDevice(options);
    core::KernelDesc graph;
    graph.name = "graph";
    graph.id = core::KernelId{1};
    graph.code = core::GraphCode();
    graph.simulation.present = true;
    core::GraphNode node;
    node.duration_ns = 1'000'000;
    node.blocks = 132;
    node.demand.dram = dram;
    graph.simulation.nodes = {node};
    EXPECT_TRUE(device->PrepareKernel(graph).ok());
    core::LaunchRequest copy;
    copy.parts[0].launch = core::LaunchId{1};
    copy.parts[0].lane = *device->CreateLane({});
    copy.form = core::Form::kMemcpy;
    copy.parts[0].work.copy = {direction, pinned, 512 * kMega, 0, nullptr, nullptr};
    EXPECT_TRUE(device->Launch(copy).ok());
    core::LaunchRequest request;
    request.parts[0].launch = core::LaunchId{2};
    request.parts[0].lane = *device->CreateLane({});
    request.parts[0].work.kernel = &graph;
    request.form = core::Form::kGraph;
    EXPECT_TRUE(device->Launch(request).ok());
    for (const auto& done : RunUntilIdle(*device)) {
      if (done.launch.value == 2) return static_cast<double>(done.end_ns - done.start_ns);
    }
    return 0.0;
  };
  EXPECT_NEAR(time(0.8, true, kUp), 1.08e6, 2e3);
  EXPECT_NEAR(time(0.8, true, kDown), 1e6, 2e3);
  EXPECT_NEAR(time(0.8, false, kUp), 1e6, 2e3);
  EXPECT_NEAR(time(0, true, kUp), 1e6, 2e3);
}

}  // namespace
}  // namespace gpushare::sim
