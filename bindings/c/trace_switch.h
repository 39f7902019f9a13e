// The scheduler's event sink: forwards to a log while a trace runs, and choices to who announces
// them. Without either it costs two loads.
//
// Invariant: when Stop returns, no thread appends to the log. Threads: Append from any;
// Start and Stop under the runtime's mutex.

#ifndef GPUSHARE_BINDINGS_C_TRACE_SWITCH_H_
#define GPUSHARE_BINDINGS_C_TRACE_SWITCH_H_

#include <atomic>
#include <memory>
#include <utility>

#include "bindings/c/arrangement_notes.h"
#include "src/core/log/event_log.h"

namespace gpushare::abi {

class TraceSwitch final : public core::EventSink {
 public:
  void Append(const core::EventRecord& record) override {
    if (notes_ != nullptr) notes_->Note(record);
    if (log_.load(std::memory_order_relaxed) == nullptr) return;
    appenders_.fetch_add(1);
    if (core::EventLog* const log = log_.load()) log->Append(record);
    appenders_.fetch_sub(1, std::memory_order_release);
  }

  // Before the scheduler's first event.
  void Announce(ArrangementNotes* notes) { notes_ = notes; }

  bool running() const { return owner_ != nullptr; }

  void Start(std::unique_ptr<core::EventLog> log) {
    owner_ = std::move(log);
    log_.store(owner_.get());
  }

  std::unique_ptr<core::EventLog> Stop() {
    log_.store(nullptr);
    // An append is a few stores, so that this waits for at most one append of each thread.
    while (appenders_.load(std::memory_order_acquire) != 0) {
    }
    return std::move(owner_);
  }

 private:
  std::unique_ptr<core::EventLog> owner_;
  std::atomic<core::EventLog*> log_{nullptr};
  std::atomic<int> appenders_{0};
  ArrangementNotes* notes_ = nullptr;
};

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_TRACE_SWITCH_H_
