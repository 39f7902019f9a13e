// One submitted task of a soak and its checks: it completes exactly once by ticket, callback and
// counter, and its answer is right. Threads: its actor's; the receipt is filled by the library's.

#ifndef GPUSHARE_BENCHMARKS_SOAK_SOAK_FLIGHT_H_
#define GPUSHARE_BENCHMARKS_SOAK_SOAK_FLIGHT_H_

#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <gpushare/gpushare.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/soak/soak_ledger.h"
#include "benchmarks/soak/soak_work.h"

namespace gpushare::soak {

// A task that is not complete after so long is lost.
inline constexpr int64_t kPatienceNs = 60 * kSecondNs;

// Filled by the callback of a task, on a thread of the library.
struct Receipt {
  std::atomic<int64_t> count{0};  // of all jobs
  gpushare_completion_record record = {};
  Shared* shared = nullptr;

  static void Complete(void* user, const gpushare_completion_record* record) noexcept {
    auto& receipt = *static_cast<Receipt*>(user);
    Shared& shared = *receipt.shared;
    receipt.record = *record;
    shared.ledger.callbacks.fetch_add(1);
    if (shared.Breaks(Break::kCallback)) return;
    receipt.count.fetch_add(shared.Breaks(Break::kTwice) ? 2 : 1);
  }
};

enum class Notice : uint8_t { kTicket, kCallback, kDetached, kEventFd };

// A task with its buffers, and its submit while it has one.
class Flight {
 public:
  Flight(Shared& shared, std::unique_ptr<Task> task) : shared_(shared), task_(std::move(task)) {
    receipt_.shared = &shared;
  }
  ~Flight() { CloseFd(); }
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  bool active() const { return active_; }
  const Ticket& ticket() const { return ticket_; }
  gpushare_verdict verdict() const { return verdict_; }
  // Before a job, in which it may not be submitted.
  void Reset() { verdict_ = GPUSHARE_VERDICT_PENDING; }

  // False when it was refused, or went wrong.
  bool Submit(const Queue& queue, bool lc, Random& random, gpushare_query query,
              const Flight* wait_for) {
    TaskOptions options;
    if (const std::string error = task_->Fill(options); !error.empty()) {
      shared_.ledger.Fail(error);
      return false;
    }
    options.query = query;
    awaited_ = wait_for;
    awaited_ticket_ = wait_for == nullptr ? gpushare_ticket{0} : wait_for->ticket_.get();
    options.wait_tickets = &awaited_ticket_;
    options.wait_ticket_count = wait_for == nullptr ? 0 : 1;
    notice_ = ChooseNotice(random);
    const bool calls_back = notice_ == Notice::kCallback || notice_ == Notice::kDetached;
    if (calls_back) {
      options.callback = &Receipt::Complete;
      options.callback_user = &receipt_;
      ++receipts_expected_;
    }
    options.detached = notice_ == Notice::kDetached ? 1 : 0;
    auto ticket = lc ? queue.SubmitLc(options) : queue.SubmitBe(options);
    if (!ticket.ok()) {
      if (calls_back) --receipts_expected_;
      if (ticket.status().code() == GPUSHARE_RESOURCE_EXHAUSTED) ++shared_.ledger.refused;
      shared_.ledger.Expect(ticket.status(), "A submit",
                            {GPUSHARE_RESOURCE_EXHAUSTED, GPUSHARE_FAILED_PRECONDITION});
      return false;
    }
    ticket_ = std::move(*ticket);
    submitted_ticket_ = ticket_.get().value;
    ++shared_.ledger.accepted;
    if (calls_back) ++shared_.ledger.callbacks_expected;
    if (notice_ == Notice::kEventFd) OpenFd();
    active_ = true;
    cancel_accepted_ = false;
    complete_ns_ = 0;
    submitted_ns_ = shared_.runtime.NowNs();
    return true;
  }

  bool has_ticket() const { return active_ && notice_ != Notice::kDetached; }

  void Cancel() {
    if (!has_ticket()) return;
    ++shared_.ledger.cancels;
    const Status status = ticket_.Cancel();
    cancel_accepted_ |= status.ok();
    shared_.ledger.Expect(status, "gpushare_ticket_cancel", {GPUSHARE_FAILED_PRECONDITION});
  }

  void Wait(int64_t deadline_ns) {
    if (!has_ticket()) return;
    const Status status = ticket_.Wait(deadline_ns);
    if (status.code() == GPUSHARE_DEADLINE_EXCEEDED) ++shared_.ledger.waits_timed_out;
    shared_.ledger.Expect(status, "gpushare_ticket_wait", {GPUSHARE_DEADLINE_EXCEEDED});
  }

  // Whether it is done, and then its verdict is known.
  bool Reap(int64_t now_ns) {
    if (!active_) return true;
    if (!IsComplete()) {
      if (now_ns - submitted_ns_ < kPatienceNs) return false;
      shared_.ledger.Fail("A task is not complete after " +
                          std::to_string(kPatienceNs / kSecondNs) + " s.");
      shared_.ledger.Stop();
      active_ = false;
      return true;
    }
    if (complete_ns_ == 0) complete_ns_ = now_ns;
    if (!WasTold() && now_ns - complete_ns_ < kLateNs) return false;
    CheckReceipt();
    Finish();
    return true;
  }

  std::string Check() {
    if (verdict_ != GPUSHARE_VERDICT_OK) return {};
    if (shared_.Breaks(Break::kAnswer)) task_->Spoil();
    ++shared_.ledger.answers_checked;
    return task_->Check(record_);
  }

 private:
  static Notice ChooseNotice(Random& random) {
    const double p = random.Between(0, 1);
    if (p < 0.4) return Notice::kTicket;
    if (p < 0.75) return Notice::kCallback;
    if (p < 0.9) return Notice::kDetached;
    return Notice::kEventFd;
  }

  bool IsComplete() {
    if (notice_ == Notice::kDetached) return receipt_.count.load() >= receipts_expected_;
    auto complete = ticket_.IsComplete();
    return shared_.ledger.Expect(complete.status(), "gpushare_ticket_poll") && *complete;
  }

  void OpenFd() {
    auto fd = ticket_.EventFd();
    if (shared_.ledger.Expect(fd.status(), "gpushare_ticket_eventfd")) fd_ = *fd;
  }
  void CloseFd() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

  // A callback or an eventfd may come a little later than its ticket.
  bool WasTold() {
    if (fd_ >= 0) {
      pollfd readable = {fd_, POLLIN, 0};
      return ::poll(&readable, 1, 0) == 1;
    }
    return receipt_.count.load() >= receipts_expected_;
  }

  void CheckReceipt() {
    const int64_t count = receipt_.count.load();
    if (count != receipts_expected_) {
      shared_.ledger.Fail("A task with a callback was told " +
                          std::to_string(count - receipts_expected_ + 1) +
                          " times that it is complete, not once.");
      receipts_expected_ = count;
    }
    if (fd_ >= 0 && !WasTold()) {
      shared_.ledger.Fail("The eventfd of a complete task does not become readable.");
    }
    CloseFd();
  }

  void Finish() {
    if (notice_ == Notice::kDetached) {
      record_ = receipt_.record;
    } else {
      auto record = ticket_.Record();
      if (shared_.ledger.Expect(record.status(), "gpushare_ticket_record")) record_ = *record;
      if (notice_ == Notice::kCallback && receipt_.record.verdict != record_.verdict) {
        shared_.ledger.Fail("A callback and its ticket differ about a verdict.");
      }
    }
    ticket_ = Ticket();
    active_ = false;
    verdict_ = record_.verdict;
    if (verdict_ == GPUSHARE_VERDICT_OK) ++shared_.ledger.ok;
    if (verdict_ == GPUSHARE_VERDICT_CANCELLED) ++shared_.ledger.cancelled;
    if (verdict_ != GPUSHARE_VERDICT_OK) {
      unwell_[unwell_count_++ % unwell_.size()] = submitted_ticket_;
    }
    CheckVerdict();
  }

  // A ticket that does not end well fails those that wait for it.
  bool AwaitedUnwell() const {
    if (awaited_ == nullptr) return false;
    const auto& unwell = awaited_->unwell_;
    return std::find(unwell.begin(), unwell.end(), awaited_ticket_.value) != unwell.end();
  }

  void CheckVerdict() {
    Ledger& ledger = shared_.ledger;
    if (cancel_accepted_) {
      if (verdict_ == GPUSHARE_VERDICT_CANCELLED) return;
      // All done before the cancellation took effect: then its answer is checked too.
      if (verdict_ == GPUSHARE_VERDICT_OK) {
        ++ledger.cancels_overtaken;
        return;
      }
    } else if (AwaitedUnwell()) {
      const bool named = record_.failed_dependency.value == awaited_ticket_.value;
      if (verdict_ == GPUSHARE_VERDICT_FAILED && named) {
        ++ledger.failed_waiting;
        return;
      }
    } else if (verdict_ == GPUSHARE_VERDICT_OK) {
      return;
    }
    ledger.Fail(std::string("A task that was ") +
                (cancel_accepted_ ? "cancelled" : "not cancelled") +
                (AwaitedUnwell() ? " and waited for one that did not end well" : "") +
                " ends with the verdict '" + gpushare_verdict_name(verdict_) + "' and the code " +
                std::to_string(record_.error_code) + ".");
  }

  Shared& shared_;
  std::unique_ptr<Task> task_;
  Receipt receipt_;
  int64_t receipts_expected_ = 0;
  Notice notice_ = Notice::kTicket;
  Ticket ticket_;
  int fd_ = -1;
  bool active_ = false;
  bool cancel_accepted_ = false;
  int64_t submitted_ns_ = 0;
  int64_t complete_ns_ = 0;  // seen first
  uint64_t submitted_ticket_ = 0;
  const Flight* awaited_ = nullptr;
  gpushare_ticket awaited_ticket_ = {0};
  // The last tickets that did not end well.
  std::array<uint64_t, 8> unwell_ = {};
  size_t unwell_count_ = 0;
  gpushare_verdict verdict_ = GPUSHARE_VERDICT_PENDING;
  gpushare_completion_record record_ = {};
};

}  // namespace gpushare::soak

#endif  // GPUSHARE_BENCHMARKS_SOAK_SOAK_FLIGHT_H_
