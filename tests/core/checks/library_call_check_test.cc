// Which shapes of a library call are accepted, at each limit of each operation.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/base/limits.h"
#include "src/core/checks/kernel_check.h"

namespace gpushare::core {
namespace {

// Each dimension is 1, so that every other one may take all of its range.
LibraryCall Matmul() {
  LibraryCall call;
  call.operation = LibraryOperation::kMatmul;
  call.m = call.n = call.k = 1;
  return call;
}

LibraryCall Images(LibraryOperation operation) {
  LibraryCall call;
  call.operation = operation;
  call.channels = call.height = call.width = 1;
  return call;
}

LibraryCall Pooling() {
  LibraryCall call = Images(LibraryOperation::kPooling);
  call.filter_height = call.filter_width = 1;
  return call;
}

LibraryCall Convolution() {
  LibraryCall call = Pooling();
  call.operation = LibraryOperation::kConvolution;
  call.filters = 1;
  return call;
}

std::vector<LibraryCall> OfImages() {
  return {Convolution(), Pooling(), Images(LibraryOperation::kActivation),
          Images(LibraryOperation::kSoftmax)};
}

std::vector<LibraryCall> OneOfEachOperation() {
  std::vector<LibraryCall> calls = OfImages();
  calls.push_back(Matmul());
  return calls;
}

std::string Refusal(const LibraryCall& call) {
  return std::string(CheckLibraryCall("call", call).message());
}

using Field = int64_t LibraryCall::*;

// The field lies between `least` and `most`; the rest of the call allows both.
void ExpectLimits(const LibraryCall& call, Field field, int64_t least, int64_t most) {
  for (const int64_t value : {least, most}) {
    LibraryCall within = call;
    within.*field = value;
    EXPECT_EQ(Refusal(within), "") << value;
  }
  for (const int64_t value : {least - 1, most + 1, std::numeric_limits<int64_t>::min(),
                              std::numeric_limits<int64_t>::max()}) {
    LibraryCall beyond = call;
    beyond.*field = value;
    EXPECT_NE(Refusal(beyond), "") << value;
  }
}

void ExpectUnused(const LibraryCall& call, Field field) { ExpectLimits(call, field, 0, 0); }

TEST(LibraryCallCheckTest, OrdinaryShapesAreAccepted) {
  for (const LibraryCall& call : OneOfEachOperation()) EXPECT_EQ(Refusal(call), "");
}

TEST(LibraryCallCheckTest, TheOperationIsOneOfFive) {
  for (const int operation : {0, 6, 255}) {
    LibraryCall call = Images(static_cast<LibraryOperation>(operation));
    EXPECT_NE(Refusal(call), "") << operation;
  }
}

TEST(LibraryCallCheckTest, TheDataTypeIsOneOfThree) {
  for (LibraryCall call : OneOfEachOperation()) {
    for (const int type : {0, 1, 2}) {
      call.type = static_cast<DataType>(type);
      EXPECT_EQ(Refusal(call), "") << type;
    }
    for (const int type : {3, 255}) {
      call.type = static_cast<DataType>(type);
      EXPECT_NE(Refusal(call), "") << type;
    }
  }
}

TEST(LibraryCallCheckTest, AModeBelongsToItsOperation) {
  for (LibraryCall call : OneOfEachOperation()) {
    for (int mode = 0; mode <= 6; ++mode) {
      call.mode = static_cast<LibraryMode>(mode);
      const bool pools = mode == 1 || mode == 2;
      const bool activates = mode >= 3 && mode <= 5;
      const bool allowed = mode == 0 || (pools && call.operation == LibraryOperation::kPooling) ||
                           (activates && call.operation == LibraryOperation::kActivation);
      EXPECT_EQ(Refusal(call).empty(), allowed)
          << "operation " << static_cast<int>(call.operation) << ", mode " << mode;
    }
  }
}

TEST(LibraryCallCheckTest, AMatrixProductHasFourDimensionsAndNoImages) {
  for (const Field field :
       {&LibraryCall::m, &LibraryCall::n, &LibraryCall::k, &LibraryCall::batch}) {
    ExpectLimits(Matmul(), field, 1, kMaxTensorDimension);
  }
  for (const Field field :
       {&LibraryCall::channels, &LibraryCall::height, &LibraryCall::width, &LibraryCall::filters,
        &LibraryCall::filter_height, &LibraryCall::filter_width, &LibraryCall::padding}) {
    ExpectUnused(Matmul(), field);
  }
}

TEST(LibraryCallCheckTest, ImagesHaveFourDimensionsAndNoMatrices) {
  for (LibraryCall call : OfImages()) {
    for (const Field field :
         {&LibraryCall::batch, &LibraryCall::channels, &LibraryCall::height, &LibraryCall::width}) {
      ExpectLimits(call, field, 1, kMaxTensorDimension);
    }
    for (const Field field : {&LibraryCall::m, &LibraryCall::n, &LibraryCall::k}) {
      ExpectUnused(call, field);
    }
    call.transpose_a = true;
    EXPECT_NE(Refusal(call), "");
    call.transpose_a = false;
    call.transpose_b = true;
    EXPECT_NE(Refusal(call), "");
  }
}

TEST(LibraryCallCheckTest, OnlyAConvolutionHasFilters) {
  ExpectLimits(Convolution(), &LibraryCall::filters, 1, kMaxTensorDimension);
  ExpectUnused(Pooling(), &LibraryCall::filters);
  for (const LibraryOperation operation :
       {LibraryOperation::kActivation, LibraryOperation::kSoftmax}) {
    for (const Field field : {&LibraryCall::filters, &LibraryCall::filter_height,
                              &LibraryCall::filter_width, &LibraryCall::padding}) {
      ExpectUnused(Images(operation), field);
    }
  }
}

TEST(LibraryCallCheckTest, GroupsDivideChannelsAndFilters) {
  LibraryCall call = Convolution();
  call.channels = 12;
  call.filters = 18;
  for (const int64_t groups : {1, 2, 3, 6}) {
    call.groups = groups;
    EXPECT_EQ(Refusal(call), "") << groups;
  }
  for (const int64_t groups : {-1, 0, 4, 5, 9, 12, 18, 36}) {
    call.groups = groups;
    EXPECT_NE(Refusal(call), "") << groups;
  }
}

TEST(LibraryCallCheckTest, PoolingHasNoDilationAndNoGroups) {
  ExpectLimits(Pooling(), &LibraryCall::dilation, 1, 1);
  ExpectLimits(Pooling(), &LibraryCall::groups, 1, 1);
}

TEST(LibraryCallCheckTest, AWindowMovesByAtLeastOne) {
  for (const LibraryCall& call : {Convolution(), Pooling()}) {
    ExpectLimits(call, &LibraryCall::stride, 1, kMaxTensorDimension);
    ExpectLimits(call, &LibraryCall::padding, 0, kMaxTensorDimension);
  }
  ExpectLimits(Convolution(), &LibraryCall::dilation, 1, kMaxTensorDimension);
}

// 32 + 2 x 2 of each image; 8 taps with 4 gaps between each two cover 36.
TEST(LibraryCallCheckTest, TheDilatedWindowLiesInThePaddedImage) {
  for (LibraryCall call : {Convolution(), Pooling()}) {
    call.padding = 2;
    call.height = 32;
    ExpectLimits(call, &LibraryCall::filter_height, 1, 36);
    call.width = 64;
    ExpectLimits(call, &LibraryCall::filter_width, 1, 68);
  }
  LibraryCall call = Convolution();
  call.padding = 2;
  call.height = 32;
  call.width = 64;
  call.dilation = 5;
  ExpectLimits(call, &LibraryCall::filter_height, 1, 8);
  ExpectLimits(call, &LibraryCall::filter_width, 1, 14);
}

// The two dimensions together have at most kMaxTensorElements elements.
void ExpectElementsLimited(LibraryCall call, Field one, Field other) {
  constexpr int64_t kRoot = int64_t{1} << 20;
  static_assert(kRoot * kRoot == kMaxTensorElements);
  call.*one = call.*other = kRoot;
  EXPECT_EQ(Refusal(call), "");
  call.*one = kRoot + 1;
  EXPECT_NE(Refusal(call), "");
  call.*one = call.*other = kMaxTensorDimension;
  EXPECT_NE(Refusal(call), "");
}

TEST(LibraryCallCheckTest, EachOperandHasABoundedNumberOfElements) {
  for (const Field size : {&LibraryCall::m, &LibraryCall::n, &LibraryCall::k}) {
    ExpectElementsLimited(Matmul(), &LibraryCall::batch, size);
  }
  ExpectElementsLimited(Matmul(), &LibraryCall::m, &LibraryCall::k);
  ExpectElementsLimited(Matmul(), &LibraryCall::k, &LibraryCall::n);
  ExpectElementsLimited(Matmul(), &LibraryCall::m, &LibraryCall::n);
  for (const LibraryCall& call : OfImages()) {
    ExpectElementsLimited(call, &LibraryCall::batch, &LibraryCall::channels);
    ExpectElementsLimited(call, &LibraryCall::height, &LibraryCall::width);
  }
  ExpectElementsLimited(Convolution(), &LibraryCall::filters, &LibraryCall::channels);
  LibraryCall wide = Convolution();
  wide.width = kMaxTensorDimension;
  ExpectElementsLimited(wide, &LibraryCall::filters, &LibraryCall::filter_width);
  LibraryCall high = Convolution();
  high.height = kMaxTensorDimension;
  ExpectElementsLimited(high, &LibraryCall::filters, &LibraryCall::filter_height);
}

}  // namespace
}  // namespace gpushare::core
