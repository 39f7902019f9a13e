// The verb "wait". See waits.h.

#include "src/core/flow/verbs/waits.h"

#include "absl/strings/str_cat.h"

namespace gpushare::core {

WaitHolds::~WaitHolds() {
  for (const TicketId ticket : held_) tables_.DropWaiter(ticket);
}

absl::Status WaitHolds::Take(absl::Span<const TicketId> tickets) {
  for (const TicketId ticket : tickets) {
    if (!tables_.HoldForWaiter(ticket)) {
      return absl::InvalidArgumentError(absl::StrCat("The task waits for ticket ", ticket.value,
                                                     ", which does not exist or is released."));
    }
    held_.Add(ticket);
  }
  return absl::OkStatus();
}

namespace {

void Settle(Wait& wait, const CompletionRecord& record) {
  wait.on = nullptr;
  wait.verdict = record.verdict;
  wait.error_code = record.error_code;
}

void Link(Wait& wait, Task& on) {
  wait.on = &on;
  wait.previous = nullptr;
  wait.next = on.awaited_by;
  if (wait.next != nullptr) wait.next->previous = &wait;
  on.awaited_by = &wait;
}

void Unlink(Wait& wait) {
  if (wait.on == nullptr) return;
  (wait.previous == nullptr ? wait.on->awaited_by : wait.previous->next) = wait.next;
  if (wait.next != nullptr) wait.next->previous = wait.previous;
  wait.on = nullptr;
}

}  // namespace

void LinkWaits(Flow& flow, Task& task) {
  for (int i = 0; i < task.wait_tickets.size(); ++i) {
    Wait& wait = task.waits[static_cast<size_t>(i)];
    Task& on = *flow.tables.FindTask(task.wait_tickets[i]);  // the hold keeps it
    if (on.complete.load(std::memory_order_acquire)) {
      Settle(wait, on.record);
    } else {
      Link(wait, on);
    }
    flow.tables.DropWaiter(task.wait_tickets[i]);
  }
  task.progress.waits_linked = true;
}

void SettleWaits(Task& task) {
  while (task.awaited_by != nullptr) {
    Wait& wait = *task.awaited_by;
    task.awaited_by = wait.next;
    Settle(wait, task.record);
  }
}

void DropWaits(Flow& flow, Task& task) {
  for (int i = 0; i < task.wait_tickets.size(); ++i) {
    if (task.progress.waits_linked) {
      Unlink(task.waits[static_cast<size_t>(i)]);
    } else {
      flow.tables.DropWaiter(task.wait_tickets[i]);
    }
  }
  task.wait_tickets.Clear();
}

}  // namespace gpushare::core
