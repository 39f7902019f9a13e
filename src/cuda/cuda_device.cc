// The entry to the CUDA device, with nvcc (see cuda_device.h).

#include "src/cuda/cuda_device.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/cuda/driver.h"
#include "src/cuda/probe.h"

namespace gpushare::cuda {

absl::StatusOr<std::unique_ptr<core::Device>> MakeCudaDevice(int ordinal) {
  if (absl::Status status = CheckDevice(SystemDriver(), ordinal); !status.ok()) return status;
  ProbeRequest request;
  request.ordinal = ordinal;
  const ProbeResult probe = RunWorkerProbe(request);
  if (probe.error != 0) {
    return absl::UnavailableError(
        absl::StrCat("CUDA device ", ordinal, " is not usable: ", probe.step, " answers ",
                     probe.error, " (", ErrorText(probe.error), ") in the worker probe."));
  }
  if (probe.executed != request.block_tasks || probe.repeated != 0) {
    return absl::InternalError(absl::StrCat(
        "CUDA device ", ordinal, " is not usable: the worker probe executed ", probe.executed,
        " of ", request.block_tasks, " block tasks, and ", probe.repeated, " more than once."));
  }
  return absl::UnimplementedError(absl::StrCat("CUDA device ", ordinal,
                                               " is present and runs the worker probe, and this "
                                               "version of gpushare cannot schedule on it yet; "
                                               "use the simulated device (GPUSHARE_DEVICE=sim)."));
}

}  // namespace gpushare::cuda
