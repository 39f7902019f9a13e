// The gate of an eager loop: when a launch goes, what it costs, and what it learns. Library, driver
// and clock are stand-ins: the GPU runs one launch after another, in virtual time.

#include "bindings/python/native/eager_gate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bindings/python/native/driver_arguments.h"
#include "bindings/python/native/launch_hook.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gpushare::python {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kUs = 1000;
constexpr int64_t kMs = 1000 * kUs;
constexpr int64_t kAlways = int64_t{1} << 60;
constexpr int64_t kStartNs = 3 * kUs;  // from a launch to its start on an idle GPU

// What the stand-ins share. The gate's functions have no argument for it.
struct World {
  int64_t now_ns = kMs;
  int64_t room_ns = kAlways;
  gpushare_status room_status = GPUSHARE_OK;
  int64_t busy_until_ns = 0;          // of the GPU
  std::map<void*, int64_t> event_ns;  // when it is complete
  std::vector<int64_t> bounds_ns;     // of the regions that began
  std::vector<std::string> calls;
  int refusals_left = 0;
  int full_left = 0;
  int queries = 0;
  int events = 0;
  int open = 0;
  int releases = 0;  // of the interpreter's lock, less those that came back
  int released_ever = 0;
  bool interrupted = false;
  bool record_fails = false;
  bool stuck = false;  // the GPU completes nothing
  bool capturing = false;
  int64_t lc_ends_ns = 0;  // the room comes back then
  int64_t pause_ns = kUs;
  std::function<void()> on_pause;
  bool completes = true;  // regions that ended
  int tickets = 0;        // not released

  static World* it;
};
World* World::it = nullptr;

gpushare_status BeginRegion(gpushare_queue*, const gpushare_region_options* options,
                            gpushare_ticket* out_ticket, void** out_stream) noexcept {
  World& world = *World::it;
  if (world.refusals_left > 0) return --world.refusals_left, GPUSHARE_UNAVAILABLE;
  world.bounds_ns.push_back(options->bound_ns);
  ++world.open;
  ++world.tickets;
  out_ticket->value = world.bounds_ns.size();
  *out_stream = &world;
  return GPUSHARE_OK;
}

gpushare_status EndRegion(gpushare_runtime*, gpushare_ticket) noexcept {
  World& world = *World::it;
  if (world.full_left > 0) return --world.full_left, GPUSHARE_RESOURCE_EXHAUSTED;
  --world.open;
  world.calls.emplace_back("end");
  return GPUSHARE_OK;
}

gpushare_status RoomNow(gpushare_runtime*, int64_t* out_room_ns) noexcept {
  World& world = *World::it;
  if (world.lc_ends_ns != 0 && world.now_ns >= world.lc_ends_ns) {
    world.room_ns = kAlways;
    world.lc_ends_ns = 0;
  }
  *out_room_ns = world.room_ns;
  return world.room_status;
}

gpushare_status Wait(gpushare_runtime*, gpushare_ticket, int64_t deadline_ns) noexcept {
  EXPECT_LT(deadline_ns, GPUSHARE_NEVER) << "it would wait inside the library";
  return World::it->completes ? GPUSHARE_OK : GPUSHARE_DEADLINE_EXCEEDED;
}
gpushare_status Release(gpushare_runtime*, gpushare_ticket) noexcept {
  --World::it->tickets;
  return GPUSHARE_OK;
}

std::deque<int> events;
int CreateEvent(void** out, unsigned) {
  events.emplace_back();
  *out = &events.back();
  ++World::it->events;
  return 0;
}
int DestroyEvent(void*) {
  --World::it->events;
  return 0;
}
int RecordEvent(void* event, void*) {
  World& world = *World::it;
  EXPECT_FALSE(world.capturing);
  if (world.record_fails) return 1;
  world.event_ns[event] = std::max(world.busy_until_ns, world.now_ns);
  return 0;
}
int QueryEvent(void* event) {
  World& world = *World::it;
  ++world.queries;
  world.now_ns += kUs;
  return !world.stuck && world.event_ns.at(event) <= world.now_ns ? 0 : 600;
}
int WaitEvent(void* stream, void*, unsigned) {
  EXPECT_EQ(stream, World::it);
  World::it->calls.emplace_back("wait");
  return 0;
}
int Capturing(void*, int* out) {
  *out = World::it->capturing ? 1 : 0;
  return 0;
}

HostCalls Host() {
  return {[] { return World::it->now_ns; },
          [](int64_t) {
            World::it->now_ns += World::it->pause_ns;
            if (World::it->on_pause) World::it->on_pause();
          },
          []() -> void* {
            ++World::it->releases;
            ++World::it->released_ever;
            return World::it;
          },
          [](void*) { --World::it->releases; }, [](void*) { return World::it->interrupted; }};
}

class EagerGateTest : public ::testing::Test {
 protected:
  EagerGateTest() { World::it = &world_; }
  void Open(int64_t outstanding_ns) {
    gate_.emplace(EagerOptions{.stream = this, .outstanding_ns = outstanding_ns},
                  LibraryCalls{&BeginRegion, &EndRegion, &RoomNow, &Wait, &Release},
                  DriverCalls{&CreateEvent, &DestroyEvent, &RecordEvent, &QueryEvent, &WaitEvent,
                              &Capturing, nullptr},
                  Host());
    ASSERT_TRUE(gate_->Open());
  }
  // An operation of the loop: the host needs `host_ns` for it, the GPU `takes_ns`. Returns how much
  // is outstanding then.
  int64_t Run(uint64_t key, int64_t takes_ns, int64_t host_ns = kUs) {
    world_.now_ns += host_ns;
    EXPECT_EQ(gate_->Launch(key), GPUSHARE_OK);
    const bool follows = gate_->WantsLaunched();
    world_.busy_until_ns = std::max(world_.busy_until_ns, world_.now_ns + kStartNs) + takes_ns;
    const int64_t outstanding_ns = world_.busy_until_ns - world_.now_ns;
    if (follows) gate_->Launched();
    return outstanding_ns;
  }

  World world_;
  std::optional<EagerGate> gate_;
};

TEST_F(EagerGateTest, AnUnknownOperationRunsAloneOnceAndIsKnownThen) {
  Open(200 * kUs);
  Run(1, 50 * kUs);
  EXPECT_GE(world_.now_ns, world_.busy_until_ns) << "it was waited for";
  EXPECT_EQ(gate_->counts().measured.load(), 1);
  const int64_t outstanding_ns = Run(1, 50 * kUs);
  EXPECT_EQ(outstanding_ns, 50 * kUs + kStartNs);
  Run(1, 50 * kUs);
  EXPECT_LT(world_.now_ns, world_.busy_until_ns) << "the next ones run ahead";
  EXPECT_EQ(gate_->counts().measured.load(), 1);
}

TEST_F(EagerGateTest, NoMoreThanTheLimitIsOutstandingAndTheGpuStaysBusy) {
  Open(200 * kUs);
  Run(1, 40 * kUs);
  int64_t most_ns = 0;
  const int64_t began_ns = world_.now_ns;
  for (int i = 0; i < 1000; ++i) most_ns = std::max(most_ns, Run(1, 40 * kUs));
  EXPECT_LE(most_ns, 225 * kUs);
  EXPECT_GE(most_ns, 120 * kUs);
  EXPECT_LE(world_.busy_until_ns - began_ns, 1005 * 40 * kUs) << "it never waited for the host";
}

// The host is slower than the GPU: what is launched is complete soon.
TEST_F(EagerGateTest, ALoopThatLaunchesBoundPaysAnEventForManyOperations) {
  Open(200 * kUs);
  Run(1, 2 * kUs);
  const int queries = world_.queries;
  const int64_t began_ns = world_.now_ns;
  for (int i = 0; i < 1000; ++i) Run(1, 2 * kUs, 6 * kUs);
  EXPECT_LE(world_.queries - queries, 1000 / 16);
  EXPECT_LE(world_.now_ns - began_ns, 1000 * 6 * kUs + 100 * kUs);
  EXPECT_LE(gate_->counts().regions.load(), 2);
}

TEST_F(EagerGateTest, LcWorkEndsTheRegionBehindItsLaunchesAndTheNextOneWaits) {
  Open(200 * kUs);
  for (int i = 0; i < 4; ++i) Run(1, 20 * kUs);
  world_.room_ns = 0;
  world_.lc_ends_ns = world_.now_ns + 700 * kUs;
  Run(1, 20 * kUs);
  EXPECT_GE(world_.now_ns, kMs + 700 * kUs);
  EXPECT_THAT(world_.calls, ElementsAre("wait", "end"));
  EXPECT_EQ(gate_->counts().regions.load(), 2);
  EXPECT_GE(gate_->counts().held_ns.load(), 690 * kUs);
  EXPECT_EQ(world_.releases, 0) << "the interpreter's lock came back";
}

// The accounts of LC apps pay for what a region declares.
TEST_F(EagerGateTest, AnOperationLongerThanTheOpenRegionDeclaredHasARegionOfItsOwn) {
  Open(200 * kUs);
  Run(1, 900 * kUs);
  Run(2, 5 * kUs);
  world_.room_ns = kMs;
  world_.now_ns += 30 * kMs;
  Run(2, 5 * kUs);
  EXPECT_EQ(world_.bounds_ns.back(), 400 * kUs) << "a query meets all that is outstanding";
  Run(1, 900 * kUs);
  EXPECT_GE(world_.bounds_ns.back(), 850 * kUs);
  EXPECT_EQ(gate_->counts().on_credit.load(), 0);
}

// A region that is open counts as work on the vacation accounts, and the operation would wait the
// longer.
TEST_F(EagerGateTest, NoRegionIsOpenWhileALongOperationWaits) {
  Open(200 * kUs);
  Run(1, 100 * kUs);
  Run(2, 5 * kUs);
  world_.room_ns = 20 * kUs;
  Run(1, 100 * kUs);  // it has just asked
  Run(2, 5 * kUs);
  ASSERT_EQ(world_.open, 1);
  int64_t waited_ns = 0;
  world_.on_pause = [&] {
    if (world_.now_ns <= world_.busy_until_ns + 10 * kUs) return;
    EXPECT_EQ(world_.open, 0);
    waited_ns += kUs;
  };
  Run(1, 100 * kUs);
  world_.on_pause = nullptr;
  EXPECT_GT(waited_ns, 50 * kUs) << "until it may ask again";
  EXPECT_EQ(gate_->counts().on_credit.load(), 2);
}

// A service that tolerates little: one operation after another, each as long as a query may meet.
TEST_F(EagerGateTest, OperationsLongerThanHalfOfTheRoomRunAlone) {
  Open(200 * kUs);
  Run(1, 15 * kUs);
  world_.room_ns = 20 * kUs;
  for (int i = 0; i < 20; ++i) EXPECT_LE(Run(1, 15 * kUs), 15 * kUs + kStartNs);
  EXPECT_EQ(gate_->counts().on_credit.load(), 0);
}

TEST_F(EagerGateTest, AnOperationLongerThanTheRoomAsksForCreditAndHasItAlone) {
  Open(200 * kUs);
  Run(1, 100 * kUs);
  world_.room_ns = 20 * kUs;
  world_.refusals_left = 3;
  world_.calls.clear();
  world_.bounds_ns.clear();
  const int64_t began_ns = world_.now_ns;
  Run(1, 100 * kUs);
  EXPECT_GE(world_.now_ns - began_ns, 3 * 250 * kUs) << "it is asked for every 250 us";
  ASSERT_EQ(world_.bounds_ns.size(), 1u);
  EXPECT_NEAR(static_cast<double>(world_.bounds_ns[0]), 100 * kUs, 10 * kUs);
  EXPECT_EQ(world_.calls.back(), "end") << "behind it at once";
  EXPECT_EQ(world_.open, 0);
  EXPECT_EQ(gate_->counts().on_credit.load(), 1);
  EXPECT_EQ(gate_->counts().refusals.load(), 3);
}

// The times of an operation are followed, up and down.
TEST_F(EagerGateTest, OperationsThatBecomeSlowerAreHeldEarlier) {
  Open(200 * kUs);
  for (int i = 0; i < 300; ++i) Run(1, 10 * kUs);
  int64_t most_ns = 0;
  for (int i = 0; i < 600; ++i) {
    const int64_t outstanding_ns = Run(1, 30 * kUs);
    if (i >= 300) most_ns = std::max(most_ns, outstanding_ns);
  }
  EXPECT_LE(most_ns, 260 * kUs);
  most_ns = 0;
  for (int i = 0; i < 600; ++i) {
    const int64_t outstanding_ns = Run(1, 10 * kUs);
    if (i >= 300) most_ns = std::max(most_ns, outstanding_ns);
  }
  EXPECT_GE(most_ns, 100 * kUs);
}

TEST_F(EagerGateTest, ARegionEndsFromTimeToTimeSoThatItsWorkIsSeen) {
  Open(200 * kUs);
  for (int i = 0; i < 100; ++i) Run(1, kMs, kUs);
  EXPECT_GE(gate_->counts().regions.load(), 4);
  EXPECT_LE(gate_->counts().regions.load(), 7);
}

TEST_F(EagerGateTest, TheEndOfARegionIsTriedAgain) {
  Open(200 * kUs);
  Run(1, kUs);
  world_.full_left = 3;
  EXPECT_EQ(gate_->Close(), GPUSHARE_OK);
  EXPECT_EQ(world_.open, 0);
  EXPECT_EQ(world_.events, 0);
  EXPECT_EQ(gate_->Launch(1), GPUSHARE_FAILED_PRECONDITION) << "closed";
}

// LC work runs, so that the region ends. Until that succeeds the launch waits as for room.
TEST_F(EagerGateTest, ALaunchThatEndsARegionTriesAgainUntilASignalComes) {
  Open(200 * kUs);
  Run(1, kUs);
  world_.room_ns = 0;
  world_.full_left = 1 << 30;
  world_.interrupted = true;
  EXPECT_EQ(gate_->Launch(1), GPUSHARE_CANCELLED);
  EXPECT_EQ(world_.open, 1);
  world_.full_left = 2;
  world_.interrupted = false;
  world_.lc_ends_ns = world_.now_ns + 100 * kUs;
  Run(1, kUs);
  EXPECT_EQ(world_.bounds_ns.size(), 2U) << "a region of its own behind the LC work";
}

// Of the queue whose turn it is: regions take turns on two.
TEST_F(EagerGateTest, ALaunchWaitsForTheLastRegionOfTheQueueAndASignalEndsThat) {
  Open(200 * kUs);
  world_.completes = false;
  for (int i = 0; i < 2; ++i) {
    Run(1, kUs);
    world_.now_ns += 30 * kMs;  // then a region has been open for long enough
  }
  world_.interrupted = true;
  EXPECT_EQ(gate_->Launch(1), GPUSHARE_CANCELLED);
  EXPECT_EQ(world_.bounds_ns.size(), 2U);
  world_.completes = true;
  Run(1, kUs);
  EXPECT_EQ(world_.bounds_ns.size(), 3U);
}

TEST_F(EagerGateTest, CloseGivesUpWhatDoesNotEndAndLaunchesNeedNotWaitForIt) {
  for (const bool full : {false, true}) {
    Open(200 * kUs);
    world_ = World();
    Run(1, kUs);
    world_.completes = false;
    world_.full_left = full ? 1 << 30 : 0;
    world_.pause_ns = 100 * kMs;
    int refused = 0;
    world_.on_pause = [&] {
      if (gate_->Launch(1) == GPUSHARE_FAILED_PRECONDITION) ++refused;
    };
    const int64_t began_ns = world_.now_ns;
    EXPECT_EQ(gate_->Close(), GPUSHARE_DEADLINE_EXCEEDED);
    EXPECT_GE(world_.now_ns - began_ns, EagerGate::kCloseNs);
    EXPECT_LE(world_.now_ns - began_ns, EagerGate::kCloseNs + 2 * world_.pause_ns);
    EXPECT_GT(refused, 0);
    EXPECT_EQ(world_.tickets, 0);
    world_.on_pause = nullptr;
    EXPECT_EQ(gate_->Close(), GPUSHARE_DEADLINE_EXCEEDED) << "a second time";
  }
}

TEST_F(EagerGateTest, ALostDeviceOpensTheGateForGood) {
  Open(200 * kUs);
  Run(1, kUs);
  world_.room_ns = 0;
  world_.room_status = GPUSHARE_UNAVAILABLE;
  EXPECT_EQ(gate_->Launch(1), GPUSHARE_UNAVAILABLE);
  EXPECT_EQ(gate_->Launch(2), GPUSHARE_UNAVAILABLE);
  EXPECT_EQ(gate_->Close(), GPUSHARE_UNAVAILABLE);
}

TEST_F(EagerGateTest, NothingIsAskedOfAStreamThatIsCaptured) {
  Open(200 * kUs);
  world_.capturing = true;
  for (int i = 0; i < 100; ++i) Run(static_cast<uint64_t>(i), 0);
  EXPECT_EQ(world_.queries, 0);
  world_.capturing = false;
  Run(1, 10 * kUs);
  EXPECT_GT(world_.queries, 0);
}

TEST_F(EagerGateTest, CloseIsWithoutTheInterpretersLockAndReleasesNone) {
  Open(200 * kUs);
  for (int i = 0; i < 4; ++i) Run(1, 20 * kUs);
  const int released = world_.released_ever;
  EXPECT_EQ(gate_->Close(), GPUSHARE_OK);
  EXPECT_EQ(world_.released_ever, released);
}

TEST_F(EagerGateTest, ASignalEndsTheWaitOfALaunchAndTheNextOneGoesOn) {
  Open(200 * kUs);
  Run(1, 20 * kUs);
  world_.room_ns = 0;
  world_.interrupted = true;
  const int64_t began_ns = world_.now_ns;
  EXPECT_EQ(gate_->Launch(1), GPUSHARE_CANCELLED);
  EXPECT_LE(world_.now_ns - began_ns, 110 * kMs) << "signals are looked for each 100 ms";
  EXPECT_EQ(world_.releases, 0);
  world_.interrupted = false;
  world_.room_ns = kAlways;
  Run(1, 20 * kUs);
}

TEST_F(EagerGateTest, AMeasurementThatDoesNotEndIsGivenUpAndTheOperationCountsAsLong) {
  Open(200 * kUs);
  EXPECT_EQ(gate_->Launch(1), GPUSHARE_OK);
  world_.stuck = true;
  const int64_t began_ns = world_.now_ns;
  gate_->Launched();
  EXPECT_NEAR(static_cast<double>(world_.now_ns - began_ns), 1000 * kMs, kMs);
  EXPECT_EQ(world_.releases, 0) << "the interpreter's lock came back";
  EXPECT_GT(world_.released_ever, 0);
  world_.stuck = false;
  world_.room_ns = 500 * kMs;
  Run(1, 10 * kUs);
  EXPECT_EQ(gate_->counts().on_credit.load(), 1) << "it is longer than the room";
}

TEST_F(EagerGateTest, AMeasurementThatLcWorkSpoilsIsRepeated) {
  Open(200 * kUs);
  EXPECT_EQ(gate_->Launch(1), GPUSHARE_OK);
  world_.busy_until_ns = world_.now_ns + 50 * kUs;
  world_.room_ns = 0;
  gate_->Launched();
  EXPECT_EQ(gate_->counts().measured.load(), 0);
  world_.room_ns = kAlways;
  Run(1, 50 * kUs);
  EXPECT_EQ(gate_->counts().measured.load(), 1);
}

// A query that is over before the measurement is: what the operation took has its time.
TEST_F(EagerGateTest, AMeasurementDuringWhichLcWorkCameAndWentIsRepeated) {
  Open(200 * kUs);
  EXPECT_EQ(gate_->Launch(1), GPUSHARE_OK);
  world_.busy_until_ns = world_.now_ns + 5 * kUs;
  world_.on_pause = [&] {
    world_.on_pause = nullptr;
    world_.room_ns = 0;
    world_.lc_ends_ns = world_.now_ns + 200 * kUs;
    for (auto& [event, complete_ns] : world_.event_ns) complete_ns += 250 * kUs;
  };
  gate_->Launched();
  EXPECT_EQ(gate_->counts().measured.load(), 0);
  world_.room_ns = 60 * kUs;
  Run(1, 5 * kUs);
  Run(1, 5 * kUs);
  EXPECT_EQ(gate_->counts().measured.load(), 1);
  EXPECT_EQ(gate_->counts().on_credit.load(), 0) << "it is short";
}

// Queries come so often that a long operation never runs alone: each run meets one.
TEST_F(EagerGateTest, AnOperationThatRanOnUntilLcWorkCameClaimsTwiceAsMuchNextTime) {
  Open(200 * kUs);
  world_.room_ns = 20 * kUs;
  for (const int64_t comes_ns : {100 * kUs, 300 * kUs, 50 * kUs}) {
    EXPECT_EQ(gate_->Launch(1), GPUSHARE_OK);
    const int64_t began_ns = world_.now_ns;
    world_.busy_until_ns = began_ns + 500 * kUs;
    world_.on_pause = [&] {
      if (world_.now_ns >= began_ns + comes_ns) world_.room_ns = 0;
    };
    gate_->Launched();
    world_.on_pause = nullptr;
    world_.room_ns = 20 * kUs;
    world_.now_ns += 2 * kMs;
  }
  EXPECT_EQ(gate_->counts().measured.load(), 0);
  EXPECT_EQ(gate_->counts().on_credit.load(), 2) << "all but the first";
  Run(1, 500 * kUs);
  EXPECT_EQ(gate_->counts().measured.load(), 1) << "at last";
  ASSERT_EQ(world_.bounds_ns.size(), 4U);
  EXPECT_NEAR(static_cast<double>(world_.bounds_ns[1]), 200 * kUs, 20 * kUs);
  EXPECT_NEAR(static_cast<double>(world_.bounds_ns[2]), 600 * kUs, 20 * kUs);
  EXPECT_EQ(world_.bounds_ns[3], world_.bounds_ns[2]) << "the longest counts";
}

TEST_F(EagerGateTest, UnknownOperationsOfALoopOfLongOnesAskForCreditToo) {
  Open(200 * kUs);
  world_.room_ns = 20 * kUs;
  Run(1, 500 * kUs);
  EXPECT_EQ(gate_->counts().on_credit.load(), 0) << "nothing is known of the loop";
  Run(2, 500 * kUs);
  EXPECT_EQ(gate_->counts().on_credit.load(), 1);
  EXPECT_NEAR(static_cast<double>(world_.bounds_ns.back()), 500 * kUs, 20 * kUs);
  for (uint64_t key = 3; key < 13; ++key) Run(key, 5 * kUs);
  EXPECT_EQ(gate_->counts().on_credit.load(), 6) << "each short one halves what the next claims";
  Run(13, 3 * kMs);
  world_.capturing = true;
  Run(14, 0);
  EXPECT_EQ(gate_->counts().on_credit.load(), 6) << "a captured operation does not run";
  world_.capturing = false;
  Run(14, 5 * kUs);
  EXPECT_EQ(gate_->counts().on_credit.load(), 7);
  EXPECT_EQ(world_.bounds_ns.back(), kMs) << "at most";
}

// 32 launches fill a group. The next one finds that the driver records no event.
TEST_F(EagerGateTest, AGroupThatCannotBeClosedTakesNoMoreLaunches) {
  Open(1000 * kMs);
  Run(1, 100);
  Run(2, 100);
  world_.record_fails = true;
  gpushare_status last = GPUSHARE_OK;
  for (int i = 0; i < 100; ++i) {
    world_.now_ns += kUs;
    last = gate_->Launch(1);
  }
  EXPECT_EQ(last, GPUSHARE_INTERNAL);
  world_.record_fails = false;
  EXPECT_EQ(gate_->Close(), GPUSHARE_INTERNAL);
}

// Eight groups of 32 launches wait for a GPU that completes nothing, and all events are taken.
TEST_F(EagerGateTest, LaunchesBehindTheLastEventJoinItsGroup) {
  Open(1000 * kMs);
  Run(1, 10 * kUs);
  world_.stuck = true;
  const int released = world_.released_ever;
  const int64_t began_ns = world_.now_ns;
  for (int i = 0; i < 1000; ++i) Run(1, 10 * kUs, 100);
  EXPECT_LE(world_.now_ns - began_ns, 2 * kMs) << "nobody waits for the oldest group";
  EXPECT_EQ(world_.released_ever, released);
  world_.stuck = false;
  world_.now_ns = world_.busy_until_ns;
  Run(2, 10 * kUs);
  EXPECT_EQ(gate_->counts().measured.load(), 2) << "it saw that all of them are complete";
  EXPECT_EQ(gate_->Close(), GPUSHARE_OK);
}

// A backward pass launches on a thread of its own while the forward pass's thread goes on.
TEST(EagerGateThreads, ThreadsPassOneAfterTheOther) {
  static std::atomic<int64_t> clock;
  World world;
  World::it = &world;
  HostCalls host = Host();
  host.now_ns = [] { return clock.fetch_add(100); };
  host.pause = [](int64_t) {};
  host.release = []() -> void* { return nullptr; };
  EagerGate gate({.outstanding_ns = 100 * kUs},
                 {&BeginRegion, &EndRegion, &RoomNow, &Wait, &Release}, {}, host);
  ASSERT_TRUE(gate.Open());
  const auto run = [&] {
    for (uint64_t i = 0; i < 2000; ++i) {
      ASSERT_EQ(gate.Launch(i % 7), GPUSHARE_OK);
      if (gate.WantsLaunched()) gate.Launched();
    }
  };
  std::thread forward(run);
  std::thread backward(run);
  forward.join();
  backward.join();
  EXPECT_EQ(gate.counts().operations.load(), 4000);
  EXPECT_EQ(gate.Close(), GPUSHARE_OK);
  EXPECT_EQ(world.open, 0);
}

// --- the hook ---

struct Cupti {
  CuptiCallback callback = nullptr;
  std::vector<uint32_t> enabled;
  int subscribers = 0;
  int refuses = 0;
};
Cupti cupti;

int Subscribe(void** out, CuptiCallback callback, void*) {
  if (cupti.refuses != 0) return cupti.refuses;
  *out = &cupti;
  cupti.callback = callback;
  ++cupti.subscribers;
  return 0;
}
int EnableCallback(uint32_t enable, void*, int domain, uint32_t call) {
  EXPECT_EQ(domain, kDriverDomain);
  EXPECT_EQ(enable, 1u);
  if (call == 652) return 1;  // an old CUPTI does not know cuLaunchKernelEx
  cupti.enabled.push_back(call);
  return 0;
}
int Unsubscribe(void*) {
  --cupti.subscribers;
  return 0;
}
constexpr CuptiCalls kCupti = {&Subscribe, &EnableCallback, &Unsubscribe};

template <class Arguments>
void DriverCallOf(uint32_t call, const Arguments& arguments) {
  CallbackData data = {kEnter, "", &arguments};
  cupti.callback(nullptr, kDriverDomain, call, &data);
  data.site = 1;
  cupti.callback(nullptr, kDriverDomain, call, &data);
}

class LaunchHookTest : public EagerGateTest {
 protected:
  void SetUp() override {
    cupti = {};
    Open(200 * kUs);
    ASSERT_EQ(HookGate(kCupti, &*gate_), 0);
  }
  void TearDown() override { UnhookGate(&*gate_); }
  int64_t Passed() const { return gate_->counts().operations.load(); }
};

TEST_F(LaunchHookTest, EveryCallThatEnqueuesOnTheStreamPasses) {
  const LaunchArguments kernel = {this, {{2, 1, 1}, {64, 1, 1}, 0, this}};
  DriverCallOf(307, kernel);
  DriverCallOf(477, kernel);
  DriverCallOf(652, LaunchExArguments{&kernel.shape, this});
  DriverCallOf(514, GraphArguments{this, this});
  DriverCallOf(277, CopyArguments{1, 2, 100, this});
  DriverCallOf(289, ShapedCopyArguments{this, this});
  DriverCallOf(220, FillArguments{1, 2, 100, this});
  DriverCallOf(226, Fill2dArguments{1, 2, 3, 4, 5, this});
  EXPECT_EQ(Passed(), 8);
  EXPECT_EQ(gate_->counts().measured.load(), 6) << "a kernel has one time, however it is launched";
}

TEST_F(LaunchHookTest, OtherStreamsDoNot) {
  DriverCallOf(307, LaunchArguments{this, {{2, 1, 1}, {64, 1, 1}, 0, &world_}});
  DriverCallOf(307, LaunchArguments{this, {{2, 1, 1}, {64, 1, 1}, 0, nullptr}});
  DriverCallOf(999, GraphArguments{this, this});
  EXPECT_EQ(Passed(), 0);
}

TEST_F(LaunchHookTest, AGridIsAnOperationOfItsOwn) {
  const auto launch = [&](unsigned blocks, const void* function) {
    DriverCallOf(
        307, LaunchArguments{const_cast<void*>(function), {{blocks, 1, 1}, {64, 1, 1}, 0, this}});
  };
  launch(1, this);
  launch(2, this);
  launch(2, &world_);
  launch(1, this);
  EXPECT_EQ(gate_->counts().measured.load(), 3);
}

TEST_F(LaunchHookTest, TheLastGateGivesCuptiBack) {
  EagerGate other({.stream = &world_}, {&BeginRegion, &EndRegion, &RoomNow, &Wait, &Release}, {},
                  Host());
  ASSERT_EQ(HookGate(kCupti, &other), 0);
  EXPECT_EQ(cupti.subscribers, 1);
  DriverCallOf(307, LaunchArguments{this, {{2, 1, 1}, {64, 1, 1}, 0, &world_}});
  EXPECT_EQ(other.counts().operations.load(), 1);
  UnhookGate(&other);
  EXPECT_EQ(cupti.subscribers, 1);
  UnhookGate(&*gate_);
  EXPECT_EQ(cupti.subscribers, 0);
  DriverCallOf(307, LaunchArguments{this, {{2, 1, 1}, {64, 1, 1}, 0, this}});
  EXPECT_EQ(Passed(), 0) << "a callback that comes late";
  cupti.refuses = 39;  // another subscriber
  EXPECT_EQ(HookGate(kCupti, &*gate_), 39);
}

// One launch waits in a gate, another thread closes that gate, and a third one hooks a gate of its
// own. The launch comes out by taking the interpreter's lock, which the third thread may have.
struct Meeting {
  std::promise<void> launch_waits, launch_leaves, other_is_hooked;
  std::shared_future<void> hooked{other_is_hooked.get_future()};
  std::atomic<int> pauses = 0;
  static Meeting* it;
};
Meeting* Meeting::it = nullptr;

void PauseInMeeting(int64_t) {
  std::this_thread::yield();
  if (Meeting::it->pauses.fetch_add(1) == 0) Meeting::it->launch_waits.set_value();
}
void RestoreInMeeting(void*) {
  Meeting::it->launch_leaves.set_value();
  EXPECT_EQ(Meeting::it->hooked.wait_for(std::chrono::seconds(10)), std::future_status::ready)
      << "the thread that has the lock waits for the one that unhooks";
}

std::atomic<bool> region_completes;
std::atomic<int> pauses;

gpushare_status WaitForRegion(gpushare_runtime*, gpushare_ticket, int64_t) noexcept {
  return region_completes.load() ? GPUSHARE_OK : GPUSHARE_DEADLINE_EXCEEDED;
}

TEST(EagerGateThreads, ASecondCloseWaitsForTheFirst) {
  World world;
  World::it = &world;
  region_completes = true;
  pauses = 0;
  HostCalls host = Host();
  host.now_ns = [] { return kMs; };
  host.pause = [](int64_t) {
    ++pauses;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const LibraryCalls library = {&BeginRegion, &EndRegion, &RoomNow, &WaitForRegion, &Release};
  EagerGate gate({.stream = &world, .outstanding_ns = kMs}, library, {}, host);
  ASSERT_EQ(gate.Launch(1), GPUSHARE_OK);

  region_completes = false;
  std::thread first([&] { EXPECT_EQ(gate.Close(), GPUSHARE_OK); });
  while (pauses.load() == 0) std::this_thread::yield();
  std::atomic<bool> ended = false;
  std::thread second([&] {
    EXPECT_EQ(gate.Close(), GPUSHARE_OK);
    ended = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until it would have ended
  EXPECT_FALSE(ended.load()) << "the region of the gate is not complete";
  region_completes = true;
  first.join();
  second.join();
  EXPECT_EQ(world.tickets, 0);
}

TEST(LaunchHookThreads, AGateCanBeHookedWhileALaunchLeavesOneThatIsClosed) {
  World world;
  World::it = &world;
  world.room_ns = 0;  // LC work, without end
  Meeting meeting;
  Meeting::it = &meeting;
  cupti = {};
  HostCalls host = Host();
  host.now_ns = [] { return kMs; };
  host.pause = &PauseInMeeting;
  host.restore = &RestoreInMeeting;
  const LibraryCalls library = {&BeginRegion, &EndRegion, &RoomNow, &Wait, &Release};
  EagerGate gate({.stream = &world, .outstanding_ns = kMs}, library, {}, host);
  EagerGate other({.stream = &host, .outstanding_ns = kMs}, library, {}, host);
  ASSERT_EQ(HookGate(kCupti, &gate), 0);

  std::atomic<bool> unhooked = false;
  std::thread launcher([&] {
    const LaunchArguments kernel = {&world, {{2, 1, 1}, {64, 1, 1}, 0, &world}};
    const CallbackData data = {kEnter, "", &kernel};
    cupti.callback(nullptr, kDriverDomain, 307, &data);
  });
  meeting.launch_waits.get_future().wait();
  std::thread closer([&] {
    EXPECT_EQ(gate.Close(), GPUSHARE_OK);
    UnhookGate(&gate);
    unhooked = true;
  });
  meeting.launch_leaves.get_future().wait();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until the closer waits for it
  EXPECT_FALSE(unhooked.load()) << "the launch is still in the gate";
  EXPECT_EQ(HookGate(kCupti, &other), 0);
  EXPECT_EQ(cupti.subscribers, 1);
  meeting.other_is_hooked.set_value();
  launcher.join();
  closer.join();
  EXPECT_EQ(cupti.subscribers, 1) << "the other gate's";
  UnhookGate(&other);
  EXPECT_EQ(cupti.subscribers, 0);
}

}  // namespace
}  // namespace gpushare::python
