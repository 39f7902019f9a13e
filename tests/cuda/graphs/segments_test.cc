// On a GPU: graphs in segments run every node once and in order, whatever evicts them and wherever
// they continue; what is refused says why; what cutting and registering cost.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "src/core/base/tuning.h"
#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "src/cuda/graphs/graph_segments.h"
#include "src/models/online/online_model.h"
#include "tests/core/make_place.h"
#include "tests/cuda/gpu_fixture.h"
#include "tests/cuda/graphs/segments_kernels.h"

namespace gpushare::cuda {
namespace {

constexpr int kSplits = 16;

class SegmentsGpuTest : public GpuTest {
 protected:
  SegmentsGpuTest() : GpuTest(true) {}

  void TearDown() override {
    device_ = nullptr;
    for (void* graph : graphs_) DestroyGraph(graph);
  }

  // An evictable lane on each side of the splits that a scheduler makes.
  void MakePlaces() {
    const core::DeviceProfile& profile = device_->capabilities().profile;
    lanes_ = {lane_};
    for (int groups = 1; groups < profile.Groups() && groups <= kSplits; ++groups) {
      for (const core::PlaceSpec& spec :
           {core::PlaceSpec{0, groups, true},
            core::PlaceSpec{groups, profile.Groups() - groups, false}}) {
        const auto place = core::MakePlace(*device_, spec).value();
        const auto lane = device_->CreateLane({.place = place, .evictable = true}).value();
        places_.push_back(place);
        lanes_.push_back(lane);
      }
    }
  }

  // A graph, or a chain that is captured in each place.
  void Register(void* graph, int64_t solo_ns, int64_t segment_ns = 0,
                ClusterChain* captured = nullptr) {
    ASSERT_TRUE(graph != nullptr || captured != nullptr);
    if (graph != nullptr) graphs_.push_back(graph);
    kernel_ = core::KernelDesc();
    kernel_.id = core::KernelId{++kernels_};
    kernel_.name = "graph" + std::to_string(kernels_);
    kernel_.code = core::GraphCode{.capture = captured == nullptr ? nullptr : &CaptureClusters,
                                   .capture_user = captured,
                                   .graph = graph,
                                   .segment_ns = segment_ns,
                                   .measure_nodes = measure_,
                                   .measure_places = measure_places_};
    kernel_.solo_hint_ns = solo_ns;
    const absl::Status status = device_->PrepareKernel(kernel_);
    ASSERT_TRUE(status.ok()) << status;
    kernel_.graph()->cut = device_->CutOf(kernel_);
  }

  int PlacesThatConfine() const {
    return static_cast<int>(std::count_if(
        places_.begin(), places_.end(),
        [this](core::PlaceIndex place) { return device_->Confines(kernel_.id, place); }));
  }

  core::LaunchRequest Request(core::LaneIndex lane, bool reset) {
    core::LaunchRequest request;
    core::LaunchPart& part = request.parts[0];
    request.form = core::Form::kSegments;
    part.launch = core::LaunchId{++launches_};
    part.lane = lane;
    part.work.kernel = &kernel_;
    part.block_count = kernel_.segments();
    part.counter = 0;
    part.reset_counter = reset;
    part.epoch = ++epoch_;
    return request;
  }

  // Runs the graph once, evicted after a random time again and again, each time on another lane.
  // Returns the number of evictions.
  int RunWithEvictions(int64_t between_ns) {
    std::uniform_int_distribution<size_t> any_lane(0, lanes_.size() - 1);
    std::uniform_int_distribution<int64_t> any_time(0, 2 * between_ns);
    int64_t done = 0;
    int evictions = 0;
    for (bool first = true; done < kernel_.segments(); first = false) {
      const core::LaneIndex lane = lanes_[any_lane(random_)];
      const core::LaunchRequest request = Request(lane, first);
      const absl::Status status = device_->Launch(request);
      EXPECT_TRUE(status.ok()) << status;
      if (!status.ok()) return evictions;
      const core::TimeNs evict_at = device_->NowNs() + any_time(random_);
      std::array<core::DeviceCompletion, 1> out;
      bool evicted = false;
      const core::TimeNs give_up_ns = device_->NowNs() + kHungNs;
      while (device_->PollCompletions(absl::MakeSpan(out)) == 0) {
        if (device_->NowNs() > give_up_ns) {
          ADD_FAILURE() << "A launch in segments does not complete.";
          return evictions;
        }
        if (evicted || device_->NowNs() < evict_at) continue;
        EXPECT_TRUE(device_->Evict(lane, epoch_, 0).ok());
        evicted = true;
      }
      EXPECT_NE(out[0].outcome, core::Outcome::kFailed) << out[0].error_code;
      if (out[0].outcome == core::Outcome::kFailed) return evictions;
      evictions += out[0].outcome == core::Outcome::kEvicted ? 1 : 0;
      done += out[0].block_tasks_done;
    }
    EXPECT_EQ(done, kernel_.segments());
    return evictions;
  }

  // Runs the graph `times` in segments without evictions; ns of each.
  double TimeSegments(int times, bool longer = false) {
    const core::TimeNs begin_ns = device_->NowNs();
    for (int i = 0; i < times; ++i) {
      core::LaunchRequest request = Request(lane_, true);
      request.longer_segments = longer;
      EXPECT_TRUE(device_->Launch(request).ok());
      EXPECT_EQ(NextCompletion().outcome, core::Outcome::kFinished);
    }
    return static_cast<double>(device_->NowNs() - begin_ns) / times;
  }

  std::vector<core::LaneIndex> lanes_;
  std::vector<core::PlaceIndex> places_;
  core::KernelDesc kernel_;
  bool measure_ = false;  // the nodes, at registration
  bool measure_places_ = false;
  uint32_t kernels_ = 0;
  uint64_t launches_ = 0;
  uint64_t epoch_ = 0;
  std::mt19937_64 random_{1};
  std::vector<void*> graphs_;
};

TEST_F(SegmentsGpuTest, EveryNodeOfAChainRunsOnceAndInOrder) {
  constexpr int kNodes = 400;
  ASSERT_NO_FATAL_FAILURE(MakePlaces());
  uint64_t* const log = MakeValues(kNodes + 1);
  ASSERT_NE(log, nullptr);
  Register(MakeChain(kNodes, 5'000, device_->capabilities().profile.sm_count, log),
           int64_t{kNodes} * 6'000);
  EXPECT_GT(kernel_.segments(), 10) << kernel_.graph()->cut.whole_reason;
  int evictions = 0;
  for (int run = 0; run < 30; ++run) {
    ClearValues(log, kNodes + 1);
    evictions += RunWithEvictions(300'000);
    const std::vector<uint64_t> entries = ReadValues(log, kNodes + 1);
    ASSERT_EQ(entries[0], static_cast<uint64_t>(kNodes)) << "run " << run;
    for (int i = 0; i < kNodes; ++i) {
      ASSERT_EQ(entries[static_cast<size_t>(i) + 1], static_cast<uint64_t>(i)) << "run " << run;
    }
  }
  EXPECT_GT(evictions, 60);
  std::printf("chain: %d segments, %d evictions in 30 runs on %zu lanes\n", kernel_.segments(),
              evictions, lanes_.size());
}

TEST_F(SegmentsGpuTest, BranchesCopiesAndFillsGiveTheWholeGraphsResult) {
  constexpr int kNodes = 600;
  ASSERT_NO_FATAL_FAILURE(MakePlaces());
  std::vector<Parents> nodes(kNodes);
  std::vector<uint64_t> expected(kNodes);
  for (int i = 0; i < kNodes; ++i) {
    const auto at = static_cast<size_t>(i);
    std::uniform_int_distribution<int> near(std::max(0, i - 40), std::max(0, i - 1));
    std::vector<int>& parents = nodes[at].of;
    if (i > 0) parents.push_back(near(random_));
    if (i > 1 && i % 3 == 0) {
      const int other = near(random_);
      if (other != parents[0]) parents.push_back(other);
    }
    uint64_t sum = 0;
    for (const int parent : parents) sum += expected[static_cast<size_t>(parent)];
    expected[at] = i % 16 == 0   ? 0x0707070707070707u
                   : i % 16 == 8 ? expected[static_cast<size_t>(parents[0])]
                                 : 1 + 31 * sum;
  }
  uint64_t* const values = MakeValues(kNodes);
  ASSERT_NE(values, nullptr);
  Register(MakeMixture(nodes, values), int64_t{kNodes} * 2'000, 20'000);
  EXPECT_GT(kernel_.segments(), 10) << kernel_.graph()->cut.whole_reason;
  for (int run = 0; run < 30; ++run) {
    ClearValues(values, kNodes);
    RunWithEvictions(100'000);
    ASSERT_EQ(ReadValues(values, kNodes), expected) << "run " << run;
  }
}

TEST_F(SegmentsGpuTest, ChildGraphsGiveTheWholeGraphsResultInEveryPlace) {
  constexpr int kChildren = 60;
  ASSERT_NO_FATAL_FAILURE(MakePlaces());
  uint64_t* const values = MakeValues(3 * kChildren);
  void* const graph = MakeNested(kChildren, values);
  ASSERT_NE(graph, nullptr);
  ASSERT_TRUE(RunWholeGraph(graph));
  const std::vector<uint64_t> expected = ReadValues(values, 3 * kChildren);
  ASSERT_NE(expected.back(), 0U);
  Register(graph, kChildren * 6'000, 20'000);
  EXPECT_EQ(kernel_.segments(), 20) << kernel_.graph()->cut.whole_reason;
  EXPECT_EQ(PlacesThatConfine(), static_cast<int>(places_.size()));
  for (int run = 0; run < 30; ++run) {
    ClearValues(values, 3 * kChildren);
    RunWithEvictions(60'000);
    ASSERT_EQ(ReadValues(values, 3 * kChildren), expected) << "run " << run;
  }
}

TEST_F(SegmentsGpuTest, FillsAndCopiesOfRowsGiveTheWholeGraphsResult) {
  constexpr int kNodes = 120;
  ASSERT_NO_FATAL_FAILURE(MakePlaces());
  uint64_t* const values = MakeValues(kNodes * kShapeWords);
  void* const graph = MakeShapes(kNodes, values);
  ASSERT_NE(graph, nullptr);
  ASSERT_TRUE(RunWholeGraph(graph));
  const std::vector<uint64_t> expected = ReadValues(values, kNodes * kShapeWords);
  Register(graph, kNodes * 2'000, 8'000);
  EXPECT_EQ(kernel_.segments(), 30) << kernel_.graph()->cut.whole_reason;
  for (int run = 0; run < 30; ++run) {
    ClearValues(values, kNodes * kShapeWords);
    RunWithEvictions(60'000);
    ASSERT_EQ(ReadValues(values, kNodes * kShapeWords), expected) << "run " << run;
  }
}

// Full edges inside a segment, stream order across a cut.
TEST_F(SegmentsGpuTest, AChainWithProgrammaticEdgesRunsInOrder) {
  constexpr int kNodes = 100;
  ASSERT_NO_FATAL_FAILURE(MakePlaces());
  uint64_t* const log = MakeValues(kNodes + 1);
  void* const graph = MakeProgrammatic(kNodes, 3'000, log);
  ASSERT_NE(graph, nullptr);
  Register(graph, kNodes * 4'000, 40'000);
  EXPECT_EQ(kernel_.segments(), 10) << kernel_.graph()->cut.whole_reason;
  if (kernel_.segments() == 1) return;
  for (int run = 0; run < 20; ++run) {
    ClearValues(log, kNodes + 1);
    RunWithEvictions(60'000);
    const std::vector<uint64_t> entries = ReadValues(log, kNodes + 1);
    ASSERT_EQ(entries[0], static_cast<uint64_t>(kNodes)) << "run " << run;
    for (int i = 0; i < kNodes; ++i) {
      ASSERT_EQ(entries[static_cast<size_t>(i) + 1], static_cast<uint64_t>(i)) << "run " << run;
    }
  }
}

TEST_F(SegmentsGpuTest, AGraphThatTheDeviceUpdatesRunsWholeAndTellsWhy) {
  uint64_t* const log = MakeValues(4);
  core::KernelDesc kernel;
  kernel.id = core::KernelId{1};
  kernel.name = "updatable";
  kernel.code = core::GraphCode{.capture = &CaptureUpdatable, .capture_user = log, .segment_ns = 1};
  const absl::Status status = device_->PrepareKernel(kernel);
  if (!status.ok()) GTEST_SKIP() << status;
  EXPECT_EQ(device_->CutOf(kernel).whole_reason,
            "The kernel of node 1 can be updated from the device, which a copy of the node would "
            "lose.");
}

// As cuBLAS and cuDNN capture them. Release 0.1 refused such a graph in every place.
TEST_F(SegmentsGpuTest, AGivenGraphWithClustersRunsInPlacesAsItsCapturedTwinDoes) {
  ASSERT_NO_FATAL_FAILURE(MakePlaces());
  uint64_t* const count = MakeValues(1);
  for (const int cluster : {2, 4, 8, 16}) {
    ClusterChain chain{64, cluster, count, 0};
    Register(nullptr, 64 * 10'000, -1, &chain);
    const int captured = PlacesThatConfine();
    Register(MakeClusters(chain), 64 * 10'000, -1);
    const int whole = PlacesThatConfine();
    Register(MakeClusters(chain), 64 * 10'000);
    std::printf("clusters of %d: confined in %d (captured), %d (given), %d (segments) of %zu\n",
                cluster, captured, whole, PlacesThatConfine(), places_.size());
    EXPECT_EQ(whole, captured);
    EXPECT_EQ(PlacesThatConfine(), captured);
    ClearValues(count, 1);
    RunWithEvictions(50'000);
    EXPECT_EQ(ReadValues(count, 1)[0], static_cast<uint64_t>(64 * cluster * 4));
  }
}

// A cluster of 16 blocks fits no partition of groups of 8 SMs; the rest of its graph does.
TEST_F(SegmentsGpuTest, ASegmentThatFitsNoPlaceRunsOnTheWholeDeviceAndTheOthersStay) {
  ASSERT_NO_FATAL_FAILURE(MakePlaces());
  uint64_t* const count = MakeValues(1);
  Register(MakeClusters({64, 2, count, 16}), 64 * 10'000);
  EXPECT_GT(kernel_.segments(), 4);
  EXPECT_EQ(PlacesThatConfine(), 0);
  for (int run = 0; run < 10; ++run) {
    ClearValues(count, 1);
    RunWithEvictions(50'000);
    EXPECT_EQ(ReadValues(count, 1)[0], static_cast<uint64_t>(63 * 2 * 4 + 16 * 4));
  }
}

TEST_F(SegmentsGpuTest, AGraphWithAHostFunctionRunsWholeAndTellsWhy) {
  uint64_t* const log = MakeValues(4);
  Register(MakeWithHostFunction(log), 3'000, 1'000);
  EXPECT_EQ(kernel_.segments(), 1);
  EXPECT_EQ(kernel_.graph()->cut.whole_reason, "Node 1 is a host function.");
}

TEST_F(SegmentsGpuTest, AnEvictionWaitsForTwoSegments) {
  constexpr int kNodes = 80;
  constexpr int64_t kNodeNs = 25'000;
  uint64_t* const log = MakeValues(kNodes + 1);
  Register(MakeChain(kNodes, kNodeNs, device_->capabilities().profile.sm_count, log),
           kNodes * kNodeNs);
  ASSERT_EQ(kernel_.segments(), kNodes / 4);
  std::vector<int64_t> latencies;
  for (int run = 0; run < 300; ++run) {
    ClearValues(log, kNodes + 1);
    ASSERT_TRUE(device_->Launch(Request(lane_, true)).ok());
    const core::TimeNs evict_at = device_->NowNs() + 300'000 + 1'000 * (run % 97);
    std::array<core::DeviceCompletion, 1> out;
    while (device_->NowNs() < evict_at) {
      ASSERT_EQ(device_->PollCompletions(absl::MakeSpan(out)), 0U);
    }
    ASSERT_TRUE(device_->Evict(lane_, epoch_, 0).ok());
    ASSERT_EQ(NextCompletion().outcome, core::Outcome::kEvicted);
    latencies.push_back(device_->NowNs() - evict_at);
  }
  std::sort(latencies.begin(), latencies.end());
  const int64_t p99_ns = latencies[latencies.size() * 99 / 100];
  std::printf("eviction at 100 us segments: p50 %.1f us, p99 %.1f us\n",
              static_cast<double>(latencies[latencies.size() / 2]) / 1e3,
              static_cast<double>(p99_ns) / 1e3);
  EXPECT_LT(p99_ns, 2 * (4 * kNodeNs + 4'000) + 20'000);
}

// 60 short kernels with a long one behind each 20.
std::vector<uint32_t> UnevenWaits() {
  std::vector<uint32_t> waits_ns;
  for (int i = 0; i < 60; ++i) {
    waits_ns.push_back(10'000);
    if (i % 20 == 19) waits_ns.push_back(400'000);
  }
  return waits_ns;
}

TEST_F(SegmentsGpuTest, MeasuringExecutesTheGraphTwiceAndALongKernelIsASegmentOfItsOwn) {
  ASSERT_NO_FATAL_FAILURE(MakePlaces());
  const std::vector<uint32_t> waits_ns = UnevenWaits();
  const int nodes = static_cast<int>(waits_ns.size());
  uint64_t* const log = MakeValues(2 * nodes + 1);
  measure_ = true;
  Register(MakeUnevenChain(waits_ns, 1, log), 0);
  const std::vector<uint64_t> ran = ReadValues(log, 2 * nodes + 1);
  ASSERT_EQ(ran[0], static_cast<uint64_t>(2 * nodes));
  for (int i = 0; i < 2 * nodes; ++i) {
    ASSERT_EQ(ran[static_cast<size_t>(i) + 1], static_cast<uint64_t>(i % nodes));
  }
  std::printf("measured: %d segments, the longest %.1f us, a query waits for %.1f us at most\n",
              kernel_.segments(), static_cast<double>(kernel_.graph()->cut.longest_ns) / 1e3,
              static_cast<double>(kernel_.graph()->cut.blocking.longest_ns()) / 1e3);
  EXPECT_GE(kernel_.graph()->cut.longest_ns, 400'000);
  EXPECT_LT(kernel_.graph()->cut.longest_ns, 430'000);
  EXPECT_EQ(kernel_.graph()->cut.blocking.longest_ns(), kernel_.graph()->cut.longest_ns);
  EXPECT_GE(kernel_.segments(), 9);
  EXPECT_LE(kernel_.segments(), 15);
  for (int run = 0; run < 10; ++run) {
    ClearValues(log, 2 * nodes + 1);
    RunWithEvictions(200'000);
    const std::vector<uint64_t> order = ReadValues(log, nodes + 1);
    ASSERT_EQ(order[0], static_cast<uint64_t>(nodes));
    for (int i = 0; i < nodes; ++i) {
      ASSERT_EQ(order[static_cast<size_t>(i) + 1], static_cast<uint64_t>(i));
    }
  }
}

TEST_F(SegmentsGpuTest, NoNodeRunsAtRegistrationUnlessAsked) {
  uint64_t* const log = MakeValues(41);
  Register(MakeChain(40, 10'000, 1, log), 400'000);
  EXPECT_GT(kernel_.segments(), 1);
  EXPECT_FALSE(kernel_.graph()->cut.blocking.known());
  EXPECT_EQ(ReadValues(log, 41)[0], 0U);
}

TEST_F(SegmentsGpuTest, SegmentsOf100UsKeep98PercentOfTheWholeGraph) {
  constexpr int kNodes = 64;
  constexpr int64_t kNodeNs = 25'000;
  uint64_t* const log = MakeValues(kNodes * 50 + 1);
  for (const int64_t segment_ns : {25'000, 50'000, 100'000, 200'000}) {
    ClearValues(log, 1);
    void* const graph = MakeChain(kNodes, kNodeNs, device_->capabilities().profile.sm_count, log);
    const double whole_ns = TimeWholeGraph(graph, 10);
    Register(graph, kNodes * kNodeNs, segment_ns);
    ClearValues(log, 1);
    TimeSegments(2);
    double best_ns = 1e18;
    for (int attempt = 0; attempt < 3; ++attempt) best_ns = std::min(best_ns, TimeSegments(10));
    std::printf(
        "segments of %.0f us: %.4f of the whole graph's speed (%.1f us a run, %.1f whole)\n",
        static_cast<double>(segment_ns) / 1e3, whole_ns / best_ns, best_ns / 1e3, whole_ns / 1e3);
    if (segment_ns >= 100'000) {
      EXPECT_GT(whole_ns / best_ns, 0.98);
    }
  }
}

// The lengths of the issue, of 10 us nodes: all give the same log, whenever the length changes.
TEST_F(SegmentsGpuTest, EachLengthRunsEachNodeOnceAndInOrder) {
  constexpr int kNodes = 1'500;
  constexpr std::array<int64_t, 4> kLimits = {0, 400'000, 2'000'000, core::kNever};
  ASSERT_NO_FATAL_FAILURE(MakePlaces());
  uint64_t* const log = MakeValues(4 * kNodes + 1);  // measuring runs the graph twice
  ASSERT_NE(log, nullptr);
  const auto expect_in_order = [&](const char* what, int run) {
    const std::vector<uint64_t> entries = ReadValues(log, kNodes + 1);
    ASSERT_EQ(entries[0], static_cast<uint64_t>(kNodes)) << what << " " << run;
    for (int i = 0; i < kNodes; ++i) {
      ASSERT_EQ(entries[static_cast<size_t>(i) + 1], static_cast<uint64_t>(i))
          << what << " " << run;
    }
  };
  for (const bool measure : {false, true}) {
    measure_ = measure;
    Register(MakeChain(kNodes, 10'000, device_->capabilities().profile.sm_count, log),
             int64_t{kNodes} * 11'000);
    ASSERT_GT(kernel_.segments(), 100) << kernel_.graph()->cut.whole_reason;
    for (const int64_t limit_ns : kLimits) {
      device_->LimitSegments(limit_ns);
      ClearValues(log, kNodes + 1);
      TimeSegments(1, true);
      ASSERT_NO_FATAL_FAILURE(expect_in_order("one length", static_cast<int>(limit_ns / 1'000)));
    }
    // Changed about every millisecond of a run, and evicted to any place now and then.
    for (int run = 0; run < 20; ++run) {
      ClearValues(log, kNodes + 1);
      int64_t done = 0;
      for (bool first = true; done < kernel_.segments(); first = false) {
        device_->LimitSegments(kLimits[random_() % 4]);
        core::LaunchRequest request = Request(lanes_[random_() % lanes_.size()], first);
        request.longer_segments = true;
        ASSERT_TRUE(device_->Launch(request).ok());
        const core::TimeNs evict_at =
            device_->NowNs() + static_cast<int64_t>(random_() % 12'000'000);
        core::TimeNs change_at = device_->NowNs() + 1'000'000;
        std::array<core::DeviceCompletion, 1> out;
        bool evicted = false;
        const core::TimeNs give_up_ns = device_->NowNs() + kHungNs;
        while (device_->PollCompletions(absl::MakeSpan(out)) == 0) {
          const core::TimeNs now_ns = device_->NowNs();
          ASSERT_LT(now_ns, give_up_ns) << "A launch in segments does not complete.";
          if (now_ns >= change_at) {
            device_->LimitSegments(kLimits[random_() % 4]);
            change_at += 1'000'000;
          }
          if (evicted || now_ns < evict_at) continue;
          EXPECT_TRUE(device_->Evict(request.parts[0].lane, epoch_, 0).ok());
          evicted = true;
        }
        ASSERT_NE(out[0].outcome, core::Outcome::kFailed) << out[0].error_code;
        done += out[0].block_tasks_done;
      }
      EXPECT_EQ(done, kernel_.segments());
      ASSERT_NO_FATAL_FAILURE(expect_in_order("changed", run));
    }
  }
}

TEST_F(SegmentsGpuTest, LongSegmentsKeep99PercentOfTheWholeGraph) {
  for (const uint32_t wait_ns : {3'000, 10'000}) {
    const int nodes = 20'000'000 / static_cast<int>(wait_ns + 1'000);
    uint64_t* const log = MakeValues(nodes * 20 + 1);
    void* const graph = MakeChain(nodes, wait_ns, device_->capabilities().profile.sm_count, log);
    const double whole_ns = TimeWholeGraph(graph, 3);
    measure_ = true;
    Register(graph, static_cast<int64_t>(whole_ns));
    for (const int64_t limit_ns :
         {int64_t{0}, int64_t{400'000}, int64_t{2'000'000}, core::kNever}) {
      device_->LimitSegments(limit_ns);
      double best_ns = 1e18;
      for (int attempt = 0; attempt < 3; ++attempt) {
        ClearValues(log, 1);
        best_ns = std::min(best_ns, TimeSegments(3, true));
      }
      std::printf(
          "%d nodes of %u us and more, segments of at most %lld us: %.4f of the whole graph's rate "
          "(%.1f us a run, %.1f whole)\n",
          nodes, wait_ns / 1'000,
          static_cast<long long>(
              limit_ns == core::kNever ? -1 : std::max(limit_ns, core::kSegmentNs) / 1'000),
          whole_ns / best_ns, best_ns / 1e3, whole_ns / 1e3);
      const double least = limit_ns == core::kNever ? 0.99 : limit_ns > 0 ? 0.985 : 0;
      EXPECT_GT(whole_ns / best_ns, least);
    }
  }
}

// The whole library: a BE graph without an LC app, beside one that sends
// nothing and has a tight bound, beside its queries, and once it is gone.
TEST_F(SegmentsGpuTest, AGraphAloneHasItsWholeRateUntilAnLcAppComes) {
  constexpr int kNodes = 4'000;
  constexpr int kSteps = 30;
  const int sms = device_->capabilities().profile.sm_count;
  uint64_t* const log = MakeValues(1 + kNodes * 5 * kSteps);
  uint64_t* const queries = MakeValues(1 + 20 * 200);
  graphs_.push_back(MakeChain(kNodes, 3'000, sms, log));
  void* const step = graphs_.back();
  graphs_.push_back(MakeChain(20, 20'000, sms, queries));
  void* const query = graphs_.back();
  const double whole_ns = TimeWholeGraph(step, 5);
  auto device = MakeCudaDevice(0, core::DeviceProfile()).value();
  auto model = models::MakeOnlineModel(device->capabilities().profile);
  auto scheduler = core::Scheduler::Create(core::SchedulerOptions(), std::move(device),
                                           std::move(model), *core::MakePolicy("adaptive"))
                       .value();
  core::Scheduler& flow = *scheduler;
  const auto register_graph = [&](const char* name, void* graph, int64_t segment_ns) {
    core::KernelDesc kernel;
    kernel.name = name;
    kernel.code =
        core::GraphCode{.graph = graph, .segment_ns = segment_ns, .measure_nodes = segment_ns == 0};
    const core::TimeNs begin_ns = flow.NowNs();
    const core::KernelId id = *flow.RegisterKernel(kernel);
    std::printf("%s: %d segments, registered in %.3f s\n", name, flow.FindKernel(id)->segments(),
                static_cast<double>(flow.NowNs() - begin_ns) / 1e9);
    return id;
  };
  const core::KernelId be_kernel = register_graph("step", step, 0);
  const core::KernelId lc_kernel = register_graph("query", query, -1);
  const core::QueueId be = *flow.CreateQueue(
      *flow.CreateApp({.name = "train", .app_class = core::AppClass::kBestEffort}));
  const auto submit = [&](core::QueueId queue, core::KernelId kernel, bool is_lc) {
    core::TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel;
    spec.work.kind = core::TaskKind::kGraph;
    return is_lc ? *flow.SubmitLc(spec) : *flow.SubmitBe(spec);
  };
  const auto finish = [&](core::TicketId ticket) {
    EXPECT_TRUE(flow.Wait(ticket, flow.NowNs() + kHungNs).ok());
    const core::CompletionRecord record = *flow.Record(ticket);
    EXPECT_TRUE(flow.ReleaseTicket(ticket).ok());
    EXPECT_EQ(record.verdict, core::Verdict::kOk);
    return record;
  };
  const auto rate_of = [&](const char* when) {
    ClearValues(log, 1);
    std::vector<core::TicketId> steps;
    const core::TimeNs begin_ns = flow.NowNs();
    for (int i = 0; i < kSteps; ++i) steps.push_back(submit(be, be_kernel, false));
    for (const core::TicketId ticket : steps) {
      EXPECT_EQ(finish(ticket).block_tasks, flow.FindKernel(be_kernel)->segments());
    }
    const double took_ns = static_cast<double>(flow.NowNs() - begin_ns) / kSteps;
    std::printf("%s: %.4f of the whole graph's rate (%.1f us a step, %.1f whole)\n", when,
                whole_ns / took_ns, took_ns / 1e3, whole_ns / 1e3);
    EXPECT_EQ(ReadValues(log, 1)[0], static_cast<uint64_t>(kNodes * kSteps));
    return whole_ns / took_ns;
  };
  rate_of("first steps");
  EXPECT_GT(rate_of("alone"), 0.985);
  core::AppOptions service = {.name = "service", .app_class = core::AppClass::kLatencyCritical};
  service.promise.p99_bound = 1.05;
  const core::AppId app = *flow.CreateApp(service);
  const core::QueueId lc = *flow.CreateQueue(app);
  rate_of("beside an LC app that sends nothing");
  std::vector<core::TicketId> steps;
  ClearValues(log, 1);
  for (int i = 0; i < kSteps; ++i) steps.push_back(submit(be, be_kernel, false));
  std::vector<int64_t> latencies;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(flow.PollUntil(flow.NowNs() + 1'000'000).ok());
    const core::CompletionRecord record = finish(submit(lc, lc_kernel, true));
    latencies.push_back(record.complete_ns - record.submit_ns);
  }
  for (const core::TicketId ticket : steps) finish(ticket);
  std::sort(latencies.begin(), latencies.end());
  std::printf("queries beside it: p50 %.0f us, p99 %.0f us\n",
              static_cast<double>(latencies[50]) / 1e3, static_cast<double>(latencies[98]) / 1e3);
  EXPECT_LT(latencies[98], latencies[0] + 3 * core::kSegmentNs);
  EXPECT_TRUE(flow.ReleaseQueue(lc).ok());
  EXPECT_TRUE(flow.ReleaseApp(app).ok());
  EXPECT_GT(rate_of("once the LC app is gone"), 0.985);
}

TEST_F(SegmentsGpuTest, TwoThousandNodesAreRegisteredForAllPlacesInTwoSeconds) {
  constexpr int kNodes = 2'000;
  ASSERT_NO_FATAL_FAILURE(MakePlaces());
  uint64_t* const log = MakeValues(kNodes + 1);
  void* const graph = MakeChain(kNodes, 1'000, 8, log);
  const int64_t free_bytes = FreeMemoryBytes();
  const core::TimeNs begin_ns = device_->NowNs();
  Register(graph, 0);
  const int64_t took_ns = device_->NowNs() - begin_ns;
  std::printf("%d nodes, %d segments, %zu places: %.3f s, %.1f MB of device memory\n", kNodes,
              kernel_.segments(), places_.size() + 1, static_cast<double>(took_ns) / 1e9,
              static_cast<double>(free_bytes - FreeMemoryBytes()) / 1e6);
  EXPECT_LT(took_ns, 2'000'000'000);
}

// Segments of one node each would have 348,000 instances, 56 GB.
TEST_F(SegmentsGpuTest, AGraphOfManyNodesStaysWithinItsMemory) {
  constexpr int kNodes = 12'000;
  ASSERT_NO_FATAL_FAILURE(MakePlaces());
  uint64_t* const log = MakeValues(kNodes + 1);
  void* const graph = MakeChain(kNodes, 1'000, 8, log);
  const int64_t free_bytes = FreeMemoryBytes();
  const core::TimeNs begin_ns = device_->NowNs();
  Register(graph, 0, 1);
  const int64_t took_ns = device_->NowNs() - begin_ns;
  const int64_t used_bytes = free_bytes - FreeMemoryBytes();
  std::printf("%d nodes, %d segments, %zu places: %.3f s, %.1f MB of device memory\n", kNodes,
              kernel_.segments(), places_.size() + 1, static_cast<double>(took_ns) / 1e9,
              static_cast<double>(used_bytes) / 1e6);
  EXPECT_GT(kernel_.segments(), 400) << kernel_.graph()->cut.whole_reason;
  EXPECT_LE(static_cast<size_t>(kernel_.segments()) * (places_.size() + 1),
            kMaxSegmentInstances / 2);
  EXPECT_LT(used_bytes, 6'000'000'000);
}

// An SM holds 16 of these blocks, and each takes the same time. So 64 blocks for each SM of the
// device are four rounds on all of it, and whole rounds in each place.
TEST_F(SegmentsGpuTest, AMeasuredGraphKnowsItsSpeedInEachPlace) {
  constexpr int kNodes = 10;
  const int32_t sms = device_->capabilities().profile.sm_count;
  ASSERT_NO_FATAL_FAILURE(MakePlaces());
  uint64_t* const log = MakeValues(1 + 100 * kNodes);
  measure_places_ = true;
  ASSERT_NO_FATAL_FAILURE(Register(MakeChain(kNodes, 20'000, 8, log), 0, -1));
  const auto narrow = device_->SpeedsOf(kernel_.id);
  ASSERT_GT(narrow.size(), 4U);
  for (const core::SpeedPoint& point : narrow) {
    EXPECT_NEAR(point.speed, 1, 0.05) << "8 blocks need no more SMs than " << point.sms;
  }
  EXPECT_EQ(narrow.back().sms, sms);
  ASSERT_NO_FATAL_FAILURE(Register(MakeChain(kNodes, 20'000, 64 * sms, log), 0, -1));
  const auto wide = device_->SpeedsOf(kernel_.id);
  ASSERT_GT(wide.size(), 4U);
  for (const core::SpeedPoint& point : wide) {
    const double rounds = std::ceil(4.0 * sms / point.sms);
    EXPECT_NEAR(point.speed, 4 / rounds, 0.03) << point.sms << " SMs, " << rounds << " rounds";
  }
}

// A registration fills half of the room that is left, unless earlier graphs gave theirs back.
TEST_F(SegmentsGpuTest, AReleasedGraphGivesItsRoomAndItsMemoryBack) {
  constexpr int kNodes = 12'000;
  ASSERT_NO_FATAL_FAILURE(MakePlaces());
  uint64_t* const log = MakeValues(1);
  ASSERT_NO_FATAL_FAILURE(Register(MakeChain(kNodes, 1'000, 8, log), 0, 1));
  const int32_t first = kernel_.segments();
  const int64_t free_bytes = FreeMemoryBytes();
  for (int i = 0; i < 3; ++i) {
    device_->ReleaseKernel(kernel_.id);
    ASSERT_NO_FATAL_FAILURE(Register(MakeChain(kNodes, 1'000, 8, log), 0, 1));
    EXPECT_EQ(kernel_.segments(), first) << kernel_.graph()->cut.whole_reason;
  }
  std::printf("three graphs of %d segments, each released before the next: %.1f MB more\n", first,
              static_cast<double>(free_bytes - FreeMemoryBytes()) / 1e6);
  EXPECT_LT(free_bytes - FreeMemoryBytes(), 1'000'000'000);
}

// The whole library: queries of 0.5 ms beside steps of 4 ms, under the default policy's mechanisms.
TEST_F(SegmentsGpuTest, ASchedulerKeepsQueriesShortBesideSteps) {
  constexpr int kNodes = 400;
  constexpr int kSteps = 60;
  const int sms = device_->capabilities().profile.sm_count;
  for (const char* const name : {"adaptive:evict", "adaptive:elastic"}) {
    uint64_t* const log = MakeValues(1 + kNodes * kSteps);
    uint64_t* const queries = MakeValues(1 + 20 * 600);
    graphs_.push_back(MakeChain(kNodes, 8'000, sms, log));
    void* const step = graphs_.back();
    graphs_.push_back(MakeChain(20, 20'000, sms, queries));
    void* const query = graphs_.back();
    auto device = MakeCudaDevice(0, core::DeviceProfile()).value();
    auto model = models::MakeOnlineModel(device->capabilities().profile);
    auto scheduler = core::Scheduler::Create(core::SchedulerOptions(), std::move(device),
                                             std::move(model), *core::MakePolicy(name))
                         .value();
    core::Scheduler& flow = *scheduler;
    const auto register_graph = [&](const char* kernel_name, void* graph, int64_t solo_ns) {
      core::KernelDesc kernel;
      kernel.name = kernel_name;
      kernel.code = core::GraphCode{.graph = graph};
      kernel.solo_hint_ns = solo_ns;
      return *flow.RegisterKernel(kernel);
    };
    const core::KernelId be_kernel = register_graph("step", step, kNodes * 9'500);
    const core::KernelId lc_kernel = register_graph("query", query, 20 * 22'000);
    const auto queue_of = [&](core::AppClass app_class, const char* app_name) {
      return *flow.CreateQueue(*flow.CreateApp({.name = app_name, .app_class = app_class}));
    };
    const core::QueueId lc = queue_of(core::AppClass::kLatencyCritical, "service");
    const core::QueueId be = queue_of(core::AppClass::kBestEffort, "train");
    const auto submit = [&](core::QueueId queue, core::KernelId kernel, bool is_lc) {
      core::TaskSpec spec;
      spec.queue = queue;
      spec.kernel = kernel;
      spec.work.kind = core::TaskKind::kGraph;
      return is_lc ? *flow.SubmitLc(spec) : *flow.SubmitBe(spec);
    };
    const auto finish = [&](core::TicketId ticket) {
      EXPECT_TRUE(flow.Wait(ticket, flow.NowNs() + kHungNs).ok());
      const core::CompletionRecord record = *flow.Record(ticket);
      EXPECT_TRUE(flow.ReleaseTicket(ticket).ok());
      EXPECT_EQ(record.verdict, core::Verdict::kOk);
      return record;
    };
    const auto run_query = [&] {
      const core::CompletionRecord record = finish(submit(lc, lc_kernel, true));
      return record.complete_ns - record.submit_ns;
    };
    std::vector<int64_t> alone, beside;
    for (int i = 0; i < 100; ++i) alone.push_back(run_query());
    std::vector<core::TicketId> steps;
    for (int i = 0; i < kSteps; ++i) steps.push_back(submit(be, be_kernel, false));
    const core::TimeNs begin_ns = flow.NowNs();
    std::uniform_int_distribution<int64_t> gap(200'000, 2'000'000);
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(flow.PollUntil(flow.NowNs() + gap(random_)).ok());
      beside.push_back(run_query());
    }
    int64_t launches = 0;
    for (const core::TicketId ticket : steps) {
      const core::CompletionRecord record = finish(ticket);
      EXPECT_EQ(record.form, core::Form::kSegments);
      EXPECT_EQ(record.block_tasks, flow.FindKernel(be_kernel)->segments());
      launches += record.launches;
    }
    const double took_ms = static_cast<double>(flow.NowNs() - begin_ns) / 1e6;
    std::sort(alone.begin(), alone.end());
    std::sort(beside.begin(), beside.end());
    std::printf(
        "%s: query p50 %.0f us alone, %.0f beside; p99 %.0f, %.0f; %d steps, %lld launches, "
        "%.0f ms\n",
        name, static_cast<double>(alone[50]) / 1e3, static_cast<double>(beside[50]) / 1e3,
        static_cast<double>(alone[98]) / 1e3, static_cast<double>(beside[98]) / 1e3, kSteps,
        static_cast<long long>(launches), took_ms);
    EXPECT_GT(launches, kSteps + 50);
    EXPECT_LT(beside[98], alone[98] + 2 * core::kSegmentNs + 50'000);
    const std::vector<uint64_t> entries = ReadValues(log, 1 + kNodes * kSteps);
    ASSERT_EQ(entries[0], static_cast<uint64_t>(kNodes * kSteps));
    for (int i = 0; i < kNodes * kSteps; ++i) {
      ASSERT_EQ(entries[static_cast<size_t>(i) + 1], static_cast<uint64_t>(i % kNodes)) << i;
    }
  }
}

}  // namespace
}  // namespace gpushare::cuda
