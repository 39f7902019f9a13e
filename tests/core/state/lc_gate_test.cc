// The gate of the LC fast path: no eviction is lost under any interleaving.
//
// The enumeration runs the real LcGate one step at a time in every order that LC callers, BE
// launcher and planner can take (sequentially consistent; lc_gate.h says which memory orders
// justify this, and lc_gate_threads_test runs them on real threads under the thread sanitizer). The
// device is a model of its contract: a launch made at epoch e leaves once word - e >= 0, also when
// the word was written before the launch arrived. Mutated protocols show that a lost eviction would
// be found.

#include "src/core/state/shared/lc_gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace gpushare::core {
namespace {

enum class Step {
  // LC caller
  kEnter,
  kReadRoute,
  kReadCounts,      // the lanes of the route without a launcher are left out of what follows
  kRaise,           // every lane of the route, in the gate
  kEvict,           // the device's words
  kEvictIfCounted,  // the same, where a launcher is counted
  kLaunchLc,
  kLeave,  // the LC work is complete
  // BE launcher
  kCount,  // itself on the lane, for kEvictIfCounted
  kReadEpoch,
  kCheckGate,
  kLaunchBe,  // if the gate was open
  // planner
  kWiden,
  kPublish,
  kNarrow,
};

const char* NameOf(Step step) {
  constexpr std::array<const char*, 15> kNames = {
      "enter",     "read route", "read counts", "raise",      "evict",      "evict if counted",
      "launch LC", "leave",      "count",       "read epoch", "check gate", "launch BE",
      "widen",     "publish",    "narrow"};
  return kNames[static_cast<size_t>(step)];
}

struct Actor {
  std::vector<Step> steps;
  LaneIndex lane = 0;  // BE launcher: where it launches
};

const std::vector<Step> kCaller = {Step::kEnter, Step::kReadRoute, Step::kRaise,
                                   Step::kEvict, Step::kLaunchLc,  Step::kLeave};
// A caller whose route never changes.
const std::vector<Step> kFixedRoute = {Step::kEnter, Step::kRaise, Step::kEvict, Step::kLaunchLc,
                                       Step::kLeave};
const std::vector<Step> kLaunch = {Step::kReadEpoch, Step::kCheckGate, Step::kLaunchBe};

std::vector<Step> Twice(const std::vector<Step>& steps) {
  std::vector<Step> both = steps;
  both.insert(both.end(), steps.begin(), steps.end());
  return both;
}

constexpr LaneIndex kOldLane = 0;
constexpr LaneIndex kNewLane = 1;
constexpr int kLanes = 2;
constexpr size_t kMaxActors = 3;
constexpr uint64_t Bit(LaneIndex lane) { return uint64_t{1} << lane; }

// One run of the protocol.
class World {
 public:
  World(const std::vector<Actor>& actors, uint64_t first_word, bool gate_is_open)
      : actors_(actors) {
    for (State& state : states_) {
      state.route = route_;
      state.open = gate_is_open;
    }
    gate_.WidenLanes(Bit(kOldLane));
    for (LaneIndex lane = 0; lane < kLanes; ++lane) {
      gate_.StartEpoch(lane, first_word);
      device_word_[static_cast<size_t>(lane)] = first_word;
    }
  }

  void Do(size_t index) {
    const Actor& actor = actors_[index];
    State& state = states_[index];
    switch (actor.steps[state.next++]) {
      case Step::kEnter:
        gate_.EnterLc();
        break;
      case Step::kReadRoute:
        state.route = route_;
        break;
      case Step::kReadCounts:
        for (LaneIndex lane = 0; lane < kLanes; ++lane) {
          if (counted_[static_cast<size_t>(lane)] == 0) state.occupied &= ~Bit(lane);
        }
        break;
      case Step::kRaise:
        ForEachLane(state.route & state.occupied, [&](LaneIndex lane) {
          state.raised[static_cast<size_t>(lane)] = gate_.RaiseEpoch(lane);
        });
        break;
      case Step::kEvict:  // the last write wins, as on a device
        ForEachLane(state.route & state.occupied, [&](LaneIndex lane) {
          device_word_[static_cast<size_t>(lane)] = state.raised[static_cast<size_t>(lane)];
        });
        break;
      case Step::kEvictIfCounted:
        ForEachLane(state.route, [&](LaneIndex lane) {
          const auto at = static_cast<size_t>(lane);
          if (counted_[at] > 0) device_word_[at] = state.raised[at];
        });
        break;
      case Step::kLaunchLc:
        state.lc_in_flight = true;
        break;
      case Step::kLeave:
        state.lc_in_flight = false;
        gate_.LeaveLc();
        break;
      case Step::kCount:
        ++counted_[static_cast<size_t>(actor.lane)];
        break;
      case Step::kReadEpoch:
        state.epoch = gate_.ReadLaunchEpoch(actor.lane);
        break;
      case Step::kCheckGate:
        state.open = gate_.IsOpen(actor.lane);
        break;
      case Step::kLaunchBe:
        if (state.open) launches_[launch_count_++] = {actor.lane, state.epoch};
        break;
      case Step::kWiden:
        gate_.WidenLanes(Bit(kNewLane));
        break;
      case Step::kPublish:
        route_ = Bit(kNewLane);
        break;
      case Step::kNarrow:
        gate_.NarrowLanes(Bit(kNewLane));
        break;
    }
  }

  // BE work that nobody evicted runs where LC work is.
  bool LostAnEviction() const {
    for (const State& state : states_) {
      if (!state.lc_in_flight) continue;
      for (size_t i = 0; i < launch_count_; ++i) {
        if ((state.route & Bit(launches_[i].lane)) != 0 && !WasToldToLeave(launches_[i]))
          return true;
      }
    }
    return false;
  }

  bool HasUndisturbedLaunch() const {
    for (size_t i = 0; i < launch_count_; ++i) {
      if (!WasToldToLeave(launches_[i])) return true;
    }
    return false;
  }
  int64_t InFlight() const { return gate_.InFlight(); }

 private:
  struct State {
    size_t next = 0;
    uint64_t route = 0;
    uint64_t occupied = ~uint64_t{0};  // lanes where a launcher was counted
    std::array<uint64_t, kLanes> raised{};
    bool lc_in_flight = false;
    uint64_t epoch = 0;
    bool open = false;
  };
  struct BeLaunch {
    LaneIndex lane = 0;
    uint64_t epoch = 0;
  };

  bool WasToldToLeave(const BeLaunch& launch) const {
    const uint64_t word = device_word_[static_cast<size_t>(launch.lane)];
    return static_cast<int64_t>(word - launch.epoch) >= 0;
  }

  template <class F>
  static void ForEachLane(uint64_t lanes, F f) {
    for (LaneIndex lane = 0; lane < kLanes; ++lane) {
      if ((lanes & Bit(lane)) != 0) f(lane);
    }
  }

  const std::vector<Actor>& actors_;
  LcGate gate_;
  uint64_t route_ = Bit(kOldLane);
  std::array<uint64_t, kLanes> device_word_{};
  std::array<int, kLanes> counted_{};
  std::array<State, kMaxActors> states_{};
  std::array<BeLaunch, kMaxActors * 2> launches_{};
  size_t launch_count_ = 0;
};

struct Enumeration {
  int64_t interleavings = 0;
  int64_t lost = 0;
  int64_t left_inside = 0;  // the gate's count is not back at 0
  int64_t with_be_alive_at_the_end = 0;
  std::string first_lost;  // the order of steps that lost an eviction
};

std::string Describe(const std::vector<Actor>& actors, const std::vector<size_t>& order) {
  std::vector<size_t> next(actors.size());
  std::string text;
  for (size_t actor : order) {
    text += std::to_string(actor) + ": " + NameOf(actors[actor].steps[next[actor]++]) + "; ";
  }
  return text;
}

Enumeration EnumerateAll(const std::vector<Actor>& actors, uint64_t first_word = 0,
                         bool gate_is_open = false) {
  std::vector<size_t> order;
  for (size_t i = 0; i < actors.size(); ++i) order.insert(order.end(), actors[i].steps.size(), i);
  Enumeration result;
  do {
    World world(actors, first_word, gate_is_open);
    bool lost = false;
    for (size_t actor : order) {
      world.Do(actor);
      lost = lost || world.LostAnEviction();
    }
    ++result.interleavings;
    if (world.HasUndisturbedLaunch()) ++result.with_be_alive_at_the_end;
    if (lost && result.lost++ == 0) result.first_lost = Describe(actors, order);
    if (world.InFlight() != 0) ++result.left_inside;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(result.left_inside, 0);
  return result;
}

int64_t Binomial(int64_t n, int64_t k) {
  int64_t ways = 1;
  for (int64_t i = 1; i <= k; ++i) ways = ways * (n - k + i) / i;
  return ways;
}

TEST(LcGate, OneCallerAndOneLaunchLoseNoEviction) {
  const Enumeration all = EnumerateAll({{.steps = kCaller}, {.steps = kLaunch}});
  EXPECT_EQ(all.interleavings, Binomial(9, 3));
  EXPECT_EQ(all.lost, 0) << all.first_lost;
  EXPECT_GT(all.with_be_alive_at_the_end, 0) << "BE that starts after LC left runs undisturbed";
}

TEST(LcGate, OneCallerAndTwoLaunchesInARowLoseNoEviction) {
  const Enumeration all = EnumerateAll({{.steps = kCaller}, {.steps = Twice(kLaunch)}});
  EXPECT_EQ(all.interleavings, Binomial(12, 6));
  EXPECT_EQ(all.lost, 0) << all.first_lost;
}

TEST(LcGate, TwoQueriesOfOneCallerLoseNoEviction) {
  const Enumeration all = EnumerateAll({{.steps = Twice(kCaller)}, {.steps = Twice(kLaunch)}});
  EXPECT_EQ(all.interleavings, Binomial(18, 6));
  EXPECT_EQ(all.lost, 0) << all.first_lost;
}

TEST(LcGate, TwoCallersAndOneLaunchLoseNoEviction) {
  const Enumeration all =
      EnumerateAll({{.steps = kCaller}, {.steps = kCaller}, {.steps = kLaunch}});
  EXPECT_EQ(all.interleavings, Binomial(15, 3) * Binomial(12, 6));
  EXPECT_EQ(all.lost, 0) << all.first_lost;
}

// The route is fixed here, which leaves two million orders.
TEST(LcGate, TwoCallersAndTwoLaunchesLoseNoEviction) {
  const Enumeration all =
      EnumerateAll({{.steps = kFixedRoute}, {.steps = kFixedRoute}, {.steps = Twice(kLaunch)}});
  EXPECT_EQ(all.interleavings, Binomial(16, 6) * Binomial(10, 5));
  EXPECT_EQ(all.lost, 0) << all.first_lost;
}

// The device's word is written only where a launcher is counted: the write costs more than the
// launch.
TEST(LcGate, SkippingTheWriteOnLanesWithoutLaunchersLosesNoEviction) {
  const std::vector<Step> caller = {Step::kEnter, Step::kRaise, Step::kEvictIfCounted,
                                    Step::kLaunchLc, Step::kLeave};
  const std::vector<Step> launch = {Step::kCount, Step::kReadEpoch, Step::kCheckGate,
                                    Step::kLaunchBe};
  const Enumeration all = EnumerateAll({{.steps = caller}, {.steps = caller}, {.steps = launch}});
  EXPECT_EQ(all.lost, 0) << all.first_lost;
  const Enumeration two = EnumerateAll({{.steps = Twice(caller)}, {.steps = Twice(launch)}});
  EXPECT_EQ(two.lost, 0) << two.first_lost;
}

// Nor is the epoch raised there: the gate alone holds back a launcher that is not counted yet.
TEST(LcGate, SkippingTheRaiseOnLanesWithoutLaunchersLosesNoEviction) {
  const std::vector<Step> caller = {Step::kEnter, Step::kReadCounts, Step::kRaise,
                                    Step::kEvict, Step::kLaunchLc,   Step::kLeave};
  const std::vector<Step> launch = {Step::kCount, Step::kReadEpoch, Step::kCheckGate,
                                    Step::kLaunchBe};
  const Enumeration all = EnumerateAll({{.steps = caller}, {.steps = caller}, {.steps = launch}});
  EXPECT_EQ(all.lost, 0) << all.first_lost;
}

TEST(LcGateMutation, ACallerThatReadsTheCountsBeforeItEntersLosesEvictions) {
  const std::vector<Step> caller = {Step::kReadCounts, Step::kEnter,    Step::kRaise,
                                    Step::kEvict,      Step::kLaunchLc, Step::kLeave};
  const std::vector<Step> launch = {Step::kCount, Step::kReadEpoch, Step::kCheckGate,
                                    Step::kLaunchBe};
  const Enumeration all = EnumerateAll({{.steps = caller}, {.steps = launch}});
  EXPECT_GT(all.lost, 0);
}

TEST(LcGateMutation, ALauncherThatCountsItselfAfterItsEpochLosesEvictions) {
  const Enumeration all = EnumerateAll(
      {{.steps = {Step::kEnter, Step::kRaise, Step::kEvictIfCounted, Step::kLaunchLc,
                  Step::kLeave}},
       {.steps = {Step::kReadEpoch, Step::kCheckGate, Step::kCount, Step::kLaunchBe}}});
  EXPECT_GT(all.lost, 0);
}

// The epoch is 64 bits and starts anywhere: around 2^64 and around the sign change of a difference.
TEST(LcGate, EpochsThatWrapLoseNoEviction) {
  for (uint64_t first_word : {~uint64_t{0} - 1, ~uint64_t{0}, (uint64_t{1} << 63) - 1}) {
    const Enumeration all =
        EnumerateAll({{.steps = Twice(kFixedRoute)}, {.steps = Twice(kLaunch)}}, first_word);
    EXPECT_EQ(all.lost, 0) << all.first_lost;
    EXPECT_GT(all.with_be_alive_at_the_end, 0);
  }
}

// A planner that moves the LC app to another lane while callers come and go.
TEST(LcGate, ARouteThatMovesLosesNoEviction) {
  const std::vector<Step> planner = {Step::kWiden, Step::kPublish, Step::kNarrow};
  for (LaneIndex lane : {kOldLane, kNewLane}) {
    const Enumeration all =
        EnumerateAll({{.steps = kCaller}, {.steps = kLaunch, .lane = lane}, {.steps = planner}});
    EXPECT_EQ(all.interleavings, Binomial(12, 6) * Binomial(6, 3));
    EXPECT_EQ(all.lost, 0) << all.first_lost;
  }
}

// Mutations: each breaks one rule of the protocol, and the enumeration finds the loss.

TEST(LcGateMutation, ALauncherThatChecksTheGateBeforeItsEpochLosesEvictions) {
  const std::vector<Step> swapped = {Step::kCheckGate, Step::kReadEpoch, Step::kLaunchBe};
  const Enumeration all = EnumerateAll({{.steps = kFixedRoute}, {.steps = swapped}});
  EXPECT_GT(all.lost, 0);
  // The caller fits between the two reads: the gate was still open, the epoch is already raised.
  EXPECT_NE(all.first_lost.find("check gate"), std::string::npos);
  const Enumeration two = EnumerateAll({{.steps = Twice(kFixedRoute)}, {.steps = Twice(swapped)}});
  EXPECT_GT(two.lost, 0);
}

TEST(LcGateMutation, ACallerThatRaisesBeforeItEntersLosesEvictions) {
  const Enumeration all = EnumerateAll(
      {{.steps = {Step::kRaise, Step::kEvict, Step::kEnter, Step::kLaunchLc, Step::kLeave}},
       {.steps = kLaunch}});
  EXPECT_GT(all.lost, 0);
}

TEST(LcGateMutation, ALauncherThatNeverChecksTheGateLosesEvictions) {
  const Enumeration all =
      EnumerateAll({{.steps = kFixedRoute}, {.steps = {Step::kReadEpoch, Step::kLaunchBe}}},
                   /*first_word=*/0, /*gate_is_open=*/true);
  EXPECT_GT(all.lost, 0);
}

TEST(LcGateMutation, ACallerThatOnlyClosesTheGateLosesTheLaunchThatPassedIt) {
  const Enumeration all =
      EnumerateAll({{.steps = {Step::kEnter, Step::kLaunchLc, Step::kLeave}}, {.steps = kLaunch}});
  EXPECT_GT(all.lost, 0);
}

TEST(LcGateMutation, ARouteReadBeforeEnteringMayBeStale) {
  const Enumeration all = EnumerateAll({{.steps = {Step::kReadRoute, Step::kEnter, Step::kRaise,
                                                   Step::kEvict, Step::kLaunchLc, Step::kLeave}},
                                        {.steps = kLaunch, .lane = kOldLane},
                                        {.steps = {Step::kWiden, Step::kPublish, Step::kNarrow}}});
  EXPECT_GT(all.lost, 0);
}

TEST(LcGateMutation, LanesThatNarrowBeforeTheNewRouteIsPublishedLoseEvictions) {
  const Enumeration all = EnumerateAll({{.steps = kCaller},
                                        {.steps = kLaunch, .lane = kOldLane},
                                        {.steps = {Step::kWiden, Step::kNarrow, Step::kPublish}}});
  EXPECT_GT(all.lost, 0);
}

TEST(LcGateMutation, ARoutePublishedBeforeItsLanesWidenLosesEvictions) {
  const Enumeration all = EnumerateAll({{.steps = kCaller},
                                        {.steps = kLaunch, .lane = kNewLane},
                                        {.steps = {Step::kPublish, Step::kWiden, Step::kNarrow}}});
  EXPECT_GT(all.lost, 0);
}

// --- the gate by itself --------------------------------------------------------------------------

TEST(LcGate, ALaunchIsReachedByTheNextRaiseAndByNoEarlierOne) {
  LcGate gate;
  const uint64_t before = gate.RaiseEpoch(3);
  const uint64_t epoch = gate.ReadLaunchEpoch(3);
  EXPECT_LT(static_cast<int64_t>(before - epoch), 0);
  EXPECT_GE(static_cast<int64_t>(gate.RaiseEpoch(3) - epoch), 0);
  EXPECT_EQ(gate.Epoch(3), before + 1);
  EXPECT_EQ(gate.Epoch(4), 0u) << "lanes are apart";
}

TEST(LcGate, IsClosedUntilTheLastCallerLeaves) {
  LcGate gate;
  gate.WidenLanes(Bit(0) | uint64_t{1} << 63);
  EXPECT_TRUE(gate.IsOpen(0));
  gate.EnterLc();
  gate.EnterLc();
  EXPECT_FALSE(gate.IsOpen(0));
  EXPECT_FALSE(gate.IsOpen(63));
  EXPECT_TRUE(gate.IsOpen(1)) << "a lane that no route needs";
  gate.LeaveLc();
  EXPECT_FALSE(gate.IsOpen(0));
  gate.LeaveLc();
  EXPECT_TRUE(gate.IsOpen(0));
}

TEST(LcGate, LanesNarrowOnlyWhenNoCallerMayUseAnOlderRoute) {
  LcGate gate;
  gate.WidenLanes(Bit(0) | Bit(1));
  gate.EnterLc();
  EXPECT_FALSE(gate.NarrowLanes(Bit(1)));
  EXPECT_EQ(gate.ClosedLanes(), Bit(0) | Bit(1));
  gate.LeaveLc();
  EXPECT_TRUE(gate.NarrowLanes(Bit(1)));
  EXPECT_EQ(gate.ClosedLanes(), Bit(1));
}

}  // namespace
}  // namespace gpushare::core
