#include "tests/faults/runs/actions.h"

#include <iterator>

#include "tests/faults/runs/submits.h"

namespace gpushare::fault_runs {
namespace {

void Submit(Session& session) { SubmitRandom(session, session.AnySource(), gpushare_query{0}); }

void PollUntil(Session& session) {
  const int64_t until_ns = session.NowNs() + session.random().Below(3 * kMs);
  session.Call("gpushare_poll_until", gpushare_poll_until(session.runtime(), until_ns), {});
}

void Poll(Session& session) {
  session.Call("gpushare_poll", gpushare_poll(session.runtime(), nullptr), {});
}

// A held ticket; null: there is none.
Entry* AnyHeld(Session& session) {
  const std::vector<Entry*>& held = session.ledger().held;
  return held.empty() ? nullptr : held[session.random().Below(std::ssize(held))];
}

void Wait(Session& session) {
  const Entry* const entry = AnyHeld(session);
  if (entry == nullptr) return;
  const int64_t deadline_ns = session.NowNs() + session.random().Below(2 * kMs);
  session.Call("gpushare_ticket_wait",
               gpushare_ticket_wait(session.runtime(), entry->ticket, deadline_ns),
               {GPUSHARE_DEADLINE_EXCEEDED});
}

void Cancel(Session& session) {
  const Entry* const entry = AnyHeld(session);
  if (entry == nullptr) return;
  session.Say("cancel task " + std::to_string(entry->number));
  session.Call("gpushare_ticket_cancel", gpushare_ticket_cancel(session.runtime(), entry->ticket),
               {GPUSHARE_FAILED_PRECONDITION});
}

// Early, often: before the task is complete, while others wait for it.
void ReleaseTicket(Session& session) {
  Entry* const entry = AnyHeld(session);
  if (entry == nullptr) return;
  session.Say("release the ticket of task " + std::to_string(entry->number));
  session.Call("gpushare_ticket_release", gpushare_ticket_release(session.runtime(), entry->ticket),
               {});
  entry->held = false;
  std::erase(session.ledger().held, entry);
}

void RunQuery(Session& session) {
  const Source& source = session.AnySource();
  if (!source.lc) return;
  gpushare_query query = {0};
  const gpushare_status status = gpushare_query_begin(source.queue, 0, &query);
  if (!session.Call("gpushare_query_begin", status,
                    {GPUSHARE_RESOURCE_EXHAUSTED, GPUSHARE_UNAVAILABLE})) {
    return;
  }
  for (int64_t tasks = session.random().Below(5); tasks > 0; --tasks) {
    SubmitRandom(session, source, query);
    if (session.random().Chance(0.3)) PollUntil(session);
  }
  session.Call("gpushare_query_end", gpushare_query_end(session.runtime(), query), {});
}

// Has no callback; its ticket says when it is complete.
void RunRegion(Session& session) {
  gpushare_region_options options = GPUSHARE_REGION_OPTIONS_INIT;
  options.bound_ns = 1 + session.random().Below(100 * kUs);
  gpushare_ticket ticket = {0};
  void* stream = nullptr;
  const gpushare_status status =
      gpushare_region_begin(session.AnySource().queue, &options, &ticket, &stream);
  if (!session.Call(
          "gpushare_region_begin", status,
          {GPUSHARE_UNAVAILABLE, GPUSHARE_RESOURCE_EXHAUSTED, GPUSHARE_FAILED_PRECONDITION})) {
    return;
  }
  if (session.random().Chance(0.5)) PollUntil(session);
  session.Call("gpushare_region_end", gpushare_region_end(session.runtime(), ticket), {});
  session.Call("gpushare_ticket_release", gpushare_ticket_release(session.runtime(), ticket), {});
}

void Reserve(Session& session) {
  gpushare_reservation_options options = GPUSHARE_RESERVATION_OPTIONS_INIT;
  options.capsms = static_cast<int32_t>(session.random().Below(140));
  options.packed = session.random().Chance(0.5);
  gpushare_app* const app = session.apps()[session.random().Below(std::ssize(session.apps()))];
  session.Call(
      "gpushare_reserve_capsm", gpushare_reserve_capsm(app, &options),
      {GPUSHARE_INVALID_ARGUMENT, GPUSHARE_RESOURCE_EXHAUSTED, GPUSHARE_FAILED_PRECONDITION});
}

// In time or not: what hangs keeps the device busy.
void Quiesce(Session& session) {
  session.Call("gpushare_runtime_quiesce",
               gpushare_runtime_quiesce(session.runtime(), session.NowNs() + 40 * kMs),
               {GPUSHARE_DEADLINE_EXCEEDED});
  session.Call("gpushare_runtime_resume", gpushare_runtime_resume(session.runtime()), {});
}

void ChangePolicy(Session& session) {
  static constexpr const char* kNames[] = {"adaptive", "smguard", "baymax", "priority", "fifo"};
  const char* const name = kNames[session.random().Below(std::ssize(kNames))];
  session.Say(std::string("policy ") + name);
  session.Call("gpushare_set_policy", gpushare_set_policy(session.runtime(), name),
               {GPUSHARE_FAILED_PRECONDITION});  // a reservation that it would not keep
}

struct Action {
  int share;  // of 100
  void (*act)(Session&);
};
constexpr Action kActions[] = {
    {52, &Submit}, {16, &PollUntil},    {6, &Poll},         {5, &Wait},
    {5, &Cancel},  {5, &ReleaseTicket}, {4, &RunQuery},     {3, &RunRegion},
    {2, &Reserve}, {1, &Quiesce},       {1, &ChangePolicy},
};

}  // namespace

void Act(Session& session) {
  int64_t pick = session.random().Below(100);
  for (const Action& action : kActions) {
    if (pick < action.share) return action.act(session);
    pick -= action.share;
  }
}

}  // namespace gpushare::fault_runs
