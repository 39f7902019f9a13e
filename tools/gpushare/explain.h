// `gpushare explain OUTPUT_FOLDER TICKET`: why a task waited, beside whom it ran, and what was
// predicted against what was measured, from the event logs of a run.

#ifndef GPUSHARE_TOOLS_GPUSHARE_EXPLAIN_H_
#define GPUSHARE_TOOLS_GPUSHARE_EXPLAIN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/gpushare/event_index.h"

namespace gpushare::tool {

struct ExplainOptions {
  std::string folder;
  uint64_t ticket = 0;    // 0: list the slowest tickets instead
  std::string case_name;  // empty: any
  std::string policy;     // empty: any
};

// The text of the explanation. Throws InputError when no log of the folder has the ticket.
std::string Explain(const ExplainOptions& options);

// The story of one ticket in one log; pure, for tests.
std::string ExplainTicket(const EventIndexEntry& run, const std::vector<gpushare_event>& events,
                          uint64_t ticket);

// LC tickets of the log that took longest from arrival to completion, one a line.
std::string ListSlowest(const EventIndexEntry& run, const std::vector<gpushare_event>& events,
                        size_t count);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_EXPLAIN_H_
