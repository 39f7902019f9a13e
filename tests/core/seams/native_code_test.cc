#include "src/core/seams/native_code.h"

#include "gtest/gtest.h"

namespace gpushare::core {
namespace {

TEST(NativeCodeTest, AStatusKeepsItsCodeWhenItIsPassedOn) {
  const absl::Status status = WithNativeCode(absl::InternalError("The launch failed."), 719);
  EXPECT_EQ(NativeCodeOf(status), 719);
  const absl::Status copy = status;
  EXPECT_EQ(NativeCodeOf(copy), 719);
  EXPECT_EQ(copy.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(copy.message(), "The launch failed.");
}

// Not the status code: 13 for INTERNAL would be taken for a code of the driver.
TEST(NativeCodeTest, AStatusWithoutANativeCallHasNone) {
  EXPECT_EQ(NativeCodeOf(absl::InternalError("A bug.")), 0);
  EXPECT_EQ(NativeCodeOf(absl::OkStatus()), 0);
}

}  // namespace
}  // namespace gpushare::core
