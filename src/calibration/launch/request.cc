// Launch requests of a calibration; see request.h.

#include "src/calibration/launch/request.h"

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

void* At(void* buffer, int64_t offset) {
  return buffer == nullptr ? nullptr : static_cast<char*>(buffer) + offset;
}

// Any range of block tasks is a part of the same grid, so the grid never changes.
core::LaunchPart MakePart(const CalibrationItem& item, core::LaneIndex lane, int64_t block_tasks) {
  core::LaunchPart part;
  part.lane = lane;
  part.work.kind = item.kernel.kind();
  part.work.kernel = &item.kernel;
  part.work.grid = {GridX(item), item.grid_y, item.grid_z};
  part.work.block_tasks = item.block_tasks;
  part.work.arguments = item.arguments.empty() ? nullptr : item.arguments.data();
  part.work.arguments_bytes = item.arguments.size();
  part.block_count = item.has_block_tasks() ? block_tasks : 0;
  return part;
}

core::LaunchRequest MakeRequest(const CalibrationItem& item, core::Form form, core::LaneIndex lane,
                                int64_t block_begin, int64_t block_tasks) {
  core::LaunchRequest request;
  request.form = form;
  request.parts[0] = MakePart(item, lane, block_tasks);
  request.block_begin = block_begin;
  return request;
}

}  // namespace

core::LaunchRequest OrdinaryRequest(const CalibrationItem& item, core::LaneIndex lane) {
  return MakeRequest(item, core::OrdinaryForm(item.kernel.kind()), lane, 0, item.block_tasks);
}

core::LaunchRequest WorkerRequest(const CalibrationItem& item, core::LaneIndex lane,
                                  int64_t block_tasks, int32_t workers, int32_t counter) {
  core::LaunchRequest request = MakeRequest(item, core::Form::kWorkers, lane, 0, block_tasks);
  request.workers = workers;
  request.parts[0].counter = counter;
  request.parts[0].reset_counter = true;
  return request;
}

core::LaunchRequest SliceRequest(const CalibrationItem& item, core::LaneIndex lane,
                                 int64_t block_begin, int64_t block_tasks) {
  return MakeRequest(item, core::Form::kSlice, lane, block_begin, block_tasks);
}

core::LaunchRequest CopyLaunchRequest(const core::CopyRequest& copy, core::LaneIndex lane) {
  core::LaunchRequest request;
  request.parts[0].lane = lane;
  request.form = core::Form::kMemcpy;
  request.parts[0].work.kind = core::TaskKind::kMemcpy;
  request.parts[0].work.copy = copy;
  return request;
}

bool HasBuffers(const core::Device& device, const CalibrationBuffers& buffers, bool pinned) {
  const void* const host = pinned ? buffers.pinned_host : buffers.pageable_host;
  return device.capabilities().simulated || (buffers.device != nullptr && host != nullptr);
}

core::LaunchRequest BufferCopyRequest(const CalibrationBuffers& buffers, const BufferCopy& copy,
                                      int64_t bytes, core::LaneIndex lane) {
  const bool to_device = copy.direction == core::CopyDirection::kHostToDevice;
  const int64_t offset = to_device ? 0 : buffers.bytes / 2;
  void* const host = At(copy.pinned ? buffers.pinned_host : buffers.pageable_host, offset);
  void* const device = At(buffers.device, offset);
  core::CopyRequest request;
  request.direction = copy.direction;
  request.pinned = copy.pinned;
  request.bytes = bytes;
  request.destination = to_device ? device : host;
  request.source = to_device ? host : device;
  return CopyLaunchRequest(request, lane);
}

core::LaunchRequest FusedRequest(const core::FusedKernelDesc& fused, const FusedPart& tensor,
                                 const FusedPart& cuda) {
  core::LaunchRequest request;
  request.form = core::Form::kFused;
  request.fused = &fused;
  request.parts[0] = MakePart(tensor.item, tensor.lane, tensor.block_tasks);
  request.parts.Add(MakePart(cuda.item, cuda.lane, cuda.block_tasks));
  int32_t counter = 0;
  for (core::LaunchPart& part : request.parts) {
    part.counter = counter++;
    part.reset_counter = true;
  }
  return request;
}

std::string NameOf(const core::LaunchRequest& request) {
  if (request.parts[0].work.kernel == nullptr) return "A copy";
  if (request.fused != nullptr) return absl::StrCat("Fused kernel '", request.fused->name, "'");
  return absl::StrCat("Kernel '", request.parts[0].work.kernel->name, "'");
}

}  // namespace gpushare::models
