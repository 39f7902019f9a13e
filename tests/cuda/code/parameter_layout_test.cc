// Where parameters lie in packed arguments, from offsets that a fake driver reports.

#include "src/cuda/code/parameter_layout.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace gpushare::cuda {
namespace {

constexpr size_t kHeader = 128;

// Offset and size of each parameter of the function under test.
std::vector<std::pair<size_t, size_t>>& Parameters() {
  static std::vector<std::pair<size_t, size_t>> parameters;
  return parameters;
}

CUresult CUDAAPI ParamInfo(CUfunction, size_t index, size_t* offset, size_t* bytes) {
  if (index >= Parameters().size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = Parameters()[index].first;
  *bytes = Parameters()[index].second;
  return CUDA_SUCCESS;
}

class ParameterLayoutTest : public testing::Test {
 protected:
  ParameterLayoutTest() { api_.cuFuncGetParamInfo = ParamInfo; }

  absl::Status Read(std::vector<std::pair<size_t, size_t>> parameters, size_t first) {
    Parameters() = std::move(parameters);
    return layout_.Read(api_, nullptr, first, "k");
  }
  size_t OffsetOf(size_t index) {
    layout_.Fill(arguments_.data(), addresses_);
    return static_cast<size_t>(static_cast<char*>(addresses_.at(index)) - arguments_.data());
  }

  DriverApi api_ = {};
  ParameterLayout layout_;
  std::array<char, 4096> arguments_{};
  ParameterAddresses addresses_{};
};

TEST_F(ParameterLayoutTest, ParametersFollowEachOtherAsPacked) {
  ASSERT_TRUE(Read({{0, 8}, {8, 4}, {16, 8}}, 0).ok());
  EXPECT_EQ(OffsetOf(0), 0U);
  EXPECT_EQ(OffsetOf(1), 8U);
  EXPECT_EQ(OffsetOf(2), 16U);
  EXPECT_TRUE(layout_.Check(24, "k").ok());
  EXPECT_FALSE(layout_.Check(23, "k").ok());
}

// Offsets that an H200 reports: parameters in the constant bank start at 16 modulo 64.
TEST_F(ParameterLayoutTest, AStructWithATensorMapStartsTheArguments) {
  ASSERT_TRUE(Read({{48, 448}}, 0).ok());
  EXPECT_EQ(OffsetOf(0), 0U);
  EXPECT_TRUE(layout_.Check(448, "k").ok());
  const absl::Status missing = layout_.Check(447, "k");
  EXPECT_EQ(missing.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(missing.message().find("takes 448"), absl::string_view::npos) << missing;
}

TEST_F(ParameterLayoutTest, AWorkersArgumentsFollowItsHeader) {
  ASSERT_TRUE(Read({{0, kHeader}, {176, 448}}, 1).ok());
  EXPECT_EQ(layout_.header_bytes(), kHeader);
  EXPECT_EQ(OffsetOf(1), 0U);
  EXPECT_TRUE(layout_.Check(448, "k").ok());
  EXPECT_FALSE(layout_.Check(447, "k").ok());
}

TEST_F(ParameterLayoutTest, AStructWithoutMembersNeedsNoBytes) {
  ASSERT_TRUE(Read({{0, kHeader}, {128, 1}}, 1).ok());
  EXPECT_TRUE(layout_.Check(0, "k").ok());
  layout_.Fill(nullptr, addresses_);
  EXPECT_NE(addresses_[1], nullptr);
}

TEST_F(ParameterLayoutTest, TooManyParametersAreRefused) {
  const std::vector<std::pair<size_t, size_t>> many(kParametersMax + 1, {0, 1});
  EXPECT_EQ(Read(many, 0).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace gpushare::cuda
