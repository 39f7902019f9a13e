// Rows of pairs with counters; see neighbour_samples.h.

#include "src/models/training/neighbour_samples.h"

#include <algorithm>
#include <map>

#include "absl/strings/string_view.h"
#include "src/core/seams/kernel.h"
#include "src/models/durations/scaling.h"
#include "src/models/samples/row_times.h"
#include "src/models/training/row_counters.h"

namespace gpushare::models {
namespace {

using core::KernelDesc;

// Neighbours by name, with their counters and speeds on fewer SMs.
using Neighbours = std::map<std::string, KernelDesc>;

// Of a kernel without one of the counters nothing is known.
bool HasCounters(const SampleRow& row) {
  const auto has = [&](absl::string_view name) {
    return std::any_of(row.counters.begin(), row.counters.end(),
                       [&](const CounterValue& counter) { return counter.name == name; });
  };
  return has("dram") && has("l2") && has("tensor") && has("dram_bytes") && has("dram_write_bytes");
}

bool IsOfCurve(const SampleRow& row) {
  return row.what == SampleKind::kSolo && row.form == core::Form::kWorkers &&
         row.workers_per_sm == 0 && row.sms > 0 && Median(row.ns) > 0;
}

// Speeds of the size that ran on the whole device and on the most other numbers of SMs.
std::vector<core::SpeedPoint> CurveOf(const std::vector<const SampleRow*>& rows, int32_t sm_count) {
  std::map<int64_t, std::map<int32_t, double>> sizes;
  for (const SampleRow* row : rows) sizes[row->block_tasks][row->sms] = Median(row->ns);
  std::vector<core::SpeedPoint> most;
  for (const auto& [block_tasks, ns] : sizes) {
    const auto whole = ns.find(sm_count);
    if (whole == ns.end() || ns.size() < 2 || ns.size() <= most.size()) continue;
    most.clear();
    for (const auto& [sms, time] : ns) most.push_back({sms, whole->second / time});
  }
  return most;
}

Neighbours NeighboursOf(const Samples& samples) {
  Neighbours neighbours;
  std::map<std::string, std::vector<const SampleRow*>> rows;
  for (const SampleRow& row : samples.rows) {
    if (IsOfCurve(row)) rows[row.kernel].push_back(&row);
    if (row.what != SampleKind::kCounters || !HasCounters(row)) continue;
    const core::KernelCounters counters = CountersOf(row);
    if (counters.present()) neighbours[row.kernel].counters = counters;
  }
  for (auto& [name, neighbour] : neighbours) {
    neighbour.simulation.speed = CurveOf(rows[name], samples.head.sm_count);
  }
  return neighbours;
}

}  // namespace

std::vector<MeasuredNeighbour> MeasuredNeighbours(const Samples& samples) {
  const Neighbours neighbours = NeighboursOf(samples);
  const int32_t sm_count = samples.head.sm_count;
  std::vector<MeasuredNeighbour> out;
  for (const SampleRow& row : samples.rows) {
    if (row.what != SampleKind::kBeside || row.same_sms || row.form != core::Form::kGraph) continue;
    if (row.ns.empty() || row.alone_ns.empty()) continue;
    const auto found = neighbours.find(row.neighbour);
    if (found == neighbours.end()) continue;
    const KernelDesc& neighbour = found->second;
    const NeighbourPlace place = {static_cast<double>(row.neighbour_sms) / sm_count,
                                  SpeedOnSms(neighbour, row.neighbour_sms, sm_count)};
    out.push_back({row.kernel,
                   row.neighbour,
                   row.sms,
                   {UseOf(neighbour.counters), place, Median(row.alone_ns) / Median(row.ns)}});
  }
  return out;
}

}  // namespace gpushare::models
