// A build without nvcc has the entry too, and says why there is no device.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/cuda/cuda_device.h"

namespace gpushare::cuda {
namespace {

TEST(CudaDeviceAbsentTest, SaysThatTheBuildHasNoCudaCode) {
  const auto device = MakeCudaDevice(0, core::DeviceProfile());
  ASSERT_EQ(device.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(device.status().message()), testing::HasSubstr("nvcc was not found"));
}

}  // namespace
}  // namespace gpushare::cuda
