// Which algorithm a matrix product chooses, on a fake cuBLASLt. Needs no GPU.

#include <memory>

#include "gtest/gtest.h"
#include "src/cuda/library/library_backend.h"
#include "tests/cuda/library/fake_cublaslt.h"
#include "tests/cuda/library/fake_library.h"

namespace gpushare::cuda {
namespace {

constexpr int kInvalidValue = 7;
constexpr int kExecutionFailed = 13;
constexpr int kInternalError = 14;

CUresult stream_state = CUDA_SUCCESS;

CUresult CUDAAPI QueryStream(CUstream /*stream*/) { return stream_state; }

class CublasLtMatmulTest : public ::testing::Test {
 protected:
  void SetUp() override {
    control_ = OpenFakeLibrary<FakeCublasLtControl>("libcublasLt.so.13", "fake_cublaslt_control");
    ASSERT_NE(control_, nullptr);
    stream_state = CUDA_SUCCESS;
    api_.cuStreamQuery = &QueryStream;
    backend_ = OpenCublasLt(api_).value();
    core::KernelDesc kernel;
    kernel.code =
        core::LibraryCall{.operation = core::LibraryOperation::kMatmul, .m = 64, .n = 64, .k = 64};
    plan_ = backend_->MakePlan(&handle_, kernel, 0).value();
  }

  // Every algorithm before `first_good` answers `answer`.
  void Refuse(int answer, int first_good) {
    control_->answer = answer;
    control_->first_good = first_good;
  }
  // The operands start `skip` bytes behind an aligned address.
  absl::Status Multiply(size_t skip = 0) {
    control_->products = 0;
    core::LibraryArguments arguments;
    arguments.a = arguments.b = arguments.d = operand_ + skip;
    return plan_->Enqueue(&handle_, nullptr, operand_, arguments);
  }

  DriverApi api_;
  FakeCublasLtControl* control_ = nullptr;
  std::unique_ptr<LibraryBackend> backend_;
  std::unique_ptr<LibraryPlan> plan_;
  char handle_ = 0;
  alignas(256) char operand_[256] = {};
};

TEST_F(CublasLtMatmulTest, IfTheSmsRefuseALaunchTheNextAlgorithmRunsAndIsKept) {
  Refuse(kExecutionFailed, 2);
  ASSERT_TRUE(Multiply().ok());
  EXPECT_EQ(control_->products, 3);
  ASSERT_TRUE(Multiply().ok());
  EXPECT_EQ(control_->products, 1);
  EXPECT_EQ(control_->first_algorithm, 2);
}

TEST_F(CublasLtMatmulTest, ALostDeviceIsQueriedOnceAndNoOtherAlgorithmIsTried) {
  Refuse(kExecutionFailed, 2);
  stream_state = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(Multiply().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(control_->products, 1);
  stream_state = CUDA_SUCCESS;
  Refuse(0, 0);
  ASSERT_TRUE(Multiply().ok());
  EXPECT_EQ(control_->first_algorithm, 0);
}

TEST_F(CublasLtMatmulTest, WorkOnTheStreamDoesNotCountAsALoss) {
  Refuse(kExecutionFailed, 1);
  stream_state = CUDA_ERROR_NOT_READY;
  EXPECT_TRUE(Multiply().ok());
}

TEST_F(CublasLtMatmulTest, WrongOperandsDoNotChangeTheChosenAlgorithm) {
  Refuse(kInvalidValue, control_->algorithms);
  EXPECT_EQ(Multiply().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(control_->products, control_->algorithms);
  Refuse(0, 0);
  ASSERT_TRUE(Multiply().ok());
  EXPECT_EQ(control_->first_algorithm, 0);
}

TEST_F(CublasLtMatmulTest, RepeatedWrongOperandsCostOneCall) {
  Refuse(kInvalidValue, control_->algorithms);
  EXPECT_EQ(Multiply(16).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(control_->products, control_->algorithms);
  EXPECT_EQ(Multiply(16).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(control_->products, 1);
  // Operands of another kind still try every algorithm, and later calls use the one that works.
  Refuse(kInvalidValue, 2);
  EXPECT_TRUE(Multiply(32).ok());
  EXPECT_EQ(control_->products, 3);
  EXPECT_TRUE(Multiply(16).ok());
  EXPECT_EQ(control_->first_algorithm, 2);
  // The product ran, so its kind of operands no longer counts as wrong.
  Refuse(kInvalidValue, 3);
  EXPECT_TRUE(Multiply(16).ok());
}

TEST_F(CublasLtMatmulTest, AnOperandBetweenTwoElementsIsRefusedWithoutACall) {
  const absl::Status status = Multiply(2);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(control_->products, 0);
  EXPECT_EQ(status.message(),
            "An operand of a matrix product does not start at a multiple of 4 bytes, the size of "
            "an element.");
}

TEST_F(CublasLtMatmulTest, AFailureOfTheLibraryIsNotRetried) {
  Refuse(kInternalError, 1);
  EXPECT_EQ(Multiply().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(control_->products, 1);
}

}  // namespace
}  // namespace gpushare::cuda
