// The table of legal transitions against a second, independent list of them.

#include "src/core/state/task_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpushare::core {
namespace {

using enum TaskState;

std::vector<TaskState> AllStates() {
  std::vector<TaskState> states;
  for (int i = 0; i < kTaskStateCount; ++i) states.push_back(static_cast<TaskState>(i));
  return states;
}

bool IsOneOf(TaskState state, std::initializer_list<TaskState> set) {
  return std::find(set.begin(), set.end(), state) != set.end();
}

// The life of a task as sentences, not as a table.
bool LifeAllows(TaskState from, TaskState to) {
  const bool from_is_terminal = IsOneOf(from, {kDone, kFailed, kCancelled, kDropped, kTimedOut});
  const bool from_is_on_device = IsOneOf(from, {kRunning, kEvicting});
  const bool from_is_live = from != kFree && !from_is_terminal;
  switch (to) {
    case kFree:  // a slot is given back only once its task is complete
      return from_is_terminal;
    case kSubmitted:
      return from == kFree;
    case kWaiting:  // admission alone finds out what a task waits for
      return from == kSubmitted;
    case kReady:  // admitted, waited for the last ticket, or left the device with a rest
      return from == kSubmitted || from == kWaiting || from_is_on_device;
    case kRunning:  // planned, launched by its submitter, or back after part of it was evicted
      return from == kReady || from == kSubmitted || from == kEvicting;
    case kEvicting:
      return from == kRunning;
    case kDone:
    case kTimedOut:
      return from_is_on_device;
    case kFailed:
    case kCancelled:
      return from_is_live;
    case kDropped:
      return from_is_live && !from_is_on_device;
  }
  return false;
}

TEST(TaskState, EveryPairOfStatesAgreesWithTheTasksLife) {
  for (TaskState from : AllStates()) {
    for (TaskState to : AllStates()) {
      EXPECT_EQ(IsLegal(from, to), LifeAllows(from, to))
          << StateName(from) << " -> " << StateName(to);
    }
  }
}

TEST(TaskState, NoStateFollowsItself) {
  for (TaskState state : AllStates()) EXPECT_FALSE(IsLegal(state, state)) << StateName(state);
}

TEST(TaskState, ACompleteTaskNeverComesBackToLife) {
  for (TaskState from : AllStates()) {
    if (!IsTerminal(from)) continue;
    for (TaskState to : AllStates()) {
      EXPECT_EQ(IsLegal(from, to), to == kFree) << StateName(from) << " -> " << StateName(to);
    }
  }
}

TEST(TaskState, EveryStateIsReachableFromAFreeSlot) {
  std::set<TaskState> reached = {kFree};
  for (bool grew = true; grew;) {
    grew = false;
    for (TaskState from : std::set<TaskState>(reached)) {
      for (TaskState to : AllStates()) {
        if (IsLegal(from, to)) grew = reached.insert(to).second || grew;
      }
    }
  }
  EXPECT_EQ(reached.size(), static_cast<size_t>(kTaskStateCount));
}

// An accepted task always has a way to complete, whatever happened to it. A live state is one in
// which the task owes a completion.
TEST(TaskState, EveryLiveStateMayFailAndMayBeCancelled) {
  for (TaskState state : AllStates()) {
    const bool live = state != TaskState::kFree && !IsTerminal(state);
    EXPECT_EQ(IsLegal(state, kFailed), live) << StateName(state);
    EXPECT_EQ(IsLegal(state, kCancelled), live) << StateName(state);
  }
}

TEST(TaskState, TheFastPathLaunchesWithoutAdmission) {
  static_assert(IsLegal(kSubmitted, kRunning));
  static_assert(!IsLegal(kWaiting, kRunning), "a task that waits was admitted: it is planned");
}

TEST(TaskState, ValuesOutsideTheEnumerationAreNeverLegal) {
  const auto bad = static_cast<TaskState>(kTaskStateCount);
  const auto worse = static_cast<TaskState>(255);
  for (TaskState state : AllStates()) {
    EXPECT_FALSE(IsLegal(state, bad));
    EXPECT_FALSE(IsLegal(bad, state));
    EXPECT_FALSE(IsLegal(worse, state));
    EXPECT_FALSE(IsLegal(state, worse));
  }
  EXPECT_EQ(StateName(worse), "unknown");
}

TEST(TaskState, WordsAreDistinctAndDescribeTheState) {
  std::set<std::string> names;
  for (TaskState state : AllStates()) {
    names.insert(std::string(StateName(state)));
    EXPECT_EQ(Describe(state).substr(0, StateName(state).size() + 2),
              std::string(StateName(state)) + ": ");
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kTaskStateCount));
  EXPECT_EQ(Describe(kRunning), "running: at least one launch is on the device");
}

}  // namespace
}  // namespace gpushare::core
