// Tables of fused kernels and co-schedules. See overlap_tables.h.

#include "src/core/flow/planning/overlap_tables.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/core/checks/occupancy.h"
#include "src/core/flow/planning/head_views.h"

namespace gpushare::core {
namespace {

// Shares of the SM that the second kernel may take, in parts of kCoScheduleRatios + 1.
constexpr int32_t kShares = kCoScheduleRatios + 1;

// The rest of the SM for `kernel`, as calibration measures pairs, or what fits; 0: nothing does.
int32_t WorkersBeside(const KernelDesc& kernel, const KernelDesc& other, int32_t other_workers,
                      int32_t share, const DeviceProfile& device) {
  int32_t workers = std::max(1, WorkersPerSm(kernel, device) * (kShares - share) / kShares);
  while (workers > 0 && !FitTogether(kernel, workers, other, other_workers, device)) --workers;
  return workers;
}

CoScheduleOption OptionOf(const Flow& flow, const KernelDesc& first, const KernelDesc& second,
                          int32_t share) {
  const DeviceProfile& device = flow.device->capabilities().profile;
  CoScheduleOption option;
  const int32_t beside = std::max(1, WorkersPerSm(second, device) * share / kShares);
  option.workers_per_sm = {WorkersBeside(first, second, beside, share, device), beside};
  if (option.workers_per_sm[0] == 0) return {};
  const CoResidentPrediction predicted = flow.model->overlaps().PredictCoResident(
      {&first, option.workers_per_sm[0], 0}, {&second, option.workers_per_sm[1], 0});
  const double sum = predicted.speed[0] + predicted.speed[1];
  if (!predicted.known || !(sum > 0)) return option;
  option.speed = {static_cast<float>(predicted.speed[0]), static_cast<float>(predicted.speed[1])};
  option.speed_error = static_cast<float>(predicted.speed_error);
  option.profit = static_cast<float>(1 - 1 / sum);
  return option;
}

// The options of a pair of rows: those of the larger one stand in the order of the smaller ones.
void FillPair(Flow& flow, int32_t row, int32_t column) {
  const KernelDesc& first = flow.overlap_kernels.kernel(row);
  const KernelDesc& second = flow.overlap_kernels.kernel(column);
  const auto at = static_cast<size_t>(CoScheduleTable::IndexOf(row, column));
  for (int32_t ratio = 0; ratio < kCoScheduleRatios; ++ratio) {
    flow.buffers.co_schedules[at + static_cast<size_t>(ratio)] =
        OptionOf(flow, first, second, ratio + 1);
  }
}

void AddRow(Flow& flow, int32_t row) {
  // Within what PlanBuffers reserves.
  flow.buffers.co_schedules.resize(CoScheduleTable::IndexOf(row + 1, 0));
  // A row that comes again keeps what its slices did.
  const size_t end = CoScheduleTable::IndexOf(row + 1, 0);
  if (flow.buffers.sliced.size() < end) flow.buffers.sliced.resize(end);
  for (int32_t column = 0; column <= row; ++column) FillPair(flow, row, column);
}

// Another kernel has taken the row.
void RefillRow(Flow& flow, int32_t row, int32_t rows) {
  for (int32_t other = 0; other < rows; ++other) {
    FillPair(flow, std::max(row, other), std::min(row, other));
  }
}

// `sliced` may have more rows than the table, which may be on its way to them again.
void ForgetSlices(Flow& flow, int32_t row) {
  std::vector<SlicedPair>& sliced = flow.buffers.sliced;
  for (int32_t other = 0; other < flow.overlap_kernels.size(); ++other) {
    const size_t first = CoScheduleTable::IndexOf(std::max(row, other), std::min(row, other));
    const size_t end = std::min(first + kCoScheduleRatios, sliced.size());
    for (size_t i = first; i < end; ++i) sliced[i] = {};
  }
}

// A Tick has few: a kernel takes a row with its first task (KernelRows).
void RefillTaken(Flow& flow, CoScheduleTable& table) {
  if (!flow.overlap_kernels.AnyTaken()) return;
  for (int32_t row = 0; row < flow.overlap_kernels.size(); ++row) {
    if (!flow.overlap_kernels.IsTaken(row)) continue;
    ForgetSlices(flow, row);
    if (row < table.kernels) RefillRow(flow, row, table.kernels);
  }
  ForgetHeadViews(flow);  // they have the rows of their kernels
  flow.overlap_kernels.ForgetTaken();
  ++table.version;
}

// Adds what the model names to the pairs that wait.
void TakeChanges(Flow& flow) {
  const uint64_t version = flow.model->overlaps().co_schedule_version();
  if (version == flow.co_schedule_version) return;
  flow.co_schedule_version = version;
  PairChanges changes;
  flow.model->overlaps().TakeCoScheduleChanges(changes);
  PairChanges& waiting = flow.co_schedule_changes;
  waiting.all = waiting.all || changes.all;
  for (const PairChanges::Pair& pair : changes.pairs) waiting.Note(pair.kernel, pair.neighbour);
}

// What runs taught of a few pairs, the oldest first.
void RefillChanged(Flow& flow, CoScheduleTable& table) {
  TakeChanges(flow);
  PairChanges& waiting = flow.co_schedule_changes;
  if (waiting.all) {
    flow.buffers.co_schedules.clear();
    table.kernels = 0;
    waiting.Clear();
    ++table.version;
    return;
  }
  if (waiting.pairs.empty()) return;
  ++table.version;
  const absl::Span<const PairChanges::Pair> pairs = waiting.pairs.span();
  const size_t now = std::min<size_t>(pairs.size(), kMaxPairRefills);
  for (const PairChanges::Pair& pair : pairs.first(now)) {
    const int32_t one = flow.overlap_kernels.RowOf(pair.kernel);
    const int32_t other = flow.overlap_kernels.RowOf(pair.neighbour);
    // A row that is to come is filled when it does.
    if (std::min(one, other) < 0 || std::max(one, other) >= table.kernels) continue;
    FillPair(flow, std::max(one, other), std::min(one, other));
  }
  waiting.pairs.Assign(pairs.subspan(now));  // moves them to the front
}

void AddFused(Flow& flow, int index) {
  const FusedKernelDesc& kernel = flow.tables.fused(index);
  flow.buffers.fused.push_back({&kernel, flow.model->overlaps().CurveOf(kernel)});
}

}  // namespace

void UpdateOverlapTables(Flow& flow) {
  PlanBuffers& buffers = flow.buffers;
  Snapshot& snapshot = buffers.snapshot;
  if (const uint64_t version = flow.model->overlaps().fused_version();
      version != flow.fused_version) {
    flow.fused_version = version;
    buffers.fused.clear();
    ++snapshot.fused_version;
  }
  if (static_cast<int>(buffers.fused.size()) < flow.tables.fused_count()) {
    for (auto i = static_cast<int>(buffers.fused.size()); i < flow.tables.fused_count(); ++i) {
      AddFused(flow, i);
    }
    ++snapshot.fused_version;
  }
  CoScheduleTable& table = snapshot.co_schedules;
  RefillChanged(flow, table);
  RefillTaken(flow, table);
  if (table.kernels < flow.overlap_kernels.size()) {
    AddRow(flow, table.kernels++);
    ++table.version;
  }
  snapshot.fused = buffers.fused;
  table.options = buffers.co_schedules;
  table.sliced = buffers.sliced;
  table.rows = flow.overlap_kernels.span().first(static_cast<size_t>(table.kernels));
}

}  // namespace gpushare::core
