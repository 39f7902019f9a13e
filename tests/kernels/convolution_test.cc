// Convolutions by im2col and a Tensor-core GEMM against a float64 reference, as original grids and
// as workers.

#include "benchmarks/kernels/tensor/convolution.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/tensor/portable_inputs.h"
#include "benchmarks/kernels/tensor/portable_workload.h"
#include "tests/kernels/fixture.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kInputSeed = 11;
constexpr uint32_t kWeightSeed = 12;

ConvolutionShape Shape(uint32_t batch, uint32_t channels, uint32_t height, uint32_t width,
                       uint32_t filters) {
  ConvolutionShape shape = {
      .batch = batch, .channels = channels, .height = height, .width = width, .filters = filters};
  return shape;
}

TEST(ConvolutionShapes, RefusedInSentencesWithTheLimit) {
  EXPECT_TRUE(CheckConvolution(Shape(1, 16, 8, 8, 8)).ok());
  EXPECT_FALSE(CheckConvolution(Shape(1, 3, 224, 224, 64)).ok());
  EXPECT_FALSE(CheckConvolution(Shape(1, 16, 8, 8, 12)).ok());
  EXPECT_FALSE(CheckConvolution(Shape(1, 16, 0, 8, 8)).ok());
  const Status large = CheckConvolution(Shape(256, 256, 112, 112, 64));
  EXPECT_FALSE(large.ok());
  EXPECT_NE(large.message.find("4294967294"), std::string::npos) << large.message;
}

// In the corner of an image four of the nine values are inside, written out here.
TEST(ConvolutionShapes, ReferenceOfACorner) {
  const ConvolutionShape shape = Shape(2, 16, 3, 5, 8);
  constexpr uint32_t kImage = 1;
  constexpr uint32_t kFilter = 5;
  double expected = 0;
  for (uint32_t c = 0; c < 16; ++c) {
    const uint32_t plane = (kImage * 16 + c) * 15;
    const uint32_t window = (kFilter * 16 + c) * 9;
    // {place in the plane, place in the window} of the lower right corner.
    constexpr uint32_t kPairs[][2] = {{8, 0}, {9, 1}, {13, 3}, {14, 4}};
    for (const auto& pair : kPairs) {
      expected += static_cast<double>(PortableInput(kInputSeed, plane + pair[0])) *
                  static_cast<double>(PortableInput(kWeightSeed, window + pair[1]));
    }
  }
  const uint64_t index = (uint64_t{kImage} * 15 + 14) * 8 + kFilter;
  EXPECT_DOUBLE_EQ(ConvolutionReference(shape, kInputSeed, kWeightSeed, index), expected);
}

class ConvolutionTest : public KernelTest, public testing::WithParamInterface<ConvolutionShape> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
    const ConvolutionShape& shape = GetParam();
    GPUSHARE_ASSERT_OK(input_.Allocate(shape.InputElements() * sizeof(uint16_t)));
    GPUSHARE_ASSERT_OK(weights_.Allocate(shape.WeightElements() * sizeof(uint16_t)));
    GPUSHARE_ASSERT_OK(output_.Allocate(shape.OutputElements() * sizeof(uint16_t)));
    GPUSHARE_ASSERT_OK(FillPortableInputs(&input_, kInputSeed));
    GPUSHARE_ASSERT_OK(FillPortableInputs(&weights_, kWeightSeed));
    GPUSHARE_ASSERT_OK(output_.FillPattern());
    GPUSHARE_ASSERT_OK(convolution_.Make(shape, MmaConvolutionGemm(), input_.data(),
                                         weights_.data(), output_.data()));
  }

  void RunWorkers(const FormTask& task) {
    GPUSHARE_ASSERT_OK(launcher_.BeginTask());
    const gpushare_worker_launch header = launcher_.Header(task);
    const uint32_t workers = std::min(launcher_.FullWorkers(task), task.block_tasks());
    GPUSHARE_ASSERT_OK(launcher_.LaunchWorkers(task, header, workers));
    gpushare_worker_completion record = {};
    GPUSHARE_ASSERT_OK(launcher_.Finish(header, &record));
    EXPECT_EQ(record.block_tasks_done, task.block_tasks());
  }

  DeviceBuffer input_, weights_, output_;
  Convolution convolution_;
};

TEST_P(ConvolutionTest, IsRightByTheReference) {
  const ConvolutionShape& shape = GetParam();
  GPUSHARE_ASSERT_OK(convolution_.Enqueue(&launcher_));
  GPUSHARE_ASSERT_OK(launcher_.Wait());
  std::vector<uint16_t> values(shape.OutputElements());
  GPUSHARE_ASSERT_OK(output_.Read(0, output_.bytes(), values.data()));
  const double tolerance = PortableTolerance(shape.WindowElements());
  constexpr uint32_t kSamples = 20000;
  for (uint32_t i = 0; i < kSamples; ++i) {
    // The corners first, where the padding is.
    uint64_t index = Hash(FirstSeed(), i) % values.size();
    if (i < shape.filters) index = i;
    if (i >= shape.filters && i < 2 * shape.filters) index = values.size() - 1 - i + shape.filters;
    const double expected = ConvolutionReference(shape, kInputSeed, kWeightSeed, index);
    const double value = static_cast<double>(FromBf16(values[index]));
    ASSERT_LE(std::abs(value - expected), tolerance) << "element " << index;
  }
}

TEST_P(ConvolutionTest, WorkersGiveTheSameBits) {
  GPUSHARE_ASSERT_OK(convolution_.Enqueue(&launcher_));
  GPUSHARE_ASSERT_OK(launcher_.Wait());
  uint64_t original = 0;
  GPUSHARE_ASSERT_OK(output_.Checksum(&original));
  GPUSHARE_ASSERT_OK(output_.FillPattern());
  RunWorkers(convolution_.im2col());
  RunWorkers(convolution_.gemm());
  uint64_t workers = 0;
  GPUSHARE_ASSERT_OK(output_.Checksum(&workers));
  EXPECT_EQ(workers, original);
}

// Whole tiles of im2col and of the GEMM, and cut ones.
INSTANTIATE_TEST_SUITE_P(Shapes, ConvolutionTest,
                         testing::Values(Shape(2, 64, 56, 56, 64), Shape(3, 32, 29, 27, 128),
                                         Shape(1, 16, 14, 14, 40), Shape(4, 128, 7, 7, 512)));

}  // namespace
}  // namespace gpushare::kernels
