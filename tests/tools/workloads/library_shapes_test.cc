// The library calls that `gpushare calibrate --shapes` measures: that one run can measure them, and
// that models can be fitted to them.

#include "tools/gpushare/workloads/library_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace gpushare::tool {
namespace {

constexpr size_t kKernelsOfARuntime = 1024;
constexpr size_t kNameBytesMax = 64;

TEST(LibraryShapesTest, OneRuntimeHoldsThemAllUnderNamesOfTheirOwn) {
  const std::vector<LibraryShape> shapes = ListLibraryShapes();
  EXPECT_LE(shapes.size(), kKernelsOfARuntime);
  std::set<std::string> names;
  for (const LibraryShape& shape : shapes) {
    EXPECT_TRUE(names.insert(shape.name).second) << shape.name;
    EXPECT_LE(shape.name.size(), kNameBytesMax) << shape.name;
  }
}

TEST(LibraryShapesTest, OperandsFitAndTheRunIsShort) {
  double all_ns = 0;
  for (const LibraryShape& shape : ListLibraryShapes()) {
    const OperandElements elements = ElementsOf(shape.call);
    EXPECT_GT(std::min({elements.a, elements.b, elements.d}), 0) << shape.name;
    EXPECT_LT(std::max({elements.a, elements.b, elements.d}) * BytesOfElement(shape.call),
              2'000'000'000)
        << shape.name;
    EXPECT_LT(LeastNs(shape.call), 3e6) << shape.name;
    all_ns += LeastNs(shape.call);
  }
  // 100 launches of each take less than half a minute.
  EXPECT_LT(100 * all_ns, 30e9);
}

// A product and a convolution by hand: 2 m n k and 2 x outputs x window.
TEST(LibraryShapesTest, LeastTimesFollowFromOperationsAndBytes) {
  int found = 0;
  for (const LibraryShape& shape : ListLibraryShapes()) {
    const std::string& name = shape.name;
    if (name == "matmul.f16.8192x8192x8192") {
      EXPECT_NEAR(LeastNs(shape.call), 2.0 * 8192 * 8192 * 8192 / 665e3, 1);
      ++found;
    }
    if (name == "matmul.f16.1x28672x4096") {
      EXPECT_NEAR(LeastNs(shape.call), 2.0 * (4096 + 28672 + 28672.0 * 4096) / 4.8e3, 1);
      ++found;
    }
    if (name == "convolution.f16.16x256x56.256x3.s1") {
      EXPECT_NEAR(LeastNs(shape.call), 2.0 * 16 * 56 * 56 * 256 * 256 * 9 / 665e3, 1);
      ++found;
    }
  }
  EXPECT_EQ(found, 3);
}

TEST(LibraryShapesTest, EnoughOfEachOperationForAModel) {
  size_t products = 0;
  size_t convolutions = 0;
  size_t long_ones = 0;
  for (const LibraryShape& shape : ListLibraryShapes()) {
    ++(shape.call.operation == GPUSHARE_LIBRARY_MATMUL ? products : convolutions);
    if (LeastNs(shape.call) > 100e3) ++long_ones;
  }
  EXPECT_GE(products, 250u);
  EXPECT_GE(convolutions, 80u);
  EXPECT_GE(long_ones, 150u);
}

}  // namespace
}  // namespace gpushare::tool
