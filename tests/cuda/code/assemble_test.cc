// Which assembler makes the code, what is kept of it, and that nvJitLink makes code that says so.

#include "src/cuda/code/assemble.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/cuda/code/nvjitlink.h"
#include "tests/temporary_folder.h"

namespace gpushare::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kScale[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 out, .param .f32 factor)
{
  .reg .b64 %rd<2>;
  .reg .f32 %f<3>;
  ld.param.u64 %rd1, [out];
  ld.param.f32 %f1, [factor];
  ld.global.f32 %f2, [%rd1];
  mul.f32 %f2, %f2, %f1;
  st.global.f32 [%rd1], %f2;
  ret;
}
)";

// What the fakes were asked, and what they answer.
struct Fakes {
  std::vector<std::string> asked;
  absl::Status refusal;  // of the first one
};

class FakeAssembler : public Assembler {
 public:
  FakeAssembler(Fakes& fakes, std::string name, absl::Status& refusal)
      : fakes_(fakes), name_(std::move(name)), refusal_(refusal) {}
  std::string Name() const override { return name_; }
  std::string Options() const override { return "-O3"; }
  absl::StatusOr<std::string> Assemble(absl::string_view text,
                                       absl::string_view architecture) const override {
    fakes_.asked.push_back(name_);
    if (!refusal_.ok()) return refusal_;
    return name_ + " " + std::string(architecture) + " " + std::string(text);
  }

 private:
  Fakes& fakes_;
  const std::string name_;
  absl::Status& refusal_;
};

class AssemblyTest : public testing::Test {
 protected:
  AssemblyTest() {
    assembly_.Add(std::make_unique<FakeAssembler>(fakes_, "first", fakes_.refusal));
    assembly_.Add(std::make_unique<FakeAssembler>(fakes_, "second", second_refusal_));
  }
  absl::Status Make(absl::string_view text = "text") {
    return assembly_.Make(text, "twins", [this](absl::string_view code) {
      loaded_.emplace_back(code);
      return std::exchange(load_, absl::OkStatus());
    });
  }

  Fakes fakes_;
  absl::Status second_refusal_;
  const TemporaryFolder folder_;
  Assembly assembly_{CodeCache(folder_.path() + "/code"), "sm_90a"};
  std::vector<std::string> loaded_;
  absl::Status load_;  // the next load's result
};

TEST_F(AssemblyTest, ATextIsAssembledOnce) {
  ASSERT_TRUE(Make().ok());
  ASSERT_TRUE(Make().ok());
  EXPECT_THAT(fakes_.asked, ElementsAre("first"));
  EXPECT_THAT(loaded_, ElementsAre("first sm_90a text", "first sm_90a text"));
  ASSERT_TRUE(Make("other").ok());
  EXPECT_THAT(fakes_.asked, ElementsAre("first", "first"));
}

TEST_F(AssemblyTest, WhatOneRefusesTheNextAssembles) {
  fakes_.refusal = absl::InvalidArgumentError("The version is too new.");
  ASSERT_TRUE(Make().ok());
  EXPECT_THAT(loaded_, ElementsAre("second sm_90a text"));
  second_refusal_ = absl::InvalidArgumentError("There is no such instruction.");
  EXPECT_TRUE(Make().ok()) << "the second one's code is kept";
  const absl::Status status = Make("other");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "first: The version is too new. second: There is no such instruction.");
}

TEST_F(AssemblyTest, CodeThatTheDriverDoesNotLoadIsNotKept) {
  load_ = absl::InternalError("no binary for this GPU");
  ASSERT_TRUE(Make().ok());
  EXPECT_THAT(loaded_, ElementsAre("first sm_90a text", "second sm_90a text"));
  ASSERT_TRUE(Make().ok());
  EXPECT_THAT(fakes_.asked, ElementsAre("first", "second", "first"));
  load_ = absl::InternalError("no binary for this GPU");
  ASSERT_TRUE(Make().ok()) << "the kept code of the first is dropped and made again";
  EXPECT_THAT(fakes_.asked, ElementsAre("first", "second", "first", "first"));
}

TEST_F(AssemblyTest, ALostDeviceGetsNoFurtherCode) {
  load_ = absl::DataLossError("lost");
  EXPECT_EQ(Make().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(loaded_.size(), 1u);
}

TEST_F(AssemblyTest, WhatIsNoFaultOfTheCodeEndsTheSearchAndKeepsTheEntry) {
  ASSERT_TRUE(Make().ok());
  for (const absl::Status& failed : {absl::FailedPreconditionError("It has variables."),
                                     absl::ResourceExhaustedError("There is no memory.")}) {
    load_ = failed;
    EXPECT_EQ(Make(), failed) << "kept code, and the status as it is";
    load_ = failed;
    EXPECT_EQ(Make("other"), failed) << "new code";
  }
  EXPECT_THAT(fakes_.asked, ElementsAre("first", "first", "first")) << "nobody asks the second one";
  EXPECT_TRUE(Make().ok());
  EXPECT_THAT(fakes_.asked, ElementsAre("first", "first", "first")) << "the entry is still there";
}

TEST(AssembleTest, WithoutAnAssemblerNothingIsMade) {
  const Assembly assembly(CodeCache(""), "sm_90a");
  const auto load = [](absl::string_view) { return absl::OkStatus(); };
  EXPECT_EQ(assembly.Make("text", "twins", load).code(), absl::StatusCode::kUnavailable);
}

TEST(AssembleTest, ArchitecturesHaveTheirOwnInstructionsFromHopperOn) {
  EXPECT_EQ(ArchitectureOf(8, 0), "sm_80");
  EXPECT_EQ(ArchitectureOf(8, 9), "sm_89");
  EXPECT_EQ(ArchitectureOf(9, 0), "sm_90a");
  EXPECT_EQ(ArchitectureOf(12, 0), "sm_120a");
}

TEST(AssembleTest, AnExcerptIsOneShortLine) {
  EXPECT_EQ(Excerpt(" error: a\n\n  error: b\r\n"), "error: a; error: b");
  EXPECT_EQ(Excerpt(""), "");
  EXPECT_LE(Excerpt(std::string(5000, 'x')).size(), 300u);
}

TEST(NvJitLinkTest, MakesCodeOfATextAndSaysWhyNot) {
  const absl::StatusOr<std::unique_ptr<Assembler>> opened = OpenNvJitLink();
  if (!opened.ok()) GTEST_SKIP() << opened.status().message();
  EXPECT_THAT((*opened)->Name(), testing::StartsWith("nvJitLink 1"));
  const absl::StatusOr<std::string> code = (*opened)->Assemble(kScale, "sm_90a");
  ASSERT_TRUE(code.ok()) << code.status();
  ASSERT_GT(code->size(), 64u);
  EXPECT_EQ(code->substr(1, 3), "ELF");
  uint16_t machine = 0;
  std::memcpy(&machine, code->data() + 18, sizeof(machine));
  EXPECT_EQ(machine, 190) << "EM_CUDA";
  EXPECT_NE(code->find("scale"), std::string::npos);
  std::string wrong = kScale;
  wrong.replace(wrong.find("mul.f32"), 7, "mul.f99");
  const absl::Status status = (*opened)->Assemble(wrong, "sm_90a").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(status.message(), HasSubstr("f99"));
  EXPECT_FALSE((*opened)->Assemble("", "sm_90a").ok());
  EXPECT_FALSE((*opened)->Assemble(kScale, "sm_999a").ok());
  for (const char* const bad : {"sm_1", "", "sm_90ab", "compute_90"}) {
    EXPECT_EQ((*opened)->Assemble(kScale, bad).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace gpushare::cuda
