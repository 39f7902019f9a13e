// Each kind of machine that CheckDevice can find, imitated by a table of functions.

#include "src/cuda/driver/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "src/cuda/cuda_device.h"

namespace gpushare::cuda {
namespace {

using ::testing::HasSubstr;

bool DriverOpens(std::string* /*problem*/) { return true; }
bool DriverIsMissing(std::string* problem) {
  *problem = "the driver library libcuda.so.1 cannot be opened (no such file)";
  return false;
}
const char* Text(int /*code*/) { return "unknown error"; }

// As in the runtime, a failing call does not set its output.
template <int kCode>
int CountFails(int* /*count*/) {
  return kCode;
}
template <int kCount>
int CountIs(int* count) {
  *count = kCount;
  return 0;
}

TEST(DriverTest, MissingDriverIsUnavailableAndNoRuntimeCallIsMade) {
  const DriverCalls calls = {DriverIsMissing, nullptr, Text};
  const absl::Status status = CheckDevice(calls, 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("No CUDA device is usable: the driver library"));
}

TEST(DriverTest, OldDriverIsNamed) {
  const DriverCalls calls = {DriverOpens, CountFails<35>, Text};
  const absl::Status status = CheckDevice(calls, 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("driver is older"));
}

TEST(DriverTest, DriverWithoutGpuIsNamed) {
  const DriverCalls calls = {DriverOpens, CountFails<100>, Text};
  const absl::Status status = CheckDevice(calls, 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("finds no GPU"));
}

TEST(DriverTest, OtherErrorsCarryCodeAndText) {
  const DriverCalls calls = {DriverOpens, CountFails<999>, Text};
  const absl::Status status = CheckDevice(calls, 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("999 (unknown error)"));
}

TEST(DriverTest, ZeroGpusAreUnavailable) {
  const DriverCalls calls = {DriverOpens, CountIs<0>, Text};
  EXPECT_EQ(CheckDevice(calls, 0).code(), absl::StatusCode::kUnavailable);
}

TEST(DriverTest, OrdinalPastTheLastNamesBothNumbers) {
  const DriverCalls calls = {DriverOpens, CountIs<2>, Text};
  EXPECT_TRUE(CheckDevice(calls, 1).ok());
  const absl::Status status = CheckDevice(calls, 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("ordinal is 2, and the machine has 2 devices"));
}

TEST(DriverTest, NegativeOrdinalIsRefusedBeforeAnyCall) {
  const DriverCalls calls = {nullptr, nullptr, nullptr};
  EXPECT_EQ(CheckDevice(calls, -1).code(), absl::StatusCode::kInvalidArgument);
}

// Whatever machine runs this test: it finds a device or gives a clear answer.
TEST(DriverTest, ThisMachineGetsAClearAnswer) {
  const absl::Status device = CheckDevice(SystemDriver(), 0);
  const auto made = MakeCudaDevice(0, core::DeviceProfile());
  if (device.ok() && made.ok()) {
    EXPECT_FALSE((*made)->capabilities().simulated);
  } else if (device.ok()) {  // a GPU that this build has no code for
    EXPECT_EQ(made.status().code(), absl::StatusCode::kUnavailable) << made.status();
  } else {
    EXPECT_EQ(made.status(), device);
    EXPECT_THAT(std::string(device.message()), HasSubstr("No CUDA device is usable"));
  }
}

}  // namespace
}  // namespace gpushare::cuda
