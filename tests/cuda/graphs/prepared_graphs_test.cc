// What registering a graph leaves behind, with a fake driver: instances are bounded, and a
// registration that fails leaves none.

#include "src/cuda/graphs/prepared_graphs.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/graphs/fake_graphs.h"

namespace gpushare::cuda {
namespace {

class PreparedGraphsTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(places_.Split(132).ok()); }

  core::PlaceIndex MakePlace() {
    core::PlaceSpec spec;
    const core::PlaceIndex place = places_.count();
    spec.groups = 1 + place % 8;
    EXPECT_TRUE(places_.Create(place, spec).ok());
    return place;
  }

  // A chain of kernels, each in a segment of its own.
  core::KernelDesc Chain(int nodes) {
    graphs_.push_back(std::make_unique<FakeGraph>());
    for (int i = 0; i < nodes; ++i) graphs_.back()->AddKernel();
    core::KernelDesc kernel;
    kernel.id = core::KernelId{static_cast<uint32_t>(graphs_.size())};
    kernel.name = "chain" + std::to_string(graphs_.size());
    kernel.code = core::GraphCode{.graph = graphs_.back()->handle(), .segment_ns = 1};
    return kernel;
  }

  static size_t Alive() { return FakeGraphs().instances.size() + FakeGraphs().graphs.size(); }
  static void FailAfter(int instantiations) {
    FakeGraphs().instantiations_max = FakeGraphs().instantiated + instantiations;
  }

  const Context context_{MakeFakeGraphs(), 0, FakePrimary()};
  Places places_{context_};
  std::vector<std::unique_ptr<FakeGraph>> graphs_;
};

// How many nodes the instances were made of, in their order.
std::vector<size_t>& NodesOfInstances() {
  static std::vector<size_t> nodes;
  return nodes;
}

TEST_F(PreparedGraphsTest, EachInstanceReadsTheWarmMemoryOnce) {
  DriverApi api = MakeFakeGraphs();
  NodesOfInstances().clear();
  static decltype(api.cuGraphInstantiate) instantiate;
  instantiate = api.cuGraphInstantiate;
  api.cuGraphInstantiate = [](CUgraphExec* instance, CUgraph graph, unsigned long long flags) {
    NodesOfInstances().push_back(GraphOf(graph).nodes.size());
    return instantiate(instance, graph, flags);
  };
  api.cuDeviceGetAttribute = [](int* value, CUdevice_attribute /*attribute*/, CUdevice /*gpu*/) {
    *value = 1 << 20;
    return CUDA_SUCCESS;
  };
  api.cuPointerGetAttribute = [](void* out, CUpointer_attribute attribute, CUdeviceptr) {
    if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
      *static_cast<CUmemorytype*>(out) = CU_MEMORYTYPE_DEVICE;
    } else {
      *static_cast<int*>(out) = 0;
    }
    return CUDA_SUCCESS;
  };
  const Context context(api, 0, FakePrimary());
  Places places(context);
  ASSERT_TRUE(places.Split(132).ok());
  core::PlaceSpec spec;
  spec.groups = 2;
  ASSERT_TRUE(places.Create(1, spec).ok());
  void* (*const warm_kernel)() = [] { return reinterpret_cast<void*>(uintptr_t{16}); };
  PreparedGraphs graphs(context, places, warm_kernel);
  core::KernelDesc chain = Chain(5);
  chain.graph()->segment_ns = -1;
  ASSERT_TRUE(graphs.Prepare(chain).ok());
  EXPECT_EQ(NodesOfInstances(), (std::vector<size_t>{5, 5}));
  chain.id = core::KernelId{7};
  chain.graph()->warm_memory = {{uint64_t{1} << 20, 4096}, {uint64_t{1} << 24, 4096}};
  ASSERT_TRUE(graphs.Prepare(chain).ok());
  EXPECT_EQ(NodesOfInstances(), (std::vector<size_t>{5, 5, 6, 6}));
  EXPECT_EQ(graphs_.back()->nodes.size(), 5U) << "the application's graph is its own";
}

TEST_F(PreparedGraphsTest, ARegistrationThatFailsPartWayLeavesNoInstance) {
  for (int i = 0; i < 3; ++i) MakePlace();
  PreparedGraphs graphs(context_, places_);
  const core::KernelDesc chain = Chain(5);
  for (int made = 0; made < 4; ++made) {
    FailAfter(made);
    EXPECT_EQ(graphs.Prepare(chain).code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(graphs.Find(chain.id), nullptr);
    EXPECT_EQ(Alive(), 0U) << "after " << made << " instances";
  }
}

// No place exists when it is registered; each that is made later would be refused for its sake.
TEST_F(PreparedGraphsTest, AGraphThatCannotBeConfinedIsRefusedBeforeItRefusesPlaces) {
  PreparedGraphs graphs(context_, places_);
  core::KernelDesc chain = Chain(3);
  graphs_.back()->nodes[1]->kernel.kern = nullptr;  // of a module
  EXPECT_EQ(graphs.Prepare(chain).code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Alive(), 0U);
  chain.confinable = false;
  ASSERT_TRUE(graphs.Prepare(chain).ok());
  EXPECT_TRUE(graphs.AddPlace(MakePlace()).ok());
}

TEST_F(PreparedGraphsTest, AGraphWhoseSegmentsFailRunsWholeAndKeepsNoneOfThem) {
  for (int i = 0; i < 3; ++i) MakePlace();
  for (const int made : {0, 1, 5, 13, 19}) {
    PreparedGraphs graphs(context_, places_);
    const core::KernelDesc chain = Chain(5);
    FailAfter(4 + made);
    EXPECT_TRUE(graphs.Prepare(chain).ok());
    EXPECT_EQ(Alive(), 5U) << "after " << made << " segments";
    EXPECT_EQ(graphs.CutOf(chain.id).segments, 1);
    EXPECT_NE(graphs.CutOf(chain.id).whole_reason.find("cannot be made"), std::string::npos);
    FakeGraphs().instantiations_max = -1;
  }
  EXPECT_EQ(Alive(), 0U);
}

// The library makes no call to a device that is lost.
TEST_F(PreparedGraphsTest, NothingIsDestroyedOnALostDevice) {
  for (int i = 0; i < 3; ++i) MakePlace();
  PreparedGraphs graphs(context_, places_);
  FailAfter(6);
  FakeGraphs().failure = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(graphs.Prepare(Chain(5)).code(), absl::StatusCode::kDataLoss);
  EXPECT_GE(FakeGraphs().instances.size(), 6U);
}

// An upload is where an error of earlier work first shows.
TEST_F(PreparedGraphsTest, AnUploadThatFailsFailsTheRegistration) {
  MakePlace();
  PreparedGraphs graphs(context_, places_);
  const core::KernelDesc chain = Chain(5);
  FakeGraphs().upload = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(graphs.Prepare(chain).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Alive(), 0U);
  FakeGraphs().upload = CUDA_SUCCESS;
  FakeGraphs().upload_end = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(graphs.Prepare(chain).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Alive(), 0U);
  EXPECT_EQ(graphs.Find(chain.id), nullptr);
}

TEST_F(PreparedGraphsTest, AnUploadToALostDeviceDestroysNothing) {
  PreparedGraphs graphs(context_, places_);
  FakeGraphs().upload = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(graphs.Prepare(Chain(5)).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(FakeGraphs().instances.size(), 1U);
}

TEST_F(PreparedGraphsTest, EveryInstanceGoesWithTheDevice) {
  for (int i = 0; i < 3; ++i) MakePlace();
  {
    PreparedGraphs graphs(context_, places_);
    ASSERT_TRUE(graphs.Prepare(Chain(5)).ok());
    EXPECT_EQ(Alive(), 1U + 4 + 4 * 5);
  }
  EXPECT_EQ(Alive(), 0U);
}

TEST_F(PreparedGraphsTest, APlaceThatFailsPartWayLeavesNoInstance) {
  PreparedGraphs graphs(context_, places_);
  const core::KernelDesc first = Chain(5);
  const core::KernelDesc second = Chain(5);
  ASSERT_TRUE(graphs.Prepare(first).ok());
  ASSERT_TRUE(graphs.Prepare(second).ok());
  const size_t before = Alive();
  const core::PlaceIndex place = MakePlace();
  for (const int made : {0, 1, 4, 6, 7, 11}) {
    FailAfter(made);
    EXPECT_FALSE(graphs.AddPlace(place).ok());
    EXPECT_EQ(Alive(), before) << "after " << made << " instances";
  }
  FakeGraphs().instantiations_max = -1;
  EXPECT_TRUE(graphs.AddPlace(place).ok());
  EXPECT_TRUE(graphs.Confines(second.id, place));
}

TEST_F(PreparedGraphsTest, APlaceThatEndsGivesItsInstancesBackAndIsMadeAgain) {
  MakePlace();
  PreparedGraphs graphs(context_, places_);
  const core::KernelDesc chain = Chain(5);
  ASSERT_TRUE(graphs.Prepare(chain).ok());
  const size_t before = Alive();
  const core::PlaceIndex place = MakePlace();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(graphs.AddPlace(place).ok());
    EXPECT_EQ(Alive(), before + 6U);
    EXPECT_TRUE(graphs.Confines(chain.id, place));
    graphs.RemovePlace(place);
    EXPECT_EQ(Alive(), before);
    EXPECT_FALSE(graphs.Confines(chain.id, place));
  }
}

// The application may have destroyed its graph when a place is made.
TEST_F(PreparedGraphsTest, ALaterPlaceNeedsTheApplicationsGraphNoMore) {
  PreparedGraphs graphs(context_, places_);
  const core::KernelDesc chain = Chain(5);
  ASSERT_TRUE(graphs.Prepare(chain).ok());
  graphs_.clear();
  const core::PlaceIndex place = MakePlace();
  ASSERT_TRUE(graphs.AddPlace(place).ok());
  EXPECT_TRUE(graphs.Confines(chain.id, place));
  EXPECT_EQ(graphs.SegmentsFor(chain.id, place).size(), 5U);
}

TEST_F(PreparedGraphsTest, AGraphIsMadeWhereThereArePlacesAndNowhereElse) {
  const core::PlaceIndex ended = MakePlace();
  const core::PlaceIndex stays = MakePlace();
  places_.Destroy(ended);
  PreparedGraphs graphs(context_, places_);
  const core::KernelDesc chain = Chain(5);
  ASSERT_TRUE(graphs.Prepare(chain).ok());
  EXPECT_FALSE(graphs.Confines(chain.id, ended));
  EXPECT_TRUE(graphs.Confines(chain.id, stays));
  EXPECT_EQ(Alive(), 1U + 2 * 6);
}

TEST_F(PreparedGraphsTest, TheSegmentsOfAllGraphsStayWithinTheBound) {
  while (places_.count() < 29) MakePlace();
  PreparedGraphs graphs(context_, places_);
  constexpr int kGraphs = 6;
  int segments = 4'000;
  for (int i = 0; i < kGraphs; ++i) {
    const core::KernelDesc chain = Chain(4'000);
    ASSERT_TRUE(graphs.Prepare(chain).ok());
    const core::GraphCut cut = graphs.CutOf(chain.id);
    EXPECT_GT(cut.segments, 1) << cut.whole_reason;
    EXPECT_LT(cut.segments, segments) << "Each graph leaves half of the room to the next.";
    segments = cut.segments;
  }
  EXPECT_LE(FakeGraphs().instances.size(),
            kMaxSegmentInstances + static_cast<size_t>(kGraphs * places_.count()));
}

// Groups of segments count too, of which a graph on the whole device alone has most.
TEST_F(PreparedGraphsTest, TheGroupsOfAllGraphsStayWithinTheBound) {
  PreparedGraphs graphs(context_, places_);
  constexpr size_t kGraphs = 10;
  for (size_t i = 0; i < kGraphs; ++i) {
    ASSERT_TRUE(graphs.Prepare(Chain(4'000)).ok());
    EXPECT_LE(Alive(), kMaxSegmentInstances + i + 1) << "and one of each whole graph";
  }
}

// A node counts 9 us, so 11 are a group of 100 us, 44 one of 400 us, and 220 one of 2 ms.
TEST_F(PreparedGraphsTest, LongerSegmentsHaveInstancesOnTheWholeDeviceAlone) {
  const core::PlaceIndex side = MakePlace();
  {
    PreparedGraphs graphs(context_, places_);
    const core::KernelDesc chain = Chain(440);
    ASSERT_TRUE(graphs.Prepare(chain).ok());
    ASSERT_EQ(graphs.LongerFor(chain.id, core::kWholeDevice).size(), 4U);
    EXPECT_EQ(graphs.LongerFor(chain.id, side).size(), 0U);
    const auto groups = graphs.GroupsFor(chain.id, core::kWholeDevice);
    EXPECT_EQ(groups[0].size(), 1U);
    EXPECT_EQ(groups[1].size(), 2U);
    EXPECT_EQ(groups[2].size(), 10U);
    EXPECT_EQ(groups[3].size(), 40U);
    // The whole graph is the one that was instantiated for its place anyway.
    EXPECT_EQ(groups[0][0], graphs.Find(chain.id)->InstanceFor(core::kWholeDevice));
    EXPECT_EQ(Alive(), 1U + 2 + 2 * 440 + 52);
    graphs.Release(chain.id);
    EXPECT_EQ(Alive(), 0U);
  }
  EXPECT_EQ(Alive(), 0U);
}

// Calls that look at kernels, which twins would take.
int& Looks() {
  static int looks = 0;
  return looks;
}

// Each node takes 1 ms.
DriverApi MeasuringDriver() {
  DriverApi api = MakeFakeGraphs();
  static decltype(api.cuGraphKernelNodeGetParams) get_params;
  static decltype(api.cuGraphNodeGetType) get_type;
  get_params = api.cuGraphKernelNodeGetParams;
  get_type = api.cuGraphNodeGetType;
  api.cuGraphKernelNodeGetParams = [](CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
    ++Looks();
    return get_params(node, params);
  };
  api.cuGraphNodeGetType = [](CUgraphNode node, CUgraphNodeType* type) {
    ++Looks();
    return get_type(node, type);
  };
  api.cuKernelGetFunction = [](CUfunction* /*function*/, CUkernel /*kernel*/) {
    ++Looks();
    return CUDA_ERROR_NOT_FOUND;
  };
  api.cuEventCreate = [](CUevent* event, unsigned int /*flags*/) {
    *event = reinterpret_cast<CUevent>(intptr_t{1});  // NOLINT
    return CUDA_SUCCESS;
  };
  api.cuEventDestroy = [](CUevent /*event*/) { return CUDA_SUCCESS; };
  api.cuEventElapsedTime = [](float* ms, CUevent /*from*/, CUevent /*to*/) {
    *ms = 1;
    return CUDA_SUCCESS;
  };
  api.cuGraphAddEventRecordNode = [](CUgraphNode* node, CUgraph graph,
                                     const CUgraphNode* /*behind*/, size_t /*count*/,
                                     CUevent /*event*/) {
    *node = GraphOf(graph).Add(CU_GRAPH_NODE_TYPE_EVENT_RECORD).handle();
    return CUDA_SUCCESS;
  };
  api.cuGraphLaunch = [](CUgraphExec /*instance*/, CUstream /*stream*/) { return CUDA_SUCCESS; };
  return api;
}

TEST_F(PreparedGraphsTest, WithoutATwinLongNodesAreNotLookedAt) {
  const Context context(MeasuringDriver(), 0, FakePrimary());
  Places places(context);
  ASSERT_TRUE(places.Split(132).ok());
  const PreparedFunctions none(context);
  std::vector<int> looks;
  for (const PreparedFunctions* const functions :
       {static_cast<const PreparedFunctions*>(nullptr), &none}) {
    PreparedGraphs graphs(context, places, &WarmKernel, functions);
    core::KernelDesc chain = Chain(5);
    chain.graph()->measure_nodes = true;
    chain.graph()->segment_ns = 100'000;
    Looks() = 0;
    ASSERT_TRUE(graphs.Prepare(chain).ok());
    looks.push_back(Looks());
    const core::GraphCut cut = graphs.CutOf(chain.id);
    EXPECT_EQ(cut.segments, 5) << cut.whole_reason;
    EXPECT_EQ(cut.longest_ns, 1'000'000);
    EXPECT_EQ(cut.evictable_segments, 0);
  }
  EXPECT_EQ(looks[0], looks[1]);
}

TEST_F(PreparedGraphsTest, EqualGroupsShareAnInstance) {
  PreparedGraphs graphs(context_, places_);
  const core::KernelDesc chain = Chain(45);  // four groups of 11, one of 44, and a segment
  ASSERT_TRUE(graphs.Prepare(chain).ok());
  const auto groups = graphs.GroupsFor(chain.id, core::kWholeDevice);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[1][1], graphs.SegmentsFor(chain.id, core::kWholeDevice)[44]);
  EXPECT_EQ(groups[2][4], groups[1][1]);
  EXPECT_EQ(Alive(), 1U + 1 + 45 + 1 + 4);
}

TEST_F(PreparedGraphsTest, AGraphKeepsItsSegmentsWhereLongerOnesFail) {
  PreparedGraphs graphs(context_, places_);
  const core::KernelDesc chain = Chain(440);
  FailAfter(1 + 440 + 2 + 5);
  ASSERT_TRUE(graphs.Prepare(chain).ok());
  EXPECT_EQ(graphs.CutOf(chain.id).segments, 440);
  EXPECT_EQ(graphs.LongerFor(chain.id, core::kWholeDevice).size(), 0U);
  EXPECT_EQ(Alive(), 1U + 1 + 440);
}

TEST_F(PreparedGraphsTest, APlaceForWhichTheSegmentsAreTooManyIsRefused) {
  PreparedGraphs graphs(context_, places_);
  const core::KernelDesc chain = Chain(4'000);
  ASSERT_TRUE(graphs.Prepare(chain).ok());
  ASSERT_EQ(graphs.CutOf(chain.id).segments, 4'000);
  absl::Status status;
  while (places_.count() < 12 && status.ok()) status = graphs.AddPlace(MakePlace());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  // Of eight places, and 473 groups.
  EXPECT_EQ(std::string(status.message()),
            "Graph 'chain1' needs 4000 instances of segments in a new place, and the device has "
            "32473 of at most 32768; make places before graphs, or make segments longer.");
}

TEST_F(PreparedGraphsTest, AReleasedGraphGivesEverythingBack) {
  while (places_.count() < 29) MakePlace();
  PreparedGraphs graphs(context_, places_);
  int segments = 0;
  for (int i = 0; i < 4; ++i) {
    const core::KernelDesc chain = Chain(4'000);
    ASSERT_TRUE(graphs.Prepare(chain).ok());
    if (i > 0) {
      EXPECT_EQ(graphs.CutOf(chain.id).segments, segments);
    }
    segments = graphs.CutOf(chain.id).segments;
    graphs.Release(chain.id);
    EXPECT_EQ(Alive(), 0U);
    EXPECT_EQ(graphs.Find(chain.id), nullptr);
  }
  graphs.Release(core::KernelId{99});
}

}  // namespace
}  // namespace gpushare::cuda
