// Rows of pairs with counters; see neighbour_samples.h.

#include "src/models/samples/neighbour_samples.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "src/models/samples/row_times.h"

namespace gpushare::models {
namespace {

// Of a kernel without one of the counters nothing is known.
std::optional<UseOfDevice> UseOf(const SampleRow& row) {
  UseOfDevice use;
  double dram_bytes = 0;
  double dram_write_bytes = 0;
  size_t found = 0;
  for (const CounterValue& counter : row.counters) {
    for (const auto& [name, value] :
         {std::pair{"dram", &use.dram}, std::pair{"l2", &use.l2}, std::pair{"tensor", &use.tensor},
          std::pair{"dram_bytes", &dram_bytes}, std::pair{"dram_write_bytes", &dram_write_bytes}}) {
      if (counter.name != name) continue;
      *value = counter.value;
      ++found;
    }
  }
  constexpr size_t kCounters = 5;
  if (found != kCounters) return std::nullopt;
  if (dram_bytes > 0) use.dram_write = use.dram * std::min(1.0, dram_write_bytes / dram_bytes);
  return use;
}

std::map<std::string, UseOfDevice> UsesOf(const Samples& samples) {
  std::map<std::string, UseOfDevice> uses;
  for (const SampleRow& row : samples.rows) {
    if (row.what != SampleKind::kCounters) continue;
    if (const std::optional<UseOfDevice> use = UseOf(row)) uses[row.kernel] = *use;
  }
  return uses;
}

}  // namespace

std::vector<MeasuredNeighbour> MeasuredNeighbours(const Samples& samples) {
  const std::map<std::string, UseOfDevice> uses = UsesOf(samples);
  std::vector<MeasuredNeighbour> out;
  for (const SampleRow& row : samples.rows) {
    if (row.what != SampleKind::kBeside || row.same_sms || row.form != core::Form::kGraph) continue;
    if (row.ns.empty() || row.alone_ns.empty()) continue;
    const auto use = uses.find(row.neighbour);
    if (use == uses.end()) continue;
    const double share = static_cast<double>(row.neighbour_sms) / samples.head.sm_count;
    out.push_back({row.kernel,
                   row.neighbour,
                   row.sms,
                   {use->second, share, Median(row.alone_ns) / Median(row.ns)}});
  }
  return out;
}

}  // namespace gpushare::models
