// Words for the states of a task (task_state.h holds the table and its rules).

#include "src/core/state/task_state.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace gpushare::core {
namespace {

using task_state_internal::kStates;

bool IsKnown(TaskState state) { return static_cast<size_t>(state) < kStates.size(); }

constexpr bool RowsAreInOrder() {
  for (size_t i = 0; i < kStates.size(); ++i) {
    if (static_cast<size_t>(kStates[i].state) != i) return false;
  }
  return true;
}
static_assert(RowsAreInOrder(), "IsLegal indexes the table by state");
static_assert(static_cast<int>(TaskState::kTimedOut) + 1 == kTaskStateCount,
              "a new state needs a row");

// "name: meaning" of every state, made once, so that Describe can hand out views.
const std::array<std::string, kTaskStateCount>& Descriptions() {
  static const auto* const descriptions = [] {
    auto* made = new std::array<std::string, kTaskStateCount>();
    for (size_t i = 0; i < kStates.size(); ++i) {
      (*made)[i] = absl::StrCat(kStates[i].name, ": ", kStates[i].meaning);
    }
    return made;
  }();
  return *descriptions;
}

}  // namespace

absl::string_view StateName(TaskState state) {
  return IsKnown(state) ? kStates[static_cast<size_t>(state)].name : "unknown";
}

absl::string_view Describe(TaskState state) {
  if (!IsKnown(state)) return "unknown: not a state of a task";
  return Descriptions()[static_cast<size_t>(state)];
}

}  // namespace gpushare::core
