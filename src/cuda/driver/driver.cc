// Looks for a CUDA device. See driver.h.

#include "src/cuda/driver/driver.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "src/cuda/driver/probe.h"

namespace gpushare::cuda {
namespace {

// cudaErrorInsufficientDriver and cudaErrorNoDevice. CUDA's ABI fixes their values.
constexpr int kInsufficientDriver = 35;
constexpr int kNoDevice = 100;

constexpr char kDriverLibrary[] = "libcuda.so.1";

// Keeps the library open until the process ends: the runtime opens it too, and a driver that was
// unloaded cannot be loaded again safely.
bool OpenDriver(std::string* problem) {
  void* const library = dlopen(kDriverLibrary, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    const char* const text = dlerror();
    *problem = absl::StrCat("the driver library ", kDriverLibrary, " cannot be opened (",
                            text == nullptr ? "no reason given" : text, ")");
    return false;
  }
  using Initialise = int (*)(unsigned int);
  auto* const initialise = reinterpret_cast<Initialise>(dlsym(library, "cuInit"));
  if (initialise == nullptr) {
    *problem = absl::StrCat("the driver library ", kDriverLibrary, " has no cuInit");
    return false;
  }
  const int code = initialise(0);
  if (code != 0) {
    *problem = absl::StrCat("cuInit answers error ", code);
    return false;
  }
  return true;
}

}  // namespace

const DriverCalls& SystemDriver() {
  static constexpr DriverCalls kCalls = {OpenDriver, CountDevices, ErrorText};
  return kCalls;
}

absl::Status CheckDevice(const DriverCalls& calls, int ordinal) {
  if (ordinal < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("The CUDA device ordinal is ", ordinal, ", and it must be at least 0."));
  }
  std::string problem;
  if (!calls.open_driver(&problem)) {
    return absl::UnavailableError(absl::StrCat("No CUDA device is usable: ", problem, "."));
  }
  int count = 0;
  const int code = calls.get_device_count(&count);
  if (code == kInsufficientDriver) {
    return absl::UnavailableError(
        "No CUDA device is usable: the driver is older than the CUDA 13.0 runtime needs "
        "(cudaGetDeviceCount answers 35).");
  }
  if (code == kNoDevice) {
    return absl::UnavailableError(
        "No CUDA device is usable: the driver finds no GPU (cudaGetDeviceCount answers 100).");
  }
  if (code != 0) {
    return absl::UnavailableError(
        absl::StrCat("No CUDA device is usable: cudaGetDeviceCount answers ", code, " (",
                     calls.error_text(code), ")."));
  }
  if (count <= 0) {
    return absl::UnavailableError("No CUDA device is usable: the driver reports 0 GPUs.");
  }
  if (ordinal >= count) {
    return absl::InvalidArgumentError(absl::StrCat("The CUDA device ordinal is ", ordinal,
                                                   ", and the machine has ", count,
                                                   count == 1 ? " device." : " devices."));
  }
  return absl::OkStatus();
}

}  // namespace gpushare::cuda
