// The C API as this command uses it: handles that release themselves, failures that throw.
//
// A runtime is driven by its caller in virtual time (poll mode) and by the library's own thread in
// real time.

#ifndef GPUSHARE_TOOLS_GPUSHARE_BASE_LIBRARY_H_
#define GPUSHARE_TOOLS_GPUSHARE_BASE_LIBRARY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpushare/gpushare.h"

namespace gpushare::tool {

struct ReleaseHandle {
  void operator()(gpushare_runtime* handle) const { gpushare_runtime_release(handle); }
  void operator()(gpushare_app* handle) const { gpushare_app_release(handle); }
  void operator()(gpushare_queue* handle) const { gpushare_queue_release(handle); }
  void operator()(gpushare_kernel* handle) const { gpushare_kernel_release(handle); }
  void operator()(gpushare_fused_kernel* handle) const { gpushare_fused_kernel_release(handle); }
  void operator()(gpushare_event_log* handle) const { gpushare_event_log_release(handle); }
};
using RuntimeHandle = std::unique_ptr<gpushare_runtime, ReleaseHandle>;
using AppHandle = std::unique_ptr<gpushare_app, ReleaseHandle>;
using QueueHandle = std::unique_ptr<gpushare_queue, ReleaseHandle>;
using KernelHandle = std::unique_ptr<gpushare_kernel, ReleaseHandle>;
using FusedKernelHandle = std::unique_ptr<gpushare_fused_kernel, ReleaseHandle>;
using EventLogHandle = std::unique_ptr<gpushare_event_log, ReleaseHandle>;

// Which device a run uses and how it is seeded.
struct DeviceChoice {
  std::string device = "auto";  // auto, sim, cuda or null
  std::string tier = "kernel";  // of the simulated device: kernel or block
  std::string profile;          // path; empty: the library's own
  uint64_t seed = 1;
  bool real_time = false;  // the library's own thread drives the runtime
};

// What the report says of the device.
struct DeviceFacts {
  std::string name;
  std::string profile;
  bool simulated = false;
  bool virtual_time = false;
  int sm_count = 0;
  int ordinal = 0;  // which GPU
};

// Throws unless `status` is OK: InputError for bad input (an unknown name, a rejected file, a value
// out of range), else RunError. The message is the library's.
void Check(gpushare_status status);

// The names that the library's text function prints, one a line.
std::vector<std::string> PolicyNames();
std::vector<std::string> ProfileKernelNames(gpushare_runtime* runtime);

RuntimeHandle OpenRuntime(const DeviceChoice& choice, const std::string& policy);
// One that replays `log`; the choice is that of the recorded run.
RuntimeHandle OpenReplay(gpushare_event_log* log, const DeviceChoice& choice,
                         const std::string& policy);
// The first difference of a replay that has run; empty if there is none.
std::string ReplayDifference(gpushare_runtime* runtime);
// Throws InputError for a missing, truncated or corrupt file.
EventLogHandle OpenEventLog(const std::string& path, int64_t& count);
DeviceFacts FactsOf(gpushare_runtime* runtime);
int64_t NowNs(gpushare_runtime* runtime);

// Throws InputError naming the known policies.
void RequirePolicies(const std::vector<std::string>& policies);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_BASE_LIBRARY_H_
