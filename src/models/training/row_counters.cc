// Counters from rows; see row_counters.h.

#include "src/models/training/row_counters.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "src/models/profile/profile_limits.h"

namespace gpushare::models {
namespace {

using core::KernelCounters;

struct Share {
  const char* name;
  double KernelCounters::*member;
};
constexpr Share kShares[] = {
    {"issue", &KernelCounters::issue},     {"fma", &KernelCounters::fma},
    {"alu", &KernelCounters::alu},         {"tensor", &KernelCounters::tensor},
    {"special", &KernelCounters::special}, {"lsu", &KernelCounters::lsu},
    {"shared", &KernelCounters::shared},   {"l1", &KernelCounters::l1},
    {"l2", &KernelCounters::l2},           {"dram", &KernelCounters::dram},
};
// 0: it was not counted.
double ValueOf(const SampleRow& row, absl::string_view name) {
  for (const CounterValue& counter : row.counters) {
    if (counter.name == name) return counter.value;
  }
  return 0;
}

}  // namespace

KernelCounters CountersOf(const SampleRow& row) {
  KernelCounters counters;
  const auto tasks = static_cast<double>(row.block_tasks);
  if (row.what != SampleKind::kCounters || tasks <= 0 || ValueOf(row, "issue") <= 0) {
    return counters;
  }
  counters.instructions = ValueOf(row, "instructions") / tasks;
  counters.memory_instructions =
      (ValueOf(row, "global_instructions") + ValueOf(row, "async_copies")) / tasks;
  if (const double requests = ValueOf(row, "global_requests"); requests > 0) {
    counters.sectors_per_request =
        std::min(kSectorsPerRequestMax, ValueOf(row, "global_sectors") / requests);
  }
  // Counts of several passes do not agree to the last digit.
  for (const Share& share : kShares) {
    counters.*share.member = std::min(1.0, ValueOf(row, share.name));
  }
  if (const double bytes = ValueOf(row, "dram_bytes"); bytes > 0) {
    const double written = std::min(1.0, ValueOf(row, "dram_write_bytes") / bytes);
    counters.dram_write = counters.dram * written;
  }
  return counters;
}

KernelCounters CountersOf(const Samples& samples, const std::string& kernel) {
  KernelCounters counters;
  for (const SampleRow& row : samples.rows) {
    if (row.what == SampleKind::kCounters && row.kernel == kernel) counters = CountersOf(row);
  }
  return counters;
}

}  // namespace gpushare::models
