// How library codes map to statuses, and what a machine without a library answers. Needs no GPU.

#include "src/cuda/library/library_errors.h"

#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/cuda/driver/library_opener.h"

namespace gpushare::cuda {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

TEST(LibraryErrorsTest, RefusedShapesAreInvalidArgumentsAndNoCodeIsUnavailable) {
  EXPECT_TRUE(CublasStatusOf(0, "", "f()", "a/b.cc", 7).ok());
  EXPECT_TRUE(CudnnStatusOf(0, "", "f()", "a/b.cc", 7).ok());
  EXPECT_EQ(CublasStatusOf(15, "", "f()", "b.cc", 7).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CublasStatusOf(3, "", "f()", "b.cc", 7).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(CudnnStatusOf(3002, "", "f()", "b.cc", 7).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CudnnStatusOf(4004, "", "f()", "b.cc", 7).code(), absl::StatusCode::kResourceExhausted);
  for (int code = 1; code < 6000; ++code) {  // UNAVAILABLE would mean that the device is lost
    EXPECT_NE(CublasStatusOf(code, "", "f()", "b.cc", 7).code(), absl::StatusCode::kUnavailable);
    EXPECT_NE(CudnnStatusOf(code, "", "f()", "b.cc", 7).code(), absl::StatusCode::kUnavailable);
  }
}

TEST(LibraryErrorsTest, AnotherAlgorithmIsTriedAfterARefusalAndNotAfterALostDevice) {
  EXPECT_EQ(AnotherAlgorithmAfter(7), AnotherAlgorithm::kYes);          // INVALID_VALUE
  EXPECT_EQ(AnotherAlgorithmAfter(15), AnotherAlgorithm::kYes);         // NOT_SUPPORTED
  EXPECT_EQ(AnotherAlgorithmAfter(13), AnotherAlgorithm::kUnlessLost);  // EXECUTION_FAILED
  // success, or failures that no other algorithm would avoid
  for (const int code : {0, 1, 3, 8, 11, 14, 16, 99}) {
    EXPECT_EQ(AnotherAlgorithmAfter(code), AnotherAlgorithm::kNo) << code;
  }
}

TEST(LibraryErrorsTest, TheMessageSaysCodeTextExpressionAndLine) {
  const absl::Status status = CublasStatusOf(14, "internal", "cublasLtMatmul(x)", "a/b.cc", 7);
  EXPECT_EQ(status.message(), "cuBLASLt answers 14 (internal) to cublasLtMatmul(x) in b.cc:7.");
}

TEST(LibraryErrorsTest, AMissingLibraryIsUnavailableAndTheMessageSaysWhatToSet) {
  const absl::StatusOr<void*> library = OpenLibrary("libno_such_library.so.9");
  ASSERT_EQ(library.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(library.status().message()), HasSubstr("libno_such_library.so.9"));
  EXPECT_THAT(std::string(library.status().message()), HasSubstr("GPUSHARE_CUDA_LIBRARY_PATH"));
  EXPECT_THAT(std::string(library.status().message()), EndsWith("."));
}

}  // namespace
}  // namespace gpushare::cuda
