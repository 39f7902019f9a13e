// Lines about arrangements; see arrangement_notes.h.

#include "bindings/c/arrangement_notes.h"

#include <poll.h>
#include <unistd.h>

#include <cstdio>

#include "src/core/log/events.h"

namespace gpushare::abi {
namespace {

constexpr std::chrono::milliseconds kBetweenNotes{100};

// Past stdio, whose lock another thread may hold while it waits. Whether the line was written.
bool WriteIfStderrTakesIt(const char* line, int size) {
  pollfd output = {STDERR_FILENO, POLLOUT, 0};
  if (poll(&output, 1, 0) != 1 || output.revents != POLLOUT) return false;
  return write(STDERR_FILENO, line, static_cast<size_t>(size)) == size;
}

}  // namespace

void ArrangementNotes::Print(const core::EventRecord& record) {
  const auto choice = core::Decode<core::Choice>(record);
  if (choice.kind != core::ChoiceKind::kLayout || choice.chosen == chosen_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - tried_ < kBetweenNotes) {
    ++left_out_;
    return;
  }
  tried_ = now;
  char more[80] = "";
  if (left_out_ > 0) {
    std::snprintf(more, sizeof(more), ", after %lld choices that are not shown",
                  static_cast<long long>(left_out_));
  }
  char line[320];  // longer than the text with the longest numbers
  const int size = std::snprintf(
      line, sizeof(line),
      "gpushare: info: arrangement: %lld of %d SMs for LC, a predicted BE throughput of %.3f%s.\n",
      static_cast<long long>(choice.chosen), sm_count_, 1e-6 * static_cast<double>(choice.value),
      more);
  if (!WriteIfStderrTakesIt(line, size)) {
    ++left_out_;
    return;
  }
  chosen_ = choice.chosen;
  left_out_ = 0;
}

}  // namespace gpushare::abi
