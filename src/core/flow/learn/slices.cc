// Samples of slices. See slices.h.

#include "src/core/flow/learn/slices.h"

#include <algorithm>
#include <utility>

#include "src/core/base/tuning.h"

namespace gpushare::core {
namespace {

// What ends now, with the slices that run beside it.
SliceMark MarkAt(const Flow& flow, const Task& task, TimeNs end_ns) {
  SliceMark mark = {.end_ns = end_ns};
  if (flow.running_be.size() != 2 || !flow.running_lc.empty()) return mark;
  const Task& other = *flow.running_be[flow.running_be[0] == &task ? 1 : 0];
  const auto& parts = other.progress.parts;
  if (&other == &task || parts.empty() || parts[0].form != Form::kSlice) return mark;
  const auto oldest = std::min_element(
      parts.begin(), parts.end(),
      [](const Part& one, const Part& two) { return one.launched_ns < two.launched_ns; });
  mark.row = flow.overlap_kernels.RowOf(other.work.kernel);
  mark.blocks = oldest->blocks_asked;
  return mark;
}

void AddRun(SlicedPair& pair, size_t side, double speed) {
  const int32_t runs = ++pair.runs[side];
  const double weight = std::max(1.0 / runs, kSliceRunWeight);
  pair.speed[side] += static_cast<float>(weight * (speed - pair.speed[side]));
}

}  // namespace

void LearnSlice(Flow& flow, Task& task, const Part& part, const DeviceCompletion& completion) {
  if (part.form != Form::kSlice || IsLc(task) || !completion.timed) return;
  const SliceMark now = MarkAt(flow, task, completion.end_ns);
  const SliceMark last = std::exchange(task.progress.slice_mark, now);
  const bool same = last.row == now.row && last.blocks == now.blocks;
  if (completion.outcome != Outcome::kFinished || last.end_ns == 0 || now.row < 0 || !same) return;
  if (part.launched_ns > last.end_ns || now.end_ns <= last.end_ns) return;
  const Prediction& alone = task.progress.predicted;
  if (!alone.trained || alone.duration_ns <= 0) return;
  const int32_t own_row = flow.overlap_kernels.RowOf(task.work.kernel);
  if (own_row < 0) return;
  const auto& options = flow.buffers.co_schedules;
  const size_t first =
      CoScheduleTable::IndexOf(std::max(own_row, now.row), std::min(own_row, now.row));
  const double alone_ns = static_cast<double>(alone.duration_ns) *
                          static_cast<double>(part.blocks_asked) /
                          static_cast<double>(task.work.block_tasks);
  const double speed = alone_ns / static_cast<double>(now.end_ns - last.end_ns);
  const int64_t sms = flow.device->capabilities().profile.sm_count;
  for (size_t i = first; i < std::min(options.size(), first + kCoScheduleRatios); ++i) {
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const bool is_side = side == 0 ? own_row >= now.row : own_row <= now.row;
      const auto& workers = options[i].workers_per_sm;
      if (is_side && workers[side] * sms == part.blocks_asked &&
          workers[1 - side] * sms == now.blocks) {
        AddRun(flow.buffers.sliced[i], side, speed);
      }
    }
  }
}

}  // namespace gpushare::core
