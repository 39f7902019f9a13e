// `gpushare explain OUTPUT_FOLDER TICKET`: why a task waited, what ran beside it, and its predicted
// against its measured duration, from the event logs of a run. Without a ticket: the slowest ones,
// and what each app was promised and got (guarantees.h).
//
// Explain() finds the run and reads its log. StoryOf() and SlowestOf() are pure: events in, facts
// out. explain_text.h prints the facts; json_output.h writes them as JSON.

#ifndef GPUSHARE_TOOLS_GPUSHARE_EVENTS_EXPLAIN_H_
#define GPUSHARE_TOOLS_GPUSHARE_EVENTS_EXPLAIN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/gpushare/events/event_index.h"
#include "tools/gpushare/events/guarantees.h"

namespace gpushare::tool {

struct ExplainOptions {
  std::string folder;
  uint64_t ticket = 0;    // 0: list the slowest tickets instead
  std::string case_name;  // empty: any
  std::string policy;     // empty: any
};

// One thing that happened to a ticket. Fields that its type does not name are unset.
struct StoryStep {
  gpushare_event_type type = GPUSHARE_EVENT_NONE;
  int64_t at_ns = 0;                              // since the start of the run
  gpushare_reason reason = GPUSHARE_REASON_NONE;  // held, launched, evicted
  int32_t place = 0;              // launched, evicted: 0 the whole device, below 0 unknown
  int32_t detail = 0;             // launched: form; part done: outcome; completed: verdict
  int64_t value_ns = 0;           // held: what was compared with the limit
  int64_t limit_ns = 0;           // held: 0 without a limit
  int64_t plans = 0;              // held: so many plans in a row
  int64_t duration_ns = 0;        // admitted: predicted; part done: time on the device
  int64_t duration_error_ns = 0;  // admitted: give or take
  // Choice, whose kind is `detail`: what a plan chose, what was next best, and their values.
  std::string chosen;
  std::string runner_up;  // empty: there was none
  int64_t value = 0;
  int64_t runner_up_value = 0;
  // What both do to the latency of the LC app that they bring closest to its limit, and how far it
  // may move; below 0: unknown.
  int64_t shift_ns = -1;
  int64_t shift_limit_ns = -1;
  int64_t runner_up_shift_ns = -1;
  int64_t runner_up_shift_limit_ns = -1;
};

// `detail` of a CHOICE event (docs/abi.md).
inline constexpr int32_t kLayoutChoice = 1;
inline constexpr int32_t kCoScheduleChoice = 2;
inline constexpr int32_t kOverlapChoice = 3;

// Another app's work that was on the device together with the ticket.
struct Beside {
  std::string app;
  std::string kernel;  // empty: none
  int64_t shared_ns = 0;
};

struct TicketStory {
  uint64_t ticket = 0;
  std::string case_name;
  std::string policy;
  std::string app;
  std::string kernel;  // empty: none
  std::vector<StoryStep> steps;
  bool on_device = false;      // inside the traced window
  std::vector<Beside> beside;  // the longest first
  bool completed = false;      // inside the traced window; the fields below are then set
  // The ticket that the task waited for and that did not end with ok, 0: none. The task never ran.
  uint64_t failed_dependency = 0;
  // The verdict of failed_dependency; PENDING when it completed outside the traced window.
  gpushare_verdict dependency_verdict = GPUSHARE_VERDICT_PENDING;
  int64_t predicted_ns = 0;
  int64_t measured_ns = 0;
  int64_t latency_ns = 0;  // from arrival to completion, 0: unknown
};

struct SlowTicket {
  uint64_t ticket = 0;
  int64_t latency_ns = 0;
  std::string app;
};

struct SlowestTickets {
  std::string case_name;
  std::string policy;
  std::vector<SlowTicket> tickets;  // the slowest first
};

// What one call explains: a ticket, or without one the slowest tickets and what each app was
// promised and got.
struct Explanation {
  std::optional<TicketStory> story;
  SlowestTickets slowest;
  std::vector<AppGuarantee> guarantees;
  int64_t window_ns = 0;
};

// Throws InputError if no log of the folder has the ticket.
Explanation Explain(const ExplainOptions& options);

// The story of one ticket from one log; nothing if the log does not have it.
std::optional<TicketStory> StoryOf(const EventIndexEntry& run,
                                   const std::vector<gpushare_event>& events, uint64_t ticket);

// The LC tickets of the log with the longest time from arrival to completion.
SlowestTickets SlowestOf(const EventIndexEntry& run, const std::vector<gpushare_event>& events,
                         size_t count);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_EVENTS_EXPLAIN_H_
