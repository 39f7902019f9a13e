// Blocks of an SM; see occupancy.h.

#include "src/core/checks/occupancy.h"

#include <algorithm>

namespace gpushare::core {

int32_t WorkersPerSm(const KernelDesc& kernel, const DeviceProfile& device) {
  int64_t most = std::min(kernel.resources.workers_per_sm_max, device.blocks_per_sm);
  const int64_t threads = std::max(1, kernel.resources.threads_per_block);
  most = std::min<int64_t>(most, device.threads_per_sm / threads);
  const int64_t registers = threads * kernel.resources.registers_per_thread;
  if (registers > 0) most = std::min<int64_t>(most, device.registers_per_sm / registers);
  if (kernel.resources.shared_memory_bytes > 0) {
    most = std::min<int64_t>(
        most, device.shared_memory_per_sm_bytes / kernel.resources.shared_memory_bytes);
  }
  return static_cast<int32_t>(std::max<int64_t>(1, most));
}

bool FitTogether(const KernelDesc& a, int64_t a_workers, const KernelDesc& b, int64_t b_workers,
                 const DeviceProfile& device) {
  const auto registers = [](const KernelDesc& kernel) {
    return int64_t{kernel.resources.threads_per_block} * kernel.resources.registers_per_thread;
  };
  return a_workers + b_workers <= device.blocks_per_sm &&
         a_workers * a.resources.threads_per_block + b_workers * b.resources.threads_per_block <=
             device.threads_per_sm &&
         a_workers * registers(a) + b_workers * registers(b) <= device.registers_per_sm &&
         a_workers * a.resources.shared_memory_bytes +
                 b_workers * b.resources.shared_memory_bytes <=
             device.shared_memory_per_sm_bytes;
}

}  // namespace gpushare::core
