// `gpushare profile`: shown, compared and merged profiles.

#include "tools/gpushare/profile/profile_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"
#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/command/command.h"

namespace gpushare::tool {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

ordered_json Read(const std::string& file) {
  std::ifstream in(file);
  return ordered_json::parse(in);
}

class ProfileFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* scenarios = std::getenv("GPUSHARE_TEST_SCENARIOS");
    ASSERT_NE(scenarios, nullptr) << "the test needs the folder of the scenarios";
    base_ = std::string(scenarios) + "/../../profiles/h200.json";
  }

  std::string Write(const std::string& name, const ordered_json& profile) const {
    std::string file = folder_ + "/" + name;
    std::ofstream(file) << profile.dump(1) << "\n";
    return file;
  }
  // The base with one kernel under another name and one that is twice as slow.
  ordered_json Changed() const {
    ordered_json profile = Read(base_);
    ordered_json& kernels = profile["kernels"];
    ordered_json slow;
    for (ordered_json& kernel : kernels) {
      if (kernel["name"] == "sincos") slow = kernel;
    }
    slow["simulation"]["block_task_ns"] = 2 * slow["simulation"]["block_task_ns"].get<int64_t>();
    ordered_json fresh = slow;
    fresh["name"] = "mine";
    profile["kernels"] = {slow, fresh};
    profile.erase("calibration");
    ordered_json learned = ordered_json::parse(profile["learned"].get<std::string>());
    ordered_json of_sincos = ordered_json::array();
    for (const ordered_json& kernel : learned["kernels"]) {
      if (kernel["name"] == "sincos") of_sincos.push_back(kernel);
    }
    of_sincos[0]["eviction"]["mean_ns"] = 1234000.0;
    learned["kernels"] = of_sincos;
    learned["pairs"] = ordered_json::array();
    profile["learned"] = learned.dump();
    return profile;
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  std::string base_;
};

TEST_F(ProfileFilesTest, ShowsDeviceKernelsAndRecords) {
  const std::string text = ShowProfile(base_);
  EXPECT_THAT(text, HasSubstr("NVIDIA H200, 132 SMs"));
  EXPECT_THAT(text, ::testing::ContainsRegex("sincos +kernel +-? *[0-9.]* ?[mu]?s? +[0-9.]+ us"));
  EXPECT_THAT(text, HasSubstr("calibrated fused        106"));
  EXPECT_THAT(text, HasSubstr("learned    pairs        1930"));
}

TEST_F(ProfileFilesTest, AProfileDoesNotDifferFromItself) {
  EXPECT_THAT(DiffProfiles(base_, base_), HasSubstr("No measured value differs by more than 2 %"));
}

TEST_F(ProfileFilesTest, DifferencesAreNamed) {
  const std::string text = DiffProfiles(base_, Write("changed.json", Changed()));
  EXPECT_THAT(text, ::testing::ContainsRegex("sincos +block_task_ns +[0-9]+ -> [0-9]+"));
  EXPECT_THAT(text, ::testing::ContainsRegex("sincos +eviction mean_ns +[0-9.]+ -> 1.234e.06"));
  EXPECT_THAT(text, HasSubstr("mine: only in"));
  EXPECT_THAT(text, HasSubstr("streaming: only in"));
  EXPECT_THAT(text, Not(HasSubstr("speed on")));
}

TEST_F(ProfileFilesTest, MergingKeepsWhatOnlyOneHas) {
  const std::string out = folder_ + "/merged.json";
  const std::string summary = MergeProfiles(base_, Write("changed.json", Changed()), out);
  EXPECT_THAT(summary, HasSubstr("kernels: 2, of which 1 are new"));
  const ordered_json base = Read(base_);
  const ordered_json merged = Read(out);
  EXPECT_EQ(merged["kernels"].size(), base["kernels"].size() + 1);
  EXPECT_EQ(merged["calibration"], base["calibration"]);
  const std::string left = DiffProfiles(folder_ + "/changed.json", out);
  EXPECT_THAT(left, Not(HasSubstr("sincos ")));  // OTHER's values count
  EXPECT_THAT(left, HasSubstr("streaming: only in " + out));
  const ordered_json learned = ordered_json::parse(merged["learned"].get<std::string>());
  EXPECT_EQ(learned["pairs"].size(), 1930U);
}

TEST_F(ProfileFilesTest, WhatWasLearnedOfAReplacedKernelGoesWithIt) {
  ordered_json changed = Changed();
  changed.erase("learned");
  const std::string out = folder_ + "/merged.json";
  MergeProfiles(base_, Write("changed.json", changed), out);
  const ordered_json learned = ordered_json::parse(Read(out)["learned"].get<std::string>());
  EXPECT_EQ(learned["kernels"].size(), 58U);  // of 59
  for (const ordered_json& kernel : learned["kernels"]) EXPECT_NE(kernel["name"], "sincos");
}

TEST_F(ProfileFilesTest, WhatIsNoProfileOfThisGpuIsRefused) {
  ordered_json other = Changed();
  other["device"]["gpu_model"] = "NVIDIA A100";
  const std::string out = folder_ + "/merged.json";
  EXPECT_THROW(MergeProfiles(base_, Write("other.json", other), out), InputError);
  std::ofstream(folder_ + "/broken.json") << "{}";
  EXPECT_THROW(ShowProfile(folder_ + "/broken.json"), InputError);
  EXPECT_THROW(MergeProfiles(base_, folder_ + "/broken.json", out), InputError);
  EXPECT_THROW(ShowProfile(folder_ + "/none.json"), InputError);
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(ProfileFilesTest, TheCommandRefusesWhatDoesNotGoTogether) {
  const auto run = [](std::vector<const char*> words) {
    words.insert(words.begin(), {"gpushare", "profile"});
    return RunCommand(static_cast<int>(words.size()), words.data());
  };
  EXPECT_EQ(run({"show", base_.c_str()}), 0);
  EXPECT_EQ(run({"show", base_.c_str(), base_.c_str()}), 2);
  EXPECT_EQ(run({"diff", base_.c_str()}), 2);
  EXPECT_EQ(run({"merge", base_.c_str(), base_.c_str()}), 2);
  EXPECT_EQ(run({"diff", base_.c_str(), base_.c_str(), "--out", "x"}), 2);
  EXPECT_EQ(run({"eat", base_.c_str()}), 2);
}

// A profile that is trained with what a simulated calibration measured.
TEST_F(ProfileFilesTest, SamplesTrainAProfile) {
  const std::string samples = folder_ + "/samples.jsonl";
  {
    std::ofstream out(samples);
    out << R"({"samples_version":1,"gpu_model":"NVIDIA H200","sm_count":132,"simulated":false})"
        << "\n";
    for (const char* repeats : {"[1000000,1010000,990000]", "[1005000]"}) {
      out << R"({"what":"solo","kernel":"be_saxpy","form":"original","block_tasks":50000,)"
          << R"("sms":132,"workers_per_sm":0,"ns":)" << repeats << "}\n";
    }
    out << R"({"what":"counters","kernel":"be_saxpy","form":"original","block_tasks":1000,)"
        << R"("counters":[{"name":"instructions","value":64000},{"name":"issue","value":0.25},)"
        << R"({"name":"dram","value":0.5}]})"
        << "\n";
  }
  const std::string out = folder_ + "/trained.json";
  EXPECT_THAT(TrainProfile(base_, samples, false, out), HasSubstr("Profile: " + out));
  const auto find = [&](const ordered_json& list) {
    return *std::find_if(list.begin(), list.end(),
                         [](const ordered_json& one) { return one["name"] == "be_saxpy"; });
  };
  const ordered_json before = find(Read(base_)["kernels"]);
  ordered_json kernel = find(Read(out)["kernels"]);
  EXPECT_EQ(kernel["counters"]["instructions"], 64.0);
  EXPECT_EQ(kernel["simulation"]["demand"], before["simulation"]["demand"]);
  const ordered_json learned = ordered_json::parse(Read(out)["learned"].get<std::string>());
  EXPECT_EQ(find(learned["kernels"])["solo"]["samples"], 4);
  EXPECT_EQ(learned["pairs"].size(), 1930U);
  TrainProfile(out, samples, true, out);
  kernel = find(Read(out)["kernels"]);
  EXPECT_EQ(kernel["simulation"]["demand"]["issue"], 0.25);
  EXPECT_EQ(kernel["simulation"]["demand"]["dram"], 0.5);
  EXPECT_THROW(TrainProfile(base_, base_, false, out), InputError);
}

TEST_F(ProfileFilesTest, ANewKernelIsLikeANamedOne) {
  const std::string out = folder_ + "/like.json";
  EXPECT_THAT(LikeKernel(base_, "mine", "sincos", "", out), HasSubstr("mine is like sincos, with"));
  const ordered_json profile = Read(out);
  EXPECT_EQ(profile["kernels"].back()["name"], "mine");
  EXPECT_EQ(profile["kernels"].back()["simulation"]["block_task_ns"], 17581);
  EXPECT_THAT(DiffProfiles(base_, out), HasSubstr("mine: only in " + out));
  EXPECT_THROW(LikeKernel(out, "mine", "sincos", "", out), InputError);  // it has a record
  EXPECT_THROW(LikeKernel(base_, "mine", "none", "", out), InputError);
}

TEST_F(ProfileFilesTest, ArgumentsThatDoNotGoTogetherAreRefused) {
  const std::vector<std::vector<const char*>> all = {
      {"gpushare", "profile", "train", base_.c_str(), "--out", "x"},
      {"gpushare", "profile", "train", base_.c_str(), base_.c_str()},
      {"gpushare", "profile", "like", base_.c_str(), "--out", "x"},
      {"gpushare", "profile", "like", base_.c_str(), "--kernel", "mine"},
      {"gpushare", "profile", "show", base_.c_str(), "--kernel", "mine"},
      {"gpushare", "profile", "merge", base_.c_str(), base_.c_str(), "--out", "x",
       "--replace-demands"},
  };
  for (const std::vector<const char*>& arguments : all) {
    EXPECT_EQ(RunCommand(static_cast<int>(arguments.size()), arguments.data()), 2) << arguments[2];
  }
}

}  // namespace
}  // namespace gpushare::tool
