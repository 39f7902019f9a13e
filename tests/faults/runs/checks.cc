#include "tests/faults/runs/checks.h"

namespace gpushare::fault_runs {
namespace {

// What a shutdown may take beyond its deadline, in virtual time: it gives up what is left at once.
constexpr int64_t kShutdownLateNsMax = 0;

std::string Name(const Entry& entry) { return "task " + std::to_string(entry.number); }

bool EndedOk(const Entry& entry) { return entry.record.verdict == GPUSHARE_VERDICT_OK; }

void CheckOnce(const Entry& entry, Ledger& ledger) {
  const int expected = entry.accepted ? 1 : 0;
  if (entry.callbacks != expected) {
    ledger.Problem("The callback of " + Name(entry) + " ran " + std::to_string(entry.callbacks) +
                   " times, and it must run " + std::to_string(expected) + " times.");
  }
  if (entry.callbacks > 0 && entry.record.verdict == GPUSHARE_VERDICT_PENDING) {
    ledger.Problem("The record of " + Name(entry) + " has no verdict.");
  }
}

// OK means all block tasks; no verdict means more.
void CheckBlockTasks(const Entry& entry, Ledger& ledger) {
  if (entry.block_tasks == 0 || entry.callbacks == 0) return;
  const int64_t done = entry.record.block_tasks;
  if (done > entry.block_tasks || (EndedOk(entry) && done != entry.block_tasks)) {
    ledger.Problem("The record of " + Name(entry) + " says " + std::to_string(done) + " of " +
                   std::to_string(entry.block_tasks) + " block tasks, and the verdict is " +
                   gpushare_verdict_name(entry.record.verdict) + ".");
  }
}

void CheckWaits(const Entry& entry, Ledger& ledger) {
  if (!EndedOk(entry)) return;
  for (const Entry* wait : entry.waits) {
    if (EndedOk(*wait)) continue;
    ledger.Problem(Name(entry) + " is OK, and it waited for " + Name(*wait) + ", which ended " +
                   gpushare_verdict_name(wait->record.verdict) + ".");
  }
}

// A held ticket agrees with the callback, and is stale after its release.
void CheckTicket(Session& session, Entry& entry) {
  gpushare_runtime* const runtime = session.runtime();
  gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
  if (session.Call("gpushare_ticket_record", gpushare_ticket_record(runtime, entry.ticket, &record),
                   {}) &&
      record.verdict != entry.record.verdict) {
    session.ledger().Problem("The ticket of " + Name(entry) + " says " +
                             gpushare_verdict_name(record.verdict) + ", and its callback " +
                             gpushare_verdict_name(entry.record.verdict) + ".");
  }
  session.Call("gpushare_ticket_release", gpushare_ticket_release(runtime, entry.ticket), {});
  if (gpushare_ticket_release(runtime, entry.ticket) != GPUSHARE_INVALID_ARGUMENT) {
    session.ledger().Problem("The ticket of " + Name(entry) + " was released twice.");
  }
}

void CheckStats(Session& session) {
  Ledger& ledger = session.ledger();
  gpushare_runtime_stats runtime = GPUSHARE_RUNTIME_STATS_INIT;
  session.Call("gpushare_runtime_stats_get",
               gpushare_runtime_stats_get(session.runtime(), &runtime), {});
  if (runtime.tasks_pending != 0) {
    ledger.Problem(std::to_string(runtime.tasks_pending) + " tasks are pending after shutdown.");
  }
  for (gpushare_app* app : session.apps()) {
    gpushare_app_stats stats = GPUSHARE_APP_STATS_INIT;
    session.Call("gpushare_app_stats_get", gpushare_app_stats_get(app, &stats), {});
    const int64_t ended = stats.completed + stats.failed + stats.dropped + stats.cancelled;
    if (stats.submitted != ended || stats.queue_depth != 0) {
      ledger.Problem("App " + std::to_string(gpushare_app_id(app)) + " has " +
                     std::to_string(stats.submitted) + " tasks submitted, " +
                     std::to_string(ended) + " ended and " + std::to_string(stats.queue_depth) +
                     " queued.");
    }
  }
}

}  // namespace

void CheckAll(Session& session) {
  Ledger& ledger = session.ledger();
  for (const auto& entry : ledger.entries) {
    CheckOnce(*entry, ledger);
    CheckBlockTasks(*entry, ledger);
    CheckWaits(*entry, ledger);
  }
  for (Entry* entry : ledger.held) CheckTicket(session, *entry);
  CheckStats(session);
  if (ledger.shutdown_late_ns > kShutdownLateNsMax) {
    ledger.Problem("The shutdown ended " + std::to_string(ledger.shutdown_late_ns) +
                   " ns after its deadline, and the limit is " +
                   std::to_string(kShutdownLateNsMax) + " ns.");
  }
}

}  // namespace gpushare::fault_runs
