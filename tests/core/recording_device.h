// A device that keeps the requests of its launches, for tests of what the launch stage asks.

#ifndef GPUSHARE_TESTS_CORE_RECORDING_DEVICE_H_
#define GPUSHARE_TESTS_CORE_RECORDING_DEVICE_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "src/core/seams/device.h"
#include "tests/core/forwarding_device.h"

namespace gpushare::core {

class RecordingDevice final : public ForwardingDevice {
 public:
  RecordingDevice(std::unique_ptr<Device> inner, std::vector<LaunchRequest>& requests)
      : ForwardingDevice(std::move(inner)), requests_(requests) {}
  absl::Status Launch(const LaunchRequest& request) override {
    requests_.push_back(request);
    return inner().Launch(request);
  }

 private:
  std::vector<LaunchRequest>& requests_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_TESTS_CORE_RECORDING_DEVICE_H_
