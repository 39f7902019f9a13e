// `gpushare calibrate` on the simulated device: the table, the profile, resuming, bad input.

#include "tools/gpushare/profile/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"
#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/command/command.h"
#include "tools/gpushare/profile/calibrate_kernels.h"
#include "tools/gpushare/profile/profile_files.h"

namespace gpushare::tool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CalibrateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.device.device = "sim";
    const char* scenarios = std::getenv("GPUSHARE_TEST_SCENARIOS");
    ASSERT_NE(scenarios, nullptr) << "the test needs the folder of the scenarios";
    // The prototype's profile has the figures that this test expects, unlike the built-in one.
    options_.device.profile = std::string(scenarios) + "/../../profiles/h200_prototype.json";
    options_.out = folder_ + "/deep/profile.json";
    options_.kernels = {"sincos_267us", "decode16"};
  }

  nlohmann::json Kernel(const std::string& name) const {
    std::ifstream in(options_.out);
    const nlohmann::json profile = nlohmann::json::parse(in);
    for (const nlohmann::json& kernel : profile.at("kernels")) {
      if (kernel.at("name") == name) return kernel;
    }
    return nullptr;
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  CalibrateOptions options_;
};

TEST_F(CalibrateTest, PrintsWhatItMeasuredAndWritesAProfile) {
  const std::string text = Calibrate(options_);
  EXPECT_THAT(text, HasSubstr("SIMULATED"));
  EXPECT_THAT(text, HasSubstr("sincos_267us"));
  EXPECT_THAT(text, ::testing::ContainsRegex("267 us   8     [0-9]    0.50 % +[0-9]+ "));
  EXPECT_THAT(text, HasSubstr("compute"));
  EXPECT_THAT(text, HasSubstr("84 108"));  // the knees of decode16
  EXPECT_THAT(text, HasSubstr("Profile: " + options_.out));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("Note")));
  EXPECT_NEAR(Kernel("sincos_267us").at("simulation").at("block_task_ns").get<double>(), 267000,
              3000);
  EXPECT_EQ(Kernel("decode16").at("simulation").at("speed").size(), 31u);
  EXPECT_FALSE(std::filesystem::exists(options_.out + ".partial"));
  // A value above what the simulated device accepts.
  std::ifstream in(options_.out);
  const nlohmann::json record = nlohmann::json::parse(in).at("calibration");
  ASSERT_EQ(record.at("kernels").size(), 2u);
  EXPECT_EQ(record.at("kernels")[0].at("name"), "sincos_267us");
  EXPECT_EQ(record.at("kernels")[0].at("intensity"), "compute");
  const int64_t slice = record.at("kernels")[0].at("slice_block_tasks");
  EXPECT_GT(slice, 0);
  EXPECT_LE(slice, 8 * 132);
  ASSERT_EQ(record.at("co_resident").size(), 1u);
  EXPECT_EQ(record.at("co_resident")[0].at("first"), "decode16");
  EXPECT_EQ(record.at("co_resident")[0].at("second"), "sincos_267us");
  EXPECT_EQ(record.at("copies").size(), 4u * 8u);
}

TEST_F(CalibrateTest, TheWholeIsBoundedInTimeAndAnotherCallGoesOn) {
  options_.total_time_ns = 1'000'000'000;
  std::string text = Calibrate(options_);
  EXPECT_THAT(text, HasSubstr("The time of 1 s in all was over; not reached: "));
  EXPECT_THAT(text, HasSubstr("decode16 + sincos_267us"));
  EXPECT_THAT(text,
              HasSubstr(options_.out + ".partial, from which the same command with --resume"));
  EXPECT_TRUE(std::filesystem::exists(options_.out));
  options_.resume = true;
  int calls = 1;
  while (std::filesystem::exists(options_.out + ".partial") && calls < 10) {
    text = Calibrate(options_);
    ++calls;
  }
  EXPECT_GT(calls, 1);
  EXPECT_LT(calls, 10);
  EXPECT_THAT(text, ::testing::Not(HasSubstr("was over")));
  EXPECT_THAT(text, HasSubstr("(kept)"));
  EXPECT_EQ(Kernel("decode16").at("name"), "decode16");
  EXPECT_EQ(Kernel("sincos_267us").at("name"), "sincos_267us");
}

TEST(ChooseKernelsTest, NamesRestrictTheProfileAndTheCatalogue) {
  KernelChoice choice;
  choice.profile = {"a", "b"};
  choice.catalogue = {"b", "c", "d"};
  EXPECT_THAT(ChooseKernels(choice), ElementsAre("a", "b"));
  choice.with_catalogue = true;
  EXPECT_THAT(ChooseKernels(choice), ElementsAre("a", "b", "c", "d"));
  choice.asked = {"d", "a"};
  EXPECT_THAT(ChooseKernels(choice), ElementsAre("d", "a"));
  // Also by name only, and for a kernel that is in neither list but has a program.
  choice.with_catalogue = false;
  choice.asked = {"c", "gemm"};
  choice.others = {"c", "gemm"};
  EXPECT_THAT(ChooseKernels(choice), ElementsAre("c", "gemm"));
}

TEST(ChooseKernelsTest, AnUnknownNameAndATwinAreRefusedWithWhatIsAllowed) {
  KernelChoice choice;
  choice.profile = {"a", "b"};
  choice.catalogue = {"c"};
  const auto message = [&] {
    try {
      ChooseKernels(choice);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const bool with : {false, true}) {
    choice.with_catalogue = with;
    choice.asked = {"a", "x"};
    EXPECT_THAT(message(), HasSubstr("--kernels has 'x', and the kernels that can be calibrated on "
                                     "this device are a, b, c."));
    choice.asked = {"a", "b", "a"};
    EXPECT_THAT(message(), HasSubstr("--kernels has 'a' twice"));
  }
}

TEST_F(CalibrateTest, AWiderLimitGivesASmallerSlice) {
  options_.kernels = {"sincos_27us"};
  const auto slice_of = [&] {
    Calibrate(options_);
    std::ifstream in(options_.out);
    return nlohmann::json::parse(in)
        .at("calibration")
        .at("kernels")[0]
        .at("slice_block_tasks")
        .get<int64_t>();
  };
  options_.slice_overhead_max = 0.001;
  const int64_t large = slice_of();
  options_.slice_overhead_max = 0.1;
  EXPECT_LT(slice_of(), large);
}

TEST_F(CalibrateTest, AProfileThatWasWrittenIsTheNextBase) {
  Calibrate(options_);
  options_.device.profile = options_.out;
  options_.device.tier = "block";
  options_.kernels = {"decode16"};
  options_.out = folder_ + "/again.json";
  EXPECT_THAT(Calibrate(options_), HasSubstr("84 108"));
}

TEST_F(CalibrateTest, ResumesFromACheckpoint) {
  // A checkpoint of another GPU shows that --resume, and nothing else, reads the checkpoint.
  Calibrate(options_);
  std::ofstream(options_.out + ".partial") << "{}";
  EXPECT_NO_THROW(Calibrate(options_));
  std::ofstream(options_.out + ".partial") << "{}";
  options_.resume = true;
  try {
    Calibrate(options_);
    FAIL() << "a corrupt checkpoint passes";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("is corrupt"));
  }
}

TEST_F(CalibrateTest, RefusesWhatItCannotMeasure) {
  options_.kernels = {"no_such_kernel"};
  EXPECT_THROW(Calibrate(options_), InputError);
  options_.kernels = {"decode16", "decode16"};
  EXPECT_THROW(Calibrate(options_), InputError);
  options_.kernels = {"decode16"};
  options_.device.profile = folder_ + "/none.json";
  EXPECT_THROW(Calibrate(options_), InputError);
}

TEST_F(CalibrateTest, TheCommandTakesItsOptions) {
  const char* const argv[] = {"gpushare", "calibrate", "--device", "sim",   "--kernels",
                              "decode16", "--repeats", "3",        "--out", options_.out.c_str()};
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(RunCommand(10, argv), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("decode16"));
  const char* const bad[] = {"gpushare", "calibrate", "--repeats", "1000"};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunCommand(4, bad), 2);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("--repeats is 1000"));
  for (const char* option : {"--seconds", "--slice-percent"}) {
    const char* const wrong[] = {"gpushare", "calibrate", option, "0"};
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(RunCommand(4, wrong), 2);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(std::string(option) + " is"));
  }
}

class CalibrateLikeTest : public CalibrateTest {
 protected:
  void SetUp() override {
    CalibrateTest::SetUp();
    base_ = std::string(std::getenv("GPUSHARE_TEST_SCENARIOS")) + "/../../profiles/h200.json";
  }
  // The exit code of `calibrate` into the profile of the test; `text` gets both outputs.
  int Run(std::vector<const char*> words) {
    words.insert(words.begin(), {"gpushare", "calibrate", "--out", options_.out.c_str()});
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = RunCommand(static_cast<int>(words.size()), words.data());
    text_ = ::testing::internal::GetCapturedStdout() + ::testing::internal::GetCapturedStderr();
    return code;
  }

  std::string base_;
  std::string text_;
};

TEST_F(CalibrateLikeTest, ANewKernelIsFilledAtOnceAsProfileLikeFillsIt) {
  ASSERT_EQ(Run({"--like", "sincos", "--kernels", "mine", "--profile", base_.c_str()}), 0) << text_;
  EXPECT_THAT(text_, HasSubstr("mine is like sincos, with"));
  EXPECT_FALSE(std::filesystem::exists(options_.out + ".partial"));
  const std::string other = folder_ + "/other.json";
  LikeKernel(base_, "mine", "sincos", "", other);
  std::ifstream filled(options_.out);
  std::ifstream expected(other);
  EXPECT_EQ(nlohmann::json::parse(filled), nlohmann::json::parse(expected));
  EXPECT_EQ(Kernel("mine").at("simulation"), Kernel("sincos").at("simulation"));
}

TEST_F(CalibrateLikeTest, CountersScaleTheRecordAndChooseTheKernel) {
  const std::string samples = folder_ + "/samples.jsonl";
  std::ofstream(samples)
      << R"({"samples_version":1,"gpu_model":"NVIDIA H200","sm_count":132,"simulated":false})"
      << "\n"
      << R"({"what":"counters","kernel":"mine","form":"original","block_tasks":1000,)"
      << R"("counters":[{"name":"instructions","value":37472000},{"name":"issue","value":0.6},)"
      << R"({"name":"alu","value":0.34},{"name":"fma","value":0.3},)"
      << R"({"name":"special","value":0.86}]})"
      << "\n";
  ASSERT_EQ(Run({"--counters", samples.c_str(), "--kernels", "mine", "--profile", base_.c_str()}),
            0)
      << text_;
  EXPECT_THAT(text_, HasSubstr("mine is like sincos"));
  EXPECT_EQ(Kernel("mine").at("counters").at("instructions"), 37472.0);
  const auto time = [&](const char* name) {
    return Kernel(name).at("simulation").at("block_task_ns").get<double>();
  };
  EXPECT_NEAR(time("mine") / time("sincos"), 2, 0.02);  // sincos: 18,736 instructions at 0.5975
}

TEST_F(CalibrateLikeTest, WhatDoesNotGoWithItIsRefusedAndNamed) {
  const char* const base = base_.c_str();
  const auto refused = [&](std::vector<const char*> more, const char* message) {
    more.insert(more.end(), {"--like", "sincos"});
    EXPECT_EQ(Run(more), 2);
    EXPECT_THAT(text_, HasSubstr(message));
  };
  refused({"--profile", base}, "--like needs --kernels with one name");
  refused({"--profile", base, "--kernels", "a,b"}, "the kernel to fill, and it has 2.");
  refused({"--kernels", "mine"}, "--like needs --profile");
  refused({"--profile", base, "--kernels", "sincos"}, "'sincos' has a record");
  for (const char* flag : {"--catalogue", "--shapes", "--resume"}) {
    refused({"--profile", base, "--kernels", "mine", flag},
            (std::string(flag) + " does not go with it.").c_str());
  }
  for (const char* option :
       {"--samples", "--repeats", "--seconds-per-kernel", "--seconds", "--slice-percent"}) {
    refused({"--profile", base, "--kernels", "mine", option, "3"},
            (std::string(option) + " does not go with it.").c_str());
  }
  EXPECT_EQ(Run({"--like", "none", "--profile", base, "--kernels", "mine"}), 2);
  EXPECT_THAT(text_, HasSubstr("The profile has no kernel 'none' to be like."));
  EXPECT_FALSE(std::filesystem::exists(options_.out));
}

TEST_F(CalibrateTest, SamplesAreAppended) {
  options_.samples = folder_ + "/samples.jsonl";
  Calibrate(options_);
  std::ifstream in(options_.samples);
  std::string head;
  std::getline(in, head);
  EXPECT_THAT(head, HasSubstr(R"("simulated":true)"));
  std::string row;
  EXPECT_TRUE(std::getline(in, row));
}

TEST_F(CalibrateTest, ShapesAndQueriesNeedAGpuAndAFileForTheirRows) {
  const std::string samples = folder_ + "/samples.jsonl";
  for (const char* instead :
       {"--shapes", "--drawn-shapes", "--placed-shapes", "--blind-shapes", "--queries"}) {
    const auto run = [instead](std::vector<const char*> words) {
      words.insert(words.begin(), {"gpushare", "calibrate", "--device", "sim", instead});
      return RunCommand(static_cast<int>(words.size()), words.data());
    };
    EXPECT_EQ(run({}), 2) << instead;
    EXPECT_EQ(run({"--samples", samples.c_str()}), 2) << instead;
    EXPECT_EQ(run({"--samples", samples.c_str(), "--catalogue"}), 2) << instead;
    const char* other = std::string(instead) == "--queries" ? "--shapes" : "--queries";
    EXPECT_EQ(run({"--samples", samples.c_str(), other}), 2) << instead;
  }
  EXPECT_FALSE(std::filesystem::exists(samples));
}

}  // namespace
}  // namespace gpushare::tool
