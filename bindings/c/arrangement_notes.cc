// Lines about arrangements; see arrangement_notes.h.

#include "bindings/c/arrangement_notes.h"

#include <cstdio>

#include "src/core/log/events.h"

namespace gpushare::abi {
namespace {

constexpr std::chrono::milliseconds kBetweenNotes{100};

}  // namespace

void ArrangementNotes::Print(const core::EventRecord& record) {
  const auto choice = core::Decode<core::Choice>(record);
  if (choice.kind != core::ChoiceKind::kLayout || choice.chosen == chosen_) return;
  const auto now = std::chrono::steady_clock::now();
  if (chosen_ >= 0 && now - printed_ < kBetweenNotes) {
    ++left_out_;
    return;
  }
  char more[80] = "";
  if (left_out_ > 0) {
    std::snprintf(more, sizeof(more), ", after %lld choices that are not shown",
                  static_cast<long long>(left_out_));
  }
  std::fprintf(stderr,
               "gpushare: info: arrangement: %lld of %d SMs for LC, a predicted BE throughput of "
               "%.3f%s.\n",
               static_cast<long long>(choice.chosen), sm_count_,
               1e-6 * static_cast<double>(choice.value), more);
  chosen_ = choice.chosen;
  left_out_ = 0;
  printed_ = now;
}

}  // namespace gpushare::abi
