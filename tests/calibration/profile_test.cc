// What of a measured device a profile can hold.

#include "src/calibration/profile/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpushare::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One value that a profile's reader refuses costs that value, and no other.
TEST(ReadableDeviceTest, AnImpossibleValueIsTheGivenOneAndIsTold) {
  const core::DeviceProfile given = core::DeviceProfile();
  core::DeviceProfile measured = given;
  std::vector<std::string> notes;
  measured.completion_latency_ns = 1234;
  EXPECT_EQ(ReadableDevice(measured, given, notes).completion_latency_ns, 1234);
  EXPECT_THAT(notes, IsEmpty());
  measured.launch_latency_ns = 5'000'000'000;  // the limit is a second
  measured.pinned_bytes_per_ns = 0;
  const core::DeviceProfile kept = ReadableDevice(measured, given, notes);
  EXPECT_EQ(kept.launch_latency_ns, given.launch_latency_ns);
  EXPECT_EQ(kept.pinned_bytes_per_ns, given.pinned_bytes_per_ns);
  EXPECT_EQ(kept.completion_latency_ns, 1234);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("launch_latency_ns"), HasSubstr("pinned_bytes_per_ns")));
}

}  // namespace
}  // namespace gpushare::models
