// What `gpushare explain` prints, and the words for events that its JSON shares.
//
// Pure.

#ifndef GPUSHARE_TOOLS_GPUSHARE_EVENTS_EXPLAIN_TEXT_H_
#define GPUSHARE_TOOLS_GPUSHARE_EVENTS_EXPLAIN_TEXT_H_

#include <string>

#include "tools/gpushare/events/explain.h"

namespace gpushare::tool {

std::string TextOf(const TicketStory& story);
std::string TextOf(const SlowestTickets& slowest);
std::string TextOf(const std::vector<AppGuarantee>& guarantees, int64_t window_ns);
std::string TextOf(const Explanation& explanation);

// What a reason means, as a clause after "because"; empty for a reason that has only a name.
std::string ReasonClauseOf(gpushare_reason reason);
// How a launch ended: "finished", "left because it was evicted", "failed", "was lost with the
// device".
std::string OutcomeText(int32_t outcome);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_EVENTS_EXPLAIN_TEXT_H_
