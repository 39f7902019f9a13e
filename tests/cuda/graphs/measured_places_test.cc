// How fast a graph is on the SMs of each place, with a fake driver.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "src/core/base/tuning.h"
#include "src/cuda/graphs/prepared_graphs.h"
#include "tests/cuda/graphs/fake_graphs.h"

namespace gpushare::cuda {
namespace {

// A graph takes 1 ms on the whole device and 2 ms in every place.
struct FakeRuns {
  int launches = 0;
  float whole_ms = 1;
  float place_ms = 2;
  std::map<int, float> slower_ms;      // by instance, in the order in which they were made
  std::map<CUgraphExec, int> numbers;  // of those that live, in that order
  int made = 0;                        // instances, those destroyed too: a handle may come again
  float ms = 0;                        // of the last run
  CUresult end = CUDA_SUCCESS;         // of each run
};
FakeRuns& Fake() {
  static FakeRuns fake;
  return fake;
}

constexpr int kRuns = 3;  // of each instance
constexpr int kTried = core::kInstancesTried;

void FillEvents(DriverApi& api) {
  api.cuEventCreate = [](CUevent* event, unsigned int flags) {
    *event = nullptr;
    return flags == CU_EVENT_DEFAULT ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  api.cuEventDestroy = [](CUevent /*event*/) { return CUDA_SUCCESS; };
  api.cuEventRecord = [](CUevent /*event*/, CUstream /*stream*/) { return CUDA_SUCCESS; };
  api.cuEventElapsedTime = [](float* ms, CUevent /*from*/, CUevent /*to*/) {
    *ms = Fake().ms;
    return CUDA_SUCCESS;
  };
}

DriverApi FakeDriver() {
  Fake() = FakeRuns();
  DriverApi api = MakeFakeGraphs();
  FillEvents(api);
  static decltype(api.cuGraphInstantiate) instantiate;
  instantiate = api.cuGraphInstantiate;
  api.cuGraphInstantiate = [](CUgraphExec* instance, CUgraph graph, unsigned long long flags) {
    const CUresult code = instantiate(instance, graph, flags);
    if (code == CUDA_SUCCESS) Fake().numbers[*instance] = Fake().made++;
    return code;
  };
  api.cuGraphLaunch = [](CUgraphExec exec, CUstream stream) {
    ++Fake().launches;
    const bool whole = stream == reinterpret_cast<CUstream>(FakePrimary());
    Fake().ms =
        (whole ? Fake().whole_ms : Fake().place_ms) + Fake().slower_ms[Fake().numbers.at(exec)];
    return CUDA_SUCCESS;
  };
  api.cuStreamQuery = [](CUstream /*stream*/) {
    return Fake().launches > 0 ? Fake().end : CUDA_SUCCESS;  // an upload ends well
  };
  return api;
}

class MeasuredPlacesTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(places_.Split(132).ok());
    for (const int32_t groups : {1, 2, 4}) {
      core::PlaceSpec spec;
      spec.groups = groups;
      ASSERT_TRUE(places_.Create(places_.count(), spec).ok());
    }
    for (int i = 0; i < 3; ++i) graph_.AddKernel();
    kernel_.id = core::KernelId{1};
    kernel_.name = "query";
    kernel_.code =
        core::GraphCode{.graph = graph_.handle(), .segment_ns = -1, .measure_places = true};
  }

  const Context context_{FakeDriver(), 0, FakePrimary()};
  Places places_{context_};
  FakeGraph graph_;
  core::KernelDesc kernel_;
};

TEST_F(MeasuredPlacesTest, EachSizeHasItsSpeedOverThatOfTheWholeDevice) {
  PreparedGraphs graphs(context_, places_);
  ASSERT_TRUE(graphs.Prepare(kernel_).ok());
  const auto speeds = graphs.SpeedsOf(kernel_.id);
  ASSERT_EQ(speeds.size(), 4U);
  for (size_t i = 0; i + 1 < speeds.size(); ++i) {
    EXPECT_EQ(speeds[i].sms, places_.place(static_cast<core::PlaceIndex>(i + 1)).sms);
    EXPECT_EQ(speeds[i].speed, 0.5);
  }
  EXPECT_EQ(speeds.back().sms, 132);
  EXPECT_EQ(speeds.back().speed, 1);
  EXPECT_EQ(Fake().launches, 4 * (1 + kTried) * kRuns) << "a place is measured first";
  EXPECT_EQ(FakeGraphs().instances.size(), 4U) << "one stays in each place";
}

TEST_F(MeasuredPlacesTest, NothingRunsUnlessAskedOrWhereNoPlaceHoldsIt) {
  PreparedGraphs graphs(context_, places_);
  kernel_.graph()->measure_places = false;
  ASSERT_TRUE(graphs.Prepare(kernel_).ok());
  EXPECT_TRUE(graphs.SpeedsOf(kernel_.id).empty());
  kernel_.id = core::KernelId{2};
  kernel_.graph()->measure_places = true;
  kernel_.confinable = false;
  ASSERT_TRUE(graphs.Prepare(kernel_).ok());
  EXPECT_TRUE(graphs.SpeedsOf(kernel_.id).empty());
  EXPECT_TRUE(graphs.SpeedsOf(core::KernelId{3}).empty()) << "nobody prepared it";
  EXPECT_EQ(Fake().launches, 0);
}

// A graph of 2 s: the second place is not worth the wait.
TEST_F(MeasuredPlacesTest, PlacesForWhichNoTimeIsLeftAreLeftOut) {
  Fake().place_ms = 2'000;
  PreparedGraphs graphs(context_, places_);
  ASSERT_TRUE(graphs.Prepare(kernel_).ok());
  EXPECT_EQ(graphs.SpeedsOf(kernel_.id).size(), 2U);
  EXPECT_EQ(Fake().launches, (1 + kTried + 1) * kRuns);
}

// The first four are one a place: the whole device has also 4 to 6, the largest place 7 to 9.
TEST_F(MeasuredPlacesTest, APlaceKeepsTheFastestOfSeveralInstances) {
  Fake().slower_ms = {{0, 0.06F}, {4, 0.05F}, {6, 0.1F}, {3, 2}, {7, 2}, {8, 2}};
  PreparedGraphs graphs(context_, places_);
  ASSERT_TRUE(graphs.Prepare(kernel_).ok());
  const PreparedGraph& prepared = *graphs.Find(kernel_.id);
  EXPECT_EQ(Fake().numbers.at(prepared.instances[core::kWholeDevice]), 5);
  EXPECT_EQ(Fake().numbers.at(prepared.instances[3]), 9);
  EXPECT_EQ(Fake().numbers.at(prepared.instances[1]), 1) << "as fast as the others";
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(graphs.SpeedsOf(kernel_.id)[i].speed, 0.5);
  EXPECT_EQ(FakeGraphs().instances.size(), 4U);
}

TEST_F(MeasuredPlacesTest, ALongGraphLeavesTheTimeToItsPlaces) {
  Fake().whole_ms = 21;  // four times three runs take more than 250 ms
  Fake().place_ms = 42;
  Fake().slower_ms = {{0, 1}};
  PreparedGraphs graphs(context_, places_);
  ASSERT_TRUE(graphs.Prepare(kernel_).ok());
  EXPECT_EQ(graphs.SpeedsOf(kernel_.id).size(), 4U);
  EXPECT_EQ(Fake().numbers.at(graphs.Find(kernel_.id)->instances[core::kWholeDevice]), 0);
}

TEST_F(MeasuredPlacesTest, AGraphInSegmentsHasOneInstanceToMeasure) {
  kernel_.graph()->segment_ns = 0;
  PreparedGraphs graphs(context_, places_);
  ASSERT_TRUE(graphs.Prepare(kernel_).ok());
  EXPECT_EQ(Fake().launches, 4 * kRuns);
}

TEST_F(MeasuredPlacesTest, WithoutMemoryForOthersAPlaceKeepsWhatItHas) {
  FakeGraphs().instantiations_max = 4;
  PreparedGraphs graphs(context_, places_);
  ASSERT_TRUE(graphs.Prepare(kernel_).ok());
  EXPECT_EQ(FakeGraphs().instances.size(), 4U);
  EXPECT_EQ(graphs.SpeedsOf(kernel_.id).size(), 4U);
}

TEST_F(MeasuredPlacesTest, ARunThatFailsFailsTheRegistrationAndLeavesNothing) {
  PreparedGraphs graphs(context_, places_);
  Fake().end = CUDA_ERROR_INVALID_VALUE;
  EXPECT_FALSE(graphs.Prepare(kernel_).ok());
  EXPECT_EQ(graphs.Find(kernel_.id), nullptr);
  EXPECT_TRUE(FakeGraphs().instances.empty());
}

}  // namespace
}  // namespace gpushare::cuda
