// On a GPU: a graph with warm memory runs as it does without, in each place, and refuses what is
// not the GPU's.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/core/make_place.h"
#include "tests/cuda/gpu_fixture.h"
#include "tests/cuda/graphs/segments_kernels.h"

namespace gpushare::cuda {
namespace {

constexpr int kNodes = 20;
constexpr uint32_t kNodeNs = 5'000;
constexpr int kBlocks = 8;
constexpr int kWords = 1 << 20;  // 8 MB

class WarmMemoryGpuTest : public GpuTest {
 protected:
  WarmMemoryGpuTest() : GpuTest(false) {}

  void SetUp() override {
    GpuTest::SetUp();
    if (device_ == nullptr || IsSkipped()) return;
    const core::DeviceProfile& profile = device_->capabilities().profile;
    for (const core::PlaceSpec& spec :
         {core::PlaceSpec{0, 2, true}, core::PlaceSpec{2, profile.Groups() - 2, false}}) {
      const auto place = core::MakePlace(*device_, spec).value();
      lanes_.push_back(device_->CreateLane({.place = place, .evictable = false}).value());
    }
    lanes_.push_back(lane_);
    log_ = MakeValues(kNodes + 1);
    weights_ = MakeValues(kWords);
    graph_ = MakeChain(kNodes, kNodeNs, kBlocks, log_);
    ASSERT_TRUE(log_ != nullptr && weights_ != nullptr && graph_ != nullptr);
    kernel_.name = "network";
    kernel_.id = core::KernelId{1};
    kernel_.code = core::GraphCode{.graph = graph_, .segment_ns = -1};
  }
  void TearDown() override {
    device_ = nullptr;
    if (graph_ != nullptr) DestroyGraph(graph_);
  }

  void Run(core::LaneIndex lane) {
    core::LaunchRequest request;
    core::LaunchPart& part = request.parts[0];
    request.form = core::Form::kGraph;
    part.launch = core::LaunchId{++launches_};
    part.lane = lane;
    part.work.kernel = &kernel_;
    part.block_count = 1;
    ASSERT_TRUE(device_->Launch(request).ok());
    EXPECT_EQ(NextCompletion().outcome, core::Outcome::kFinished);
  }

  std::vector<core::LaneIndex> lanes_;
  core::KernelDesc kernel_;
  uint64_t* log_ = nullptr;
  uint64_t* weights_ = nullptr;
  void* graph_ = nullptr;
  uint64_t launches_ = 0;
};

TEST_F(WarmMemoryGpuTest, TheGraphRunsOnceInEachPlaceAndTheMemoryStaysAsItWas) {
  const auto at = reinterpret_cast<uint64_t>(weights_);
  kernel_.graph()->warm_memory = {{at, kWords * 4}, {at + kWords * 4 + 8, kWords * 4 - 8}};
  ASSERT_TRUE(device_->PrepareKernel(kernel_).ok());
  for (const core::LaneIndex lane : lanes_) {
    ClearValues(log_, kNodes + 1);
    Run(lane);
    const std::vector<uint64_t> entries = ReadValues(log_, kNodes + 1);
    EXPECT_EQ(entries[0], uint64_t{kNodes});
    for (int i = 0; i < kNodes; ++i) EXPECT_EQ(entries[i + 1], static_cast<uint64_t>(i));
  }
  EXPECT_EQ(ReadValues(weights_, kWords), std::vector<uint64_t>(kWords));
  ClearValues(log_, kNodes + 1);
  ASSERT_TRUE(RunWholeGraph(graph_)) << "the application's graph is its own";
}

TEST_F(WarmMemoryGpuTest, MemoryOfTheHostIsRefused) {
  std::vector<uint64_t> host(kWords);
  kernel_.graph()->warm_memory = {{reinterpret_cast<uint64_t>(weights_), 64},
                                  {reinterpret_cast<uint64_t>(host.data()), 64}};
  const absl::Status status = device_->PrepareKernel(kernel_);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "Range 1 of the warm memory of graph 'network', 64 bytes, is not in the memory of this "
            "GPU.");
}

TEST_F(WarmMemoryGpuTest, MoreThanTheCacheIsRefused) {
  constexpr int kMany = 1 << 26;  // 512 MB
  uint64_t* const memory = MakeValues(kMany);
  ASSERT_NE(memory, nullptr);
  kernel_.graph()->warm_memory = {{reinterpret_cast<uint64_t>(memory), uint64_t{kMany} * 8}};
  const absl::Status status = device_->PrepareKernel(kernel_);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("536870912 bytes, and the L2 cache has"), std::string::npos)
      << status;
}

}  // namespace
}  // namespace gpushare::cuda
