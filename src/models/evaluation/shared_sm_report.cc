// Judged rows of two kernels on the same SMs; see shared_sm_report.h.

#include "src/models/evaluation/shared_sm_report.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "src/models/samples/row_times.h"

namespace gpushare::models {
namespace {

// Hopper's SM has four schedulers, which issue one instruction a cycle each.
constexpr double kPeakIpc = 4;

// A choice among fewer is none.
constexpr size_t kChoicesMin = 3;

std::string SubjectOfShared(const SampleRow& row) {
  return absl::StrCat(row.workers_per_sm, " x ", row.kernel, " beside ",
                      row.neighbour_workers_per_sm, " x ", row.neighbour);
}

// Of a pair that was measured both ways.
struct Throughput {
  std::string subject;
  bool first = false;  // of the two orders, one that counts
  double predicted = 0;
  double measured = 0;
};

using Choices = std::map<std::string, std::vector<Throughput>>;

// The pairs of each kernel; a pair belongs to both of its kernels.
Choices ChoicesOf(const std::vector<JudgedSharedSm>& rows) {
  using Key = std::tuple<std::string, int32_t, std::string, int32_t>;
  std::map<Key, const JudgedSharedSm*> by_key;
  for (const JudgedSharedSm& one : rows) {
    const SampleRow& row = *one.shared.row;
    by_key[{row.kernel, row.workers_per_sm, row.neighbour, row.neighbour_workers_per_sm}] = &one;
  }
  Choices choices;
  for (const auto& [key, one] : by_key) {
    const auto& [kernel, workers, neighbour, neighbour_workers] = key;
    const auto other = by_key.find({neighbour, neighbour_workers, kernel, workers});
    if (other == by_key.end()) continue;
    choices[kernel].push_back({SubjectOfShared(*one->shared.row), kernel < neighbour,
                               one->speed + other->second->speed,
                               one->shared.speed + other->second->shared.speed});
  }
  return choices;
}

}  // namespace

double MeasuredIpcShare(const SharedSm& shared, int32_t sm_count) {
  const double cycles = Median(shared.row->ns) * shared.kernel->cycles_per_ns;
  const double instructions =
      shared.kernel->counters.instructions * static_cast<double>(shared.row->block_tasks);
  return cycles > 0 && sm_count > 0 ? instructions / cycles / sm_count / kPeakIpc : 0;
}

void ReportSpeeds(const std::string& model, const std::vector<JudgedSharedSm>& rows,
                  std::vector<Judged>& out) {
  for (const JudgedSharedSm& one : rows) {
    out.push_back({"speeds on same SMs", model, SubjectOfShared(*one.shared.row), one.speed,
                   one.shared.speed});
  }
}

void ReportIpc(const std::string& model, const std::vector<JudgedSharedSm>& rows, int32_t sm_count,
               std::vector<Judged>& out) {
  for (const JudgedSharedSm& one : rows) {
    out.push_back({"IPC on same SMs", model, SubjectOfShared(*one.shared.row), one.ipc_share,
                   MeasuredIpcShare(one.shared, sm_count)});
  }
}

void ReportThroughput(const std::string& model, const std::vector<JudgedSharedSm>& rows,
                      std::vector<Judged>& out) {
  const Choices choices = ChoicesOf(rows);
  for (const auto& [kernel, pairs] : choices) {
    for (const Throughput& pair : pairs) {
      if (!pair.first) continue;
      out.push_back({"throughput of pairs", model, pair.subject, pair.predicted, pair.measured});
    }
  }
  for (const auto& [kernel, pairs] : choices) {
    if (pairs.size() < kChoicesMin) continue;
    const auto chosen = std::max_element(
        pairs.begin(), pairs.end(),
        [](const Throughput& a, const Throughput& b) { return a.predicted < b.predicted; });
    const auto best = std::max_element(
        pairs.begin(), pairs.end(),
        [](const Throughput& a, const Throughput& b) { return a.measured < b.measured; });
    out.push_back({"choice of neighbour", model, absl::StrCat("for ", kernel), chosen->measured,
                   best->measured});
  }
}

}  // namespace gpushare::models
