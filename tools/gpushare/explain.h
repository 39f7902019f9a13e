// `gpushare explain OUTPUT_FOLDER TICKET`: why a task waited, what ran beside it, and its predicted
// against its measured duration, from the event logs of a run.

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

// The text of the explanation. Throws InputError if no log of the folder has the ticket.
std::string Explain(const ExplainOptions& options);

// The explanation of one ticket from one log; empty if the log does not have it. Pure.
std::string ExplainTicket(const EventIndexEntry& run, const std::vector<gpushare_event>& events,
                          uint64_t ticket);

// The LC tickets of the log with the longest time from arrival to completion, one a line.
std::string ListSlowest(const EventIndexEntry& run, const std::vector<gpushare_event>& events,
                        size_t count);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_EXPLAIN_H_
