// What GPUSHARE_LOG=info says on stderr of arrangements: each that adaptive chooses.
//
// Where in the flow: behind launch, as the scheduler logs a choice. A log callback gets none of it,
// because the scheduler's lock is held. For the same reason a line that stderr does not take at
// once (a full pipe, a stopped terminal) counts as one that is not shown. Threads: the scheduler's
// alone.

#ifndef GPUSHARE_BINDINGS_C_ARRANGEMENT_NOTES_H_
#define GPUSHARE_BINDINGS_C_ARRANGEMENT_NOTES_H_

#include <chrono>
#include <cstdint>

#include "src/core/seams/event_sink.h"

namespace gpushare::abi {

class ArrangementNotes {
 public:
  explicit ArrangementNotes(int sm_count) : sm_count_(sm_count) {}

  // Prints a choice of SMs that differs from the last one, at most ten a second. Allocates nothing
  // and never waits for stderr.
  void Note(const core::EventRecord& record) {
    if (record.type == static_cast<uint8_t>(core::EventType::kChoice)) Print(record);
  }

 private:
  void Print(const core::EventRecord& record);

  int sm_count_;
  int64_t chosen_ = -1;
  int64_t left_out_ = 0;                         // choices since the last line
  std::chrono::steady_clock::time_point tried_;  // the last line, also one that was not shown
};

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_ARRANGEMENT_NOTES_H_
