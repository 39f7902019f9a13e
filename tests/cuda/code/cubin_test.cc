// What the sections of a cubin say of its variables, and that broken files are refused.

#include "src/cuda/code/cubin.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/cuda/code/fake_cubin.h"

namespace gpushare::cuda {
namespace {

std::string Variable(const std::string& file) {
  const auto found = VariableOf(file);
  EXPECT_TRUE(found.ok()) << found.status();
  return found.ok() ? *found : "?";
}

TEST(CubinTest, AKernelAloneHasNoVariables) {
  EXPECT_EQ(Variable(Cubin({{".text.softmax"}, {".nv.constant0.softmax"}, {".nv.info"}})), "");
}

TEST(CubinTest, VariablesAreNamedByTheirSection) {
  EXPECT_EQ(Variable(Cubin({{".text.f"}, {".nv.global"}})), ".nv.global");
  EXPECT_EQ(Variable(Cubin({{".nv.constant3"}})), ".nv.constant3");
  EXPECT_EQ(Variable(Cubin({{".nv.global", 0}})), "") << "an empty one holds nothing";
  EXPECT_EQ(Variable(Cubin({{".nv.global.other"}})), "");
}

TEST(CubinTest, StringsAndTablesOfCompilersAreNoVariables) {
  const std::vector<std::string> constants = {".nv.global.init", "assertMessage_0", "_$_str",
                                              "__cudart_i2opi_f"};
  EXPECT_EQ(Variable(Cubin({{".text.f"}, {".nv.global.init", 16, constants}})), "");
  std::vector<std::string> with_one = constants;
  with_one.emplace_back("counter");
  EXPECT_EQ(Variable(Cubin({{".nv.global.init", 16, with_one}})), "counter");
  EXPECT_EQ(Variable(Cubin({{".text.f", 16, {"counter"}}})), "") << "of another section";
  EXPECT_EQ(Variable(Cubin({{".nv.global.init"}})), ".nv.global.init") << "nothing names it";
}

TEST(CubinTest, WhatIsNoCubinIsRefused) {
  const std::string good = Cubin({{".text.f"}});
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_FALSE(VariableOf(absl::MakeConstSpan(good.data(), bytes)).ok()) << bytes;
  }
  EXPECT_FALSE(VariableOf(std::string("// PTX\n.version 8.7\n")).ok());
  std::string other = good;
  other[4] = 1;  // 32 bits
  EXPECT_FALSE(VariableOf(other).ok());
}

TEST(CubinTest, NumbersBeyondTheFileAreRefused) {
  const auto with = [](size_t at, auto value) {
    std::string file = Cubin({{".text.f"}});
    Put(file, at, value);
    return VariableOf(file).status();
  };
  EXPECT_TRUE(absl::IsInvalidArgument(with(0x28, ~uint64_t{0})));      // section headers
  EXPECT_TRUE(absl::IsInvalidArgument(with(0x3c, uint16_t{0xffff})));  // their number
  EXPECT_TRUE(absl::IsInvalidArgument(with(0x3c, uint16_t{0})));
  EXPECT_TRUE(absl::IsInvalidArgument(with(0x3e, uint16_t{3})));   // the names' section
  EXPECT_TRUE(absl::IsInvalidArgument(with(0x3a, uint16_t{63})));  // bytes of a header
  const size_t names = Cubin({{".text.f"}}).size() - 3 * 64;
  EXPECT_TRUE(absl::IsInvalidArgument(with(names + 0x20, ~uint64_t{0})));  // bytes of the names
  EXPECT_TRUE(absl::IsInvalidArgument(with(names, uint32_t{0x7fffffff})));
  EXPECT_TRUE(absl::IsInvalidArgument(with(names + 0x20, uint64_t{3})));  // a name without an end
}

TEST(CubinTest, WhatTheDriverWouldReadLiesInTheFile) {
  const std::string good = Cubin({{".text.f"}});
  const size_t text = good.size() - 64;
  std::string file = good;
  Put<uint64_t>(file, text + 0x20, file.size());
  EXPECT_TRUE(absl::IsInvalidArgument(VariableOf(file).status()));
  Put<uint32_t>(file, text + 4, 8);  // memory without bytes
  EXPECT_TRUE(VariableOf(file).ok());
  file = good;
  Put<uint64_t>(file, 0x20, file.size());
  Put<uint16_t>(file, 0x36, 56);
  Put<uint16_t>(file, 0x38, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(VariableOf(file).status())) << "no such segment header";
  file.append(56, '\0');
  EXPECT_TRUE(VariableOf(file).ok()) << "an empty segment";
  Put<uint64_t>(file, good.size() + 0x20, file.size() + 1);
  EXPECT_TRUE(absl::IsInvalidArgument(VariableOf(file).status()));
}

}  // namespace
}  // namespace gpushare::cuda
