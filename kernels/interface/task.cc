#include "kernels/interface/task.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "kernels/interface/errors.h"
#include "kernels/interface/list.h"
#include "kernels/interface/structs.h"

namespace gpushare::kernels {

Cut CutIntoBlockTasks(uint64_t units, double unit_bytes, double block_task_us, Checks* checks) {
  if (!checks->ok()) return {};
  const auto of_time = static_cast<uint64_t>(kWorkerBytesPerUs * block_task_us / unit_bytes);
  uint64_t share = std::max<uint64_t>(1, std::min(of_time, units / kBlockTasksMin));
  while (units % share != 0) --share;
  const uint64_t block_tasks = units / share;
  checks->Require(block_tasks <= INT32_MAX, "is cut into more than 2147483647 block tasks.");
  if (!checks->ok()) return {};
  return {static_cast<uint32_t>(block_tasks), static_cast<uint32_t>(share)};
}

gpushare_kernels_status WriteTask(const char* kernel, const void* arguments, size_t arguments_bytes,
                                  const Grid& grid, gpushare_kernels_task* out_task) {
  gpushare_kernels_task task = GPUSHARE_KERNELS_TASK_INIT;
  if (arguments_bytes > sizeof(task.arguments) || !FindIndex(kernel, &task.kernel)) {
    return Fail(GPUSHARE_KERNELS_INTERNAL,
                std::string("The arguments of '") + kernel + "' cannot be packed.");
  }
  task.block_tasks = static_cast<int64_t>(grid.x) * grid.y * grid.z;
  task.grid_x = static_cast<int32_t>(grid.x);
  task.grid_y = static_cast<int32_t>(grid.y);
  task.grid_z = static_cast<int32_t>(grid.z);
  task.arguments_size_bytes = static_cast<uint32_t>(arguments_bytes);
  std::memcpy(task.arguments, arguments, arguments_bytes);
  WriteStruct(task, out_task);
  return GPUSHARE_KERNELS_OK;
}

}  // namespace gpushare::kernels
