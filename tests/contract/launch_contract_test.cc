// Launches and completions: exactly once, in order, in every form. Bad arguments, threads, places.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "src/core/base/limits.h"
#include "tests/contract/device_contract.h"

namespace gpushare::contract {
namespace {

using core::CopyDirection;
using core::Form;
using core::LaneIndex;
using core::LaunchId;
using core::LaunchRequest;
using core::Outcome;
using core::PlaceIndex;
using core::TimeNs;

class LaunchContract : public DeviceContract {};

TEST_P(LaunchContract, EveryLaunchIsReportedExactlyOnce) {
  const std::vector<LaneIndex> lanes = MakeLanes(4);
  for (int i = 0; i < 200; ++i) {
    const LaneIndex lane = lanes[static_cast<size_t>(i % 4)];
    switch (i % 5) {
      case 0: {
        LaunchRequest request = Original(lane, 10 + i);
        request.waits_for_empty_sms = i % 2 == 0;
        Launch(request);
        break;
      }
      case 1:
        Launch(Workers(lane, 100, i % core::kMaxCounters, true, 1));
        break;
      case 2:
        Launch(Slice(lane, i, 16));
        break;
      case 3:
        Launch(Copy(lane, CopyDirection::kHostToDevice, 4096 * (i + 1)));
        break;
      default:
        Launch(Graph(lane));
        break;
    }
    if (i % 50 == 0) Poll();
  }
  WaitForAll();
  for (const auto& completion : completions()) {
    EXPECT_EQ(completion.outcome, Outcome::kFinished) << completion.launch.value;
  }
}

TEST_P(LaunchContract, BlockTasksAreCountedToTheLast) {
  const LaneIndex lane = MakeLane();
  const LaunchId one = Launch(Original(lane, 1));
  const LaunchId many = Launch(Original(lane, 12'345));
  const LaunchId workers = Launch(Workers(lane, 12'345, 0, true, 1));
  WaitForAll();
  EXPECT_EQ(Of(one).block_tasks_done, 1);
  EXPECT_EQ(Of(many).block_tasks_done, 12'345);
  EXPECT_EQ(Of(workers).block_tasks_done, 12'345);
}

TEST_P(LaunchContract, LaunchesOnOneLaneStartInOrder) {
  const LaneIndex lane = MakeLane();
  std::vector<LaunchId> launches;
  launches.reserve(20);
  for (int i = 0; i < 20; ++i) launches.push_back(Launch(Original(lane, 1 + 500 * (i % 3))));
  WaitForAll();
  for (size_t i = 1; i < launches.size(); ++i) {
    EXPECT_GE(Of(launches[i]).start_ns, Of(launches[i - 1]).end_ns) << i;
  }
}

// As a queue does that goes on elsewhere while its earlier work is in flight.
TEST_P(LaunchContract, ALaunchAfterAnotherLaneWaitsForItsEarlierLaunches) {
  const std::vector<LaneIndex> lanes = MakeLanes(3);
  std::vector<LaunchId> launches;
  launches.push_back(Launch(Original(lanes[0], 12'345)));
  for (const size_t lane : {size_t{1}, size_t{2}, size_t{0}}) {
    core::LaunchRequest request = Original(lanes[lane], lane == 1 ? 12'345 : 100);
    request.after_lane = lanes[lane == 0 ? 2 : lane - 1];
    launches.push_back(Launch(request));
  }
  // The lane's own order holds behind the other lane's.
  launches.push_back(Launch(Original(lanes[0], 1)));
  WaitForAll();
  for (size_t i = 1; i < launches.size(); ++i) {
    EXPECT_GE(Of(launches[i]).start_ns, Of(launches[i - 1]).end_ns) << i;
  }
}

TEST_P(LaunchContract, ALaunchAfterAnIdleLaneStartsAtOnce) {
  const std::vector<LaneIndex> lanes = MakeLanes(2);
  Launch(Original(lanes[0], 100));
  WaitForAll();
  core::LaunchRequest request = Original(lanes[1], 100);
  request.after_lane = lanes[0];
  Launch(request);
  WaitForAll();
  request.after_lane = core::kMaxLanes;
  request.parts[0].launch = NewLaunch();
  EXPECT_EQ(device().Launch(request).code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(LaunchContract, LanesOfOnePlaceRunSideBySide) {
  if (!GetParam().work_takes_time) GTEST_SKIP() << "work takes no time on this device";
  const LaneIndex a = MakeLane();
  const LaneIndex b = MakeLane();
  // Each launch fills half of the device for ten rounds.
  const int64_t blocks = int64_t{capabilities().profile.sm_count} * 4 * 10;
  const int32_t half = capabilities().profile.sm_count * 4;
  const LaunchId first = Launch(Workers(a, blocks, 0, true, 1, half));
  const LaunchId second = Launch(Workers(b, blocks, 1, true, 1, half));
  WaitForAll();
  EXPECT_LT(Of(second).start_ns, Of(first).end_ns);
}

TEST_P(LaunchContract, CompletionsAreReportedOldestFirst) {
  const std::vector<LaneIndex> lanes = MakeLanes(4);
  for (int i = 0; i < 100; ++i) {
    Launch(Original(lanes[static_cast<size_t>(i * 7 % 4)], 1 + i * 37 % 900));
  }
  WaitForAll();
  for (size_t i = 1; i < completions().size(); ++i) {
    EXPECT_GE(completions()[i].end_ns, completions()[i - 1].end_ns) << i;
  }
}

TEST_P(LaunchContract, TimesLieBetweenLaunchAndReport) {
  if (!capabilities().timestamps) GTEST_SKIP() << "no device times";
  const LaneIndex lane = MakeLane();
  const TimeNs before = device().NowNs();
  const LaunchId launch = Launch(Original(lane, 5000));
  WaitForAll();
  EXPECT_GE(Of(launch).start_ns, before);
  EXPECT_GE(Of(launch).end_ns, Of(launch).start_ns);
  EXPECT_LE(Of(launch).end_ns, device().NowNs());
}

TEST_P(LaunchContract, LaunchDoesNotWaitForTheDevice) {
  if (!GetParam().work_takes_time) GTEST_SKIP() << "work takes no time on this device";
  const LaneIndex lane = MakeLane();
  const LaunchId launch = Launch(Original(lane, 100'000));
  Poll();
  EXPECT_FALSE(IsReported(launch));
  WaitForAll();
}

// Nothing polls between the two launches, as when the next query comes while one is being launched.
TEST_P(LaunchContract, AQueryIsReportedWhileTheNextOneRuns) {
  if (!GetParam().work_takes_time) GTEST_SKIP() << "work takes no time on this device";
  const LaneIndex lane =
      device().CreateLane({core::kWholeDevice, core::LanePriority::kHigh, false}).value();
  const LaunchId query = Launch(Original(lane, 100'000));
  const LaunchId next = Launch(Original(lane, 100'000));
  WaitForCount(1);
  EXPECT_TRUE(IsReported(query));
  EXPECT_FALSE(IsReported(next));
  WaitForAll();
}

TEST_P(LaunchContract, SlicesCoverAGridOnce) {
  const LaneIndex lane = MakeLane();
  int64_t done = 0;
  std::vector<LaunchId> slices;
  for (int64_t begin = 0; begin < 1000; begin += 132) {
    slices.push_back(Launch(Slice(lane, begin, std::min<int64_t>(132, 1000 - begin))));
  }
  WaitForAll();
  for (LaunchId slice : slices) done += Of(slice).block_tasks_done;
  EXPECT_EQ(done, 1000);
}

TEST_P(LaunchContract, CopiesOfEveryKindComplete) {
  const LaneIndex lane = MakeLane();
  for (CopyDirection direction : {CopyDirection::kHostToDevice, CopyDirection::kDeviceToHost}) {
    for (bool pinned : {true, false}) {
      for (int64_t bytes : {int64_t{1}, int64_t{65'536}, int64_t{1} << 24}) {
        LaunchRequest request = Copy(lane, direction, bytes);
        request.parts[0].work.copy.pinned = pinned;
        SetBuffers(request);
        Launch(request);
      }
    }
  }
  WaitForAll();
  for (const auto& completion : completions()) {
    EXPECT_EQ(completion.outcome, Outcome::kFinished);
  }
}

TEST_P(LaunchContract, CopiesFromDeviceToDeviceComplete) {
  const LaneIndex lane = MakeLane();
  for (int64_t bytes : {int64_t{1}, int64_t{65'536}, kCopyBytesMax / 2}) {
    Launch(Copy(lane, CopyDirection::kPeer, bytes));
  }
  WaitForAll();
  for (const auto& completion : completions()) {
    EXPECT_EQ(completion.outcome, Outcome::kFinished);
  }
}

TEST_P(LaunchContract, CopiesMoveTheBytesThatTheyName) {
  if (GetParam().pinned == nullptr) GTEST_SKIP() << "the device moves no bytes";
  constexpr int64_t kBytes = kCopyBytesMax / 2;
  const LaneIndex lane = MakeLane();
  auto* const host = static_cast<unsigned char*>(GetParam().pinned);
  for (int64_t i = 0; i < kBytes; ++i) host[i] = static_cast<unsigned char>(i * 31 >> 3);
  std::memset(GetParam().pageable, 0, static_cast<size_t>(kBytes));
  LaunchRequest there = Copy(lane, CopyDirection::kHostToDevice, kBytes);
  const LaunchRequest across = Copy(lane, CopyDirection::kPeer, kBytes);
  LaunchRequest back = Copy(lane, CopyDirection::kDeviceToHost, kBytes);
  back.parts[0].work.copy.pinned = false;
  SetBuffers(back);
  back.parts[0].work.copy.source = across.parts[0].work.copy.destination;
  Launch(there);
  Launch(across);
  Launch(back);
  WaitForAll();
  EXPECT_EQ(std::memcmp(GetParam().pageable, host, static_cast<size_t>(kBytes)), 0);
}

struct HostCall {
  int calls = 0;
  void* stream = nullptr;
  std::thread::id thread;
};

TEST_P(LaunchContract, AnOpaqueHostFunctionRunsOnceOnTheLaunchingThread) {
  const LaneIndex lane = MakeLane();
  HostCall call;
  LaunchRequest request;
  request.parts[0].launch = NewLaunch();
  request.parts[0].lane = lane;
  request.form = Form::kOpaque;
  request.parts[0].work.declared_ns = 20'000;
  request.parts[0].work.host_user = &call;
  request.parts[0].work.host_function = [](void* stream, void* user) {
    auto* seen = static_cast<HostCall*>(user);
    ++seen->calls;
    seen->stream = stream;
    seen->thread = std::this_thread::get_id();
  };
  const LaunchId launch = Launch(request);
  EXPECT_EQ(call.calls, 1);
  EXPECT_EQ(call.thread, std::this_thread::get_id());
  EXPECT_EQ(call.stream, device().LaneStream(lane));
  WaitForAll();
  EXPECT_EQ(call.calls, 1);
  EXPECT_EQ(Of(launch).outcome, Outcome::kFinished);
}

// This request marks the end of a region, whose work is already on the lane's stream.
TEST_P(LaunchContract, OpaqueWorkWithoutAFunctionCompletesBehindItsLane) {
  const LaneIndex lane = MakeLane();
  const LaunchId before = Launch(Original(lane, 2000));
  LaunchRequest request;
  request.parts[0].launch = NewLaunch();
  request.parts[0].lane = lane;
  request.form = Form::kOpaque;
  const LaunchId end = Launch(request);
  WaitForAll();
  EXPECT_EQ(Of(end).outcome, Outcome::kFinished);
  EXPECT_GE(Of(end).end_ns, Of(before).end_ns);
}

TEST_P(LaunchContract, BadArgumentsAreRefusedAndLeaveNothingBehind) {
  const LaneIndex lane = MakeLane();
  HostCall call;
  std::vector<LaunchRequest> bad;
  bad.push_back(Original(core::kNoLane, 10));
  bad.push_back(Original(lane + 1, 10));
  bad.push_back(Original(core::kMaxLanes + 7, 10));
  bad.push_back(Original(lane, 10));
  bad.back().parts[0].work.kernel = nullptr;
  bad.push_back(Original(lane, -1));
  bad.push_back(Original(lane, core::kMaxBlockTasks + 1));
  bad.push_back(Slice(lane, -1, 10));
  bad.push_back(Workers(lane, 10, -1, true, 1));
  bad.push_back(Workers(lane, 10, core::kMaxCounters, true, 1));
  bad.push_back(Workers(lane, 10, 0, true, 1, -4));
  bad.push_back(Graph(lane));
  bad.back().parts[0].work.kernel = nullptr;
  bad.push_back(Copy(lane, CopyDirection::kHostToDevice, -1));
  bad.push_back(Copy(lane, CopyDirection::kHostToDevice, core::kMaxCopyBytes + 1));
  bad.push_back(Copy(lane, CopyDirection::kNone, 10));
  bad.push_back(Original(lane, 10));
  bad.back().form = Form::kFused;  // without a fused kernel
  for (size_t i = 0; i < bad.size(); ++i) {
    const absl::Status status = device().Launch(bad[i]);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
        << "request " << i << ": " << status;
    EXPECT_FALSE(status.message().empty()) << i;
  }
  // A refused request on a bad lane does not run its host function.
  LaunchRequest opaque;
  opaque.parts[0].launch = NewLaunch();
  opaque.parts[0].lane = lane + 1;
  opaque.form = Form::kOpaque;
  opaque.parts[0].work.host_user = &call;
  opaque.parts[0].work.host_function = [](void*, void* user) {
    ++static_cast<HostCall*>(user)->calls;
  };
  EXPECT_FALSE(device().Launch(opaque).ok());
  EXPECT_EQ(call.calls, 0);
  // The counter that a refused launch named is unchanged, and the lane works.
  const LaunchId good = Launch(Workers(lane, 100, 0, true, 1));
  WaitForAll();
  EXPECT_EQ(Of(good).block_tasks_done, 100);
}

TEST_P(LaunchContract, PlacesBeyondTheDeviceAreRefused) {
  const int32_t groups = capabilities().profile.Groups();
  const std::vector<core::PlaceSpec> bad = {
      {-1, 2, false}, {0, -1, false}, {0, groups + 1, false}, {groups, 1, false}, {0, 0, false}};
  for (const core::PlaceSpec& spec : bad) {
    EXPECT_FALSE(device().CreatePlace(1, spec).ok()) << spec.first_group << " + " << spec.groups;
  }
  EXPECT_FALSE(device().CreateLane({.place = 1}).ok()) << "no place was made";
  EXPECT_FALSE(device().CreateLane({.place = core::kNoPlace}).ok());
}

TEST_P(LaunchContract, NestedPlacesAreMadeAheadAndTakeWork) {
  if (!capabilities().partitions) GTEST_SKIP() << "no partitions";
  const int32_t groups = capabilities().profile.Groups();
  // Makes every split of the device, as the library does: places overlap those of other splits.
  PlaceIndex last = core::kNoPlace;
  for (int32_t lc = 1; lc < groups; ++lc) {
    MakePlace(0, lc, true);
    last = MakePlace(lc, groups - lc);
  }
  for (PlaceIndex place : {PlaceIndex{1}, PlaceIndex{2}, last}) {
    Launch(Original(MakeLane(place), 500));
  }
  WaitForAll();
}

TEST_P(LaunchContract, APlaceConfinesWorkToItsSms) {
  if (!capabilities().partitions || !GetParam().work_takes_time) {
    GTEST_SKIP() << "no partitions, or work takes no time";
  }
  const int32_t groups = capabilities().profile.Groups();
  const int64_t blocks = int64_t{capabilities().profile.sm_count} * 8 * 10;
  const LaneIndex on_all = MakeLane();
  DurationOf(on_all, blocks);  // a warm-up: the first launch may take longer
  const int64_t whole = DurationOf(on_all, blocks);
  const int64_t half = DurationOf(MakeLane(MakePlace(0, groups / 2)), blocks);
  // 64 of 132 SMs take 2.06 times as long.
  EXPECT_GT(half, whole * 3 / 2);
  EXPECT_LT(half, whole * 3);
}

TEST_P(LaunchContract, DisjointPlacesDoNotWaitForEachOther) {
  if (!capabilities().partitions || !GetParam().work_takes_time) {
    GTEST_SKIP() << "no partitions, or work takes no time";
  }
  const int32_t groups = capabilities().profile.Groups();
  const LaneIndex left = MakeLane(MakePlace(0, groups / 2, true));
  const LaneIndex right = MakeLane(MakePlace(groups / 2, groups - groups / 2));
  const LaunchId longer = Launch(Original(left, 50'000));
  const LaunchId shorter = Launch(Original(right, 500));
  WaitForAll();
  EXPECT_LT(Of(shorter).end_ns, Of(longer).end_ns);
  EXPECT_LT(Of(shorter).start_ns, Of(longer).end_ns);
}

TEST_P(LaunchContract, FourThreadsLaunchAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kLaunches = 200;
  const std::vector<LaneIndex> lanes = MakeLanes(kThreads);
  std::vector<std::vector<LaunchRequest>> requests(kThreads);
  for (int i = 0; i < kThreads * kLaunches; ++i) {
    const auto t = static_cast<size_t>(i % kThreads);
    requests[t].push_back(Original(lanes[t], 1 + i % 64));
  }
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (const auto& mine : requests) {
    threads.emplace_back([&] {
      for (const LaunchRequest& request : mine) {
        if (!device().Launch(request).ok()) failed.fetch_add(1);
        device().NowNs();
      }
    });
  }
  // Poll while the threads launch; virtual time advances only afterwards.
  for (int i = 0; i < 100; ++i) Poll();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed.load(), 0);
  WaitForAll(kThreads * kLaunches);
  for (size_t i = 1; i < completions().size(); ++i) {
    EXPECT_GE(completions()[i].end_ns, completions()[i - 1].end_ns) << "oldest first, " << i;
  }
  for (const auto& mine : requests) {
    for (size_t i = 1; i < mine.size(); ++i) {
      EXPECT_GE(Of(mine[i].parts[0].launch).start_ns, Of(mine[i - 1].parts[0].launch).start_ns)
          << "lane order";
    }
  }
}

TEST_P(LaunchContract, AnAbandonedLaneReportsNothingAndTakesNothing) {
  const LaneIndex hung = MakeLane();
  const LaneIndex healthy = MakeLane();
  ASSERT_TRUE(device().Launch(Original(hung, 100'000)).ok());
  device().AbandonLane(hung);
  EXPECT_FALSE(device().Launch(Original(hung, 1)).ok());
  Launch(Original(healthy, 10));
  WaitForAll();
  device().AbandonLane(core::kNoLane);  // no such lane: must be harmless
  device().AbandonLane(core::kMaxLanes + 1);
}

TEST_P(LaunchContract, AReplacedLaneTakesWorkAgainAndNeverReportsWhatHung) {
  const LaneIndex hung = MakeLane(core::kWholeDevice, true);
  const core::LaneSpec spec = {
      .place = core::kWholeDevice, .priority = core::LanePriority::kNormal, .evictable = true};
  EXPECT_FALSE(device().ReplaceLane(hung, spec).ok()) << "it was not abandoned";
  EXPECT_FALSE(device().ReplaceLane(core::kNoLane, spec).ok());
  ASSERT_TRUE(device().Launch(Workers(hung, 1000, 0, true, 1)).ok());
  ASSERT_TRUE(device().Evict(hung, 1, 0).ok());
  device().AbandonLane(hung);
  const absl::Status status = device().ReplaceLane(hung, spec);
  ASSERT_TRUE(status.ok()) << status;
  const LaunchId launch = Launch(Workers(hung, 500, 1, true, 2));
  WaitForAll();
  EXPECT_EQ(Of(launch).block_tasks_done, 500);
  EXPECT_EQ(Of(launch).outcome, Outcome::kFinished) << "the eviction was of the old lane";
  EXPECT_EQ(completions().size(), 1u);
}

TEST_P(LaunchContract, TheClaimsOfARunningLaunchGrow) {
  if (!capabilities().reads_claims) GTEST_SKIP() << "it reads no claims";
  constexpr int64_t kBlocks = 4'000'000;  // 38 ms on 132 SMs
  constexpr int64_t kStepNs = 2'000'000;
  const auto read_later = [this] {
    WaitUntilTime(device().NowNs() + kStepNs);
    const TimeNs give_up = device().NowNs() + kStepNs;
    std::optional<int64_t> claims = device().ReadClaims(0);
    while (!claims.has_value() && device().NowNs() < give_up) {
      WaitUntilTime(device().NowNs() + 10'000);
      claims = device().ReadClaims(0);
    }
    return claims.value_or(-1);
  };
  Launch(Workers(MakeLane(core::kWholeDevice, true), kBlocks, 0, true, 1));
  const int64_t first = read_later();
  const int64_t second = read_later();
  EXPECT_GT(first, 0);
  EXPECT_GT(second, first);
  EXPECT_LT(second, kBlocks);
  WaitForAll();
}

TEST_P(LaunchContract, BusyTimeGrowsAndNeverExceedsTheDevice) {
  const LaneIndex lane = MakeLane();
  const TimeNs begin = device().NowNs();
  int64_t busy = device().BusySmNs();
  EXPECT_GE(busy, 0);
  for (int i = 0; i < 5; ++i) {
    DurationOf(lane, 2000);
    EXPECT_GE(device().BusySmNs(), busy);
    busy = device().BusySmNs();
  }
  EXPECT_LE(busy, (device().NowNs() - begin) * capabilities().profile.sm_count);
  if (GetParam().work_takes_time) {
    EXPECT_GT(busy, 0);
  }
}

TEST_P(LaunchContract, TheClockIsMonotonicAndVirtualTimeAdvancesOnlyInAdvanceTo) {
  const LaneIndex lane = MakeLane();
  const TimeNs start = device().NowNs();
  EXPECT_EQ(device().NextEventNs(), core::kNever) << "idle";
  Launch(Original(lane, 1000));
  if (!capabilities().virtual_time) {
    EXPECT_EQ(device().NextEventNs(), core::kNever);
    constexpr TimeNs kMinute = 60'000'000'000;
    device().AdvanceTo(start + kMinute);
    EXPECT_LT(device().NowNs(), start + kMinute);
    WaitForAll();
    return;
  }
  EXPECT_EQ(device().NowNs(), start);
  const TimeNs next = device().NextEventNs();
  ASSERT_NE(next, core::kNever);
  EXPECT_GE(next, start);
  device().AdvanceTo(next);
  EXPECT_EQ(device().NowNs(), next);
  device().AdvanceTo(start);
  EXPECT_EQ(device().NowNs(), next) << "never backwards";
  WaitForAll();
  const TimeNs idle = device().NowNs();
  device().AdvanceTo(idle + 12'345);
  EXPECT_EQ(device().NowNs(), idle + 12'345) << "an idle device advances exactly to the given time";
}

TEST_P(LaunchContract, LanesAreBoundedAndTheMessageStatesTheBound) {
  int made = 0;
  absl::Status status;
  while (made <= core::kMaxLanes) {
    const auto lane = device().CreateLane(core::LaneSpec());
    status = lane.status();
    if (!lane.ok()) break;
    EXPECT_EQ(*lane, made++) << "lanes are dense";
  }
  EXPECT_EQ(made, capabilities().lanes_max);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

INSTANTIATE_TEST_SUITE_P(Devices, LaunchContract, testing::ValuesIn(DeviceFactories()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace gpushare::contract
