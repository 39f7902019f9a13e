// Launch requests of a calibration; see request.h.

#include "src/calibration/request.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "src/core/seams/ordinary_form.h"

namespace gpushare::models {
namespace {

// The grid's x dimension, which an item may leave to its block tasks.
int32_t GridX(const CalibrationItem& item) {
  const bool fits = item.block_tasks <= std::numeric_limits<int32_t>::max();
  const bool left_out = item.has_block_tasks() && fits && item.grid_x == 0;
  return left_out ? static_cast<int32_t>(item.block_tasks) : item.grid_x;
}

// Any range of block tasks is a part of the same grid, so the grid never changes.
core::LaunchRequest MakeRequest(const CalibrationItem& item, core::Form form, core::LaneIndex lane,
                                int64_t block_begin, int64_t block_tasks) {
  core::LaunchRequest request;
  request.lane = lane;
  request.form = form;
  request.kernel = &item.kernel;
  request.grid_x = GridX(item);
  request.grid_y = item.grid_y;
  request.grid_z = item.grid_z;
  request.block_begin = block_begin;
  request.block_count = item.has_block_tasks() ? block_tasks : 0;
  request.arguments = item.arguments.empty() ? nullptr : item.arguments.data();
  request.arguments_bytes = static_cast<uint32_t>(item.arguments.size());
  return request;
}

}  // namespace

core::LaunchRequest OrdinaryRequest(const CalibrationItem& item, core::LaneIndex lane) {
  return MakeRequest(item, core::OrdinaryForm(item.kernel.kind), lane, 0, item.block_tasks);
}

core::LaunchRequest WorkerRequest(const CalibrationItem& item, core::LaneIndex lane,
                                  int64_t block_tasks, int32_t workers, int32_t counter) {
  core::LaunchRequest request = MakeRequest(item, core::Form::kWorkers, lane, 0, block_tasks);
  request.workers = workers;
  request.counter = counter;
  request.reset_counter = true;
  return request;
}

core::LaunchRequest SliceRequest(const CalibrationItem& item, core::LaneIndex lane,
                                 int64_t block_begin, int64_t block_tasks) {
  return MakeRequest(item, core::Form::kSlice, lane, block_begin, block_tasks);
}

core::LaunchRequest CopyLaunchRequest(const core::CopyRequest& copy, core::LaneIndex lane) {
  core::LaunchRequest request;
  request.lane = lane;
  request.form = core::Form::kMemcpy;
  request.copy = copy;
  return request;
}

core::LaunchRequest FusedRequest(const core::FusedKernelDesc& fused, const FusedPart& tensor,
                                 const FusedPart& cuda) {
  core::LaunchRequest request =
      MakeRequest(tensor.item, core::Form::kFused, tensor.lane, 0, tensor.block_tasks);
  const core::LaunchRequest second =
      MakeRequest(cuda.item, core::Form::kFused, cuda.lane, 0, cuda.block_tasks);
  request.fused = &fused;
  request.counter = 0;
  request.reset_counter = true;
  core::FusedPartner& partner = request.partner;
  partner.lane = second.lane;
  partner.kernel = second.kernel;
  partner.grid_x = second.grid_x;
  partner.grid_y = second.grid_y;
  partner.grid_z = second.grid_z;
  partner.block_count = second.block_count;
  partner.counter = 1;
  partner.reset_counter = true;
  partner.arguments = second.arguments;
  partner.arguments_bytes = second.arguments_bytes;
  return request;
}

std::string NameOf(const core::LaunchRequest& request) {
  if (request.kernel == nullptr) return "A copy";
  if (request.fused != nullptr) return absl::StrCat("Fused kernel '", request.fused->name, "'");
  return absl::StrCat("Kernel '", request.kernel->name, "'");
}

}  // namespace gpushare::models
