#include "tests/faults/runs/submits.h"

#include <array>

namespace gpushare::fault_runs {
namespace {

constexpr int kEntriesMax = 2000;  // callbacks submit, too
constexpr int kHeldMax = 40;
constexpr int kWaitsMax = 3;

void EnqueueNothing(void* /*stream*/, void* /*user*/) {}

void OnComplete(void* user, const gpushare_completion_record* record) {
  Entry& entry = *static_cast<Entry*>(user);
  ++entry.callbacks;
  entry.record = *record;
  Session& session = *entry.session;
  session.Say("task " + std::to_string(entry.number) + " ends " +
              gpushare_verdict_name(record->verdict));
  if (session.stopping() || !session.random().Chance(0.1)) return;
  SubmitRandom(session, session.AnySource(), gpushare_query{0});
}

void FillCopy(Random& random, int64_t bytes_max, gpushare_task_options& options) {
  options.kind = GPUSHARE_TASK_MEMCPY;
  options.copy_direction = static_cast<gpushare_copy_direction>(1 + random.Below(3));
  options.copy_size_bytes = 1 + random.Below(bytes_max);
  if (options.copy_direction != GPUSHARE_COPY_PEER) options.copy_pageable = random.Chance(0.3);
}

void FillOpaque(Random& random, gpushare_task_options& options) {
  options.kind = GPUSHARE_TASK_OPAQUE;
  options.enqueue = &EnqueueNothing;
  options.declared_ns = 1 + random.Below(100 * kUs);
}

void FillWork(Session& session, bool lc, Entry& entry, gpushare_task_options& options) {
  Random& random = session.random();
  const int64_t pick = random.Below(10);
  if (pick == 9) {
    FillOpaque(random, options);
  } else if (pick >= 7) {
    FillCopy(random, lc ? 5'000'000 : 50'000'000, options);
  } else if (lc) {
    options.kernel = session.AnyLcKernel();
  } else {
    options.kernel = session.AnyBeKernel();
    options.block_tasks = entry.block_tasks = 1 + random.Below(60'000);
  }
}

using WaitTickets = std::array<gpushare_ticket, kWaitsMax>;

void FillWaits(Session& session, Entry& entry, WaitTickets& tickets,
               gpushare_task_options& options) {
  const std::vector<Entry*>& held = session.ledger().held;
  if (held.empty() || !session.random().Chance(0.25)) return;
  const int64_t count = 1 + session.random().Below(kWaitsMax);
  for (int64_t i = 0; i < count; ++i) {
    const Entry* const other = held[session.random().Below(std::ssize(held))];
    entry.waits.push_back(other);
    tickets[i] = other->ticket;
  }
  options.wait_tickets = tickets.data();
  options.wait_ticket_count = static_cast<uint32_t>(count);
}

std::string Describe(const Entry& entry, const gpushare_task_options& options, bool lc) {
  std::string text = "task " + std::to_string(entry.number) + (lc ? ": LC " : ": BE ") +
                     gpushare_task_kind_name(options.kind);
  if (entry.block_tasks > 0) text += ", " + std::to_string(entry.block_tasks) + " block tasks";
  for (const Entry* wait : entry.waits) text += ", waits for " + std::to_string(wait->number);
  return text;
}

}  // namespace

void SubmitRandom(Session& session, const Source& source, gpushare_query query) {
  Ledger& ledger = session.ledger();
  if (std::ssize(ledger.entries) >= kEntriesMax) return;
  Entry& entry = ledger.Add(&session);
  gpushare_task_options options = GPUSHARE_TASK_OPTIONS_INIT;
  FillWork(session, source.lc, entry, options);
  WaitTickets waits = {};
  FillWaits(session, entry, waits, options);
  if (source.lc) options.query = query;
  options.callback = &OnComplete;
  options.callback_user = &entry;
  entry.held = std::ssize(ledger.held) < kHeldMax && session.random().Chance(0.4);
  options.detached = entry.held ? 0 : 1;
  session.Say(Describe(entry, options, source.lc));
  gpushare_ticket* const out = entry.held ? &entry.ticket : nullptr;
  const gpushare_status status = source.lc ? gpushare_submit_lc(source.queue, &options, out)
                                           : gpushare_submit_be(source.queue, &options, out);
  entry.accepted = session.Call("a submit", status,
                                {GPUSHARE_RESOURCE_EXHAUSTED, GPUSHARE_UNAVAILABLE,
                                 GPUSHARE_FAILED_PRECONDITION});  // nothing bounds it
  if (!entry.accepted) {
    ++ledger.refused;
  } else if (entry.held) {
    ledger.held.push_back(&entry);
  }
}

}  // namespace gpushare::fault_runs
