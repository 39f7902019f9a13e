// `gpushare datacenter` as a user runs it, on a warehouse of a few GPUs.

#include "tools/gpushare/datacenter/datacenter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"
#include "tests/tools/run_tool.h"
#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/datacenter/finished_gpus.h"
#include "tools/gpushare/datacenter/warehouse.h"
#include "tools/gpushare/datacenter/warehouse_text.h"

namespace gpushare::tool {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class DatacenterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* scenarios = std::getenv("GPUSHARE_TEST_SCENARIOS");
    ASSERT_NE(scenarios, nullptr) << "the test needs the folder of the scenarios";
    profile_ = std::string(scenarios) + "/../../profiles/h200.json";
    file_ = temporary_.path() + "/small.json";
    std::ofstream(file_) << Scenario(R"("target_solo_factor": 10)");
  }

  std::string Scenario(const std::string& qos) const {
    return R"({"schema_version": 1, "name": "small", "profile": ")" + profile_ +
           R"(", "be_alone_ns": 50000000, "policies": ["bare", "adaptive"],
           "reservation_policies": [],
           "lc": [{"name": "asr", "kernel": "decode16", )" +
           qos + R"(}, {"name": "pos", "kernel": "decode12", )" + qos + R"(}],
           "be": [{"name": "nn", "kernel": "nn", "block_tasks": 36432},
                  {"name": "lava_md", "kernel": "lava_md", "block_tasks": 10560}],
           "datacenter": {"gpus": 4, "be_per_gpu": 2, "slot_ns": 60000000, "loads": [0.4],
                          "table_runs": 2}})";
  }

  std::string Out(const std::string& name) const { return temporary_.path() + "/" + name; }
  std::vector<std::string> With(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"datacenter", file_, "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  const TemporaryFolder temporary_;
  std::string profile_;
  std::string file_;
};

TEST_F(DatacenterTest, ThreadsDoNotChangeTheResultAndAdaptiveKeepsWhatBareBreaks) {
  const Answer one = RunTool(With({"--json", "--threads", "1", "--check", "1"}));
  ASSERT_EQ(one.code, 0) << one.err;
  const Answer two = RunTool(With({"--json", "--threads", "3", "--check", "1"}));
  EXPECT_EQ(one.out, two.out);
  const Json result = Json::parse(one.out);
  EXPECT_EQ(result.at("stamp"), "SIMULATED");
  EXPECT_EQ(result.at("gpus_are"), "simulated");
  ASSERT_EQ(result.at("rows").size(), 4U);
  const Json& bare = result.at("rows")[0];
  EXPECT_EQ(bare.at("policy"), "bare");
  EXPECT_EQ(bare.at("placement"), "random");
  EXPECT_EQ(bare.at("lc_apps").at("violated"), 4);
  EXPECT_EQ(bare.at("colocations").at("count"), 8);
  for (const size_t row : {2, 3}) {
    const Json& adaptive = result.at("rows")[row];
    EXPECT_EQ(adaptive.at("policy"), "adaptive");
    EXPECT_EQ(adaptive.at("lc_apps").at("violated"), 0);
    EXPECT_GT(adaptive.at("be_time"), 0.4);
    EXPECT_LT(adaptive.at("be_time"), 1.2);
  }
  ASSERT_EQ(result.at("checks").size(), 2U);
  EXPECT_EQ(result.at("checks")[1].at("violated_checked"), 0);
  const Answer seeded = RunTool(With({"--json", "--seed", "2"}));
  EXPECT_NE(seeded.out, one.out);
}

TEST_F(DatacenterTest, TablesDrawTenThousandGpusAndFilesAreWritten) {
  const Answer answer =
      RunTool(With({"--tables", "--gpus", "10000", "--policy", "adaptive", "--out", Out("t")}));
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("drawn from 2 runs of each pair"));
  EXPECT_THAT(answer.out, HasSubstr("adaptive, assigned"));
  const Json result = Json::parse(Read(Out("t") + "/datacenter.json"));
  EXPECT_EQ(result.at("gpus_are"), "drawn");
  EXPECT_EQ(result.at("rows")[0].at("lc_apps").at("count"), 10000);
  EXPECT_THAT(Read(Out("t") + "/report.html"), HasSubstr("SIMULATED"));
  EXPECT_THAT(Read(Out("t") + "/figure14.svg"), HasSubstr("<svg xmlns="));
  EXPECT_THAT(Read(Out("t") + "/figure15.svg"), HasSubstr("adaptive, random"));
  EXPECT_FALSE(std::filesystem::exists(Out("t") + "/partial.json"));
}

// A bound is over the p99 alone on the same arrivals, of each slot and of the GPU.
TEST_F(DatacenterTest, ABoundIsJudgedAgainstTheSameArrivalsAlone) {
  std::ofstream(file_) << Scenario(R"("p99_bound": 1.5)");
  const Answer answer = RunTool(With({"--json", "--policy", "adaptive,bare"}));
  ASSERT_EQ(answer.code, 0) << answer.err;
  const Json result = Json::parse(answer.out);
  EXPECT_EQ(result.at("rows")[0].at("lc_apps").at("severe"), 0);
  EXPECT_EQ(result.at("rows")[2].at("lc_apps").at("severe"), 4);
}

// The file of a stopped run, as the run itself saves it.
class ResumeTest : public DatacenterTest {
 protected:
  void SetUp() override {
    DatacenterTest::SetUp();
    warehouse_ = LoadWarehouse(file_);
    warehouse_.placings = {Placing::kRandom};
    options_.policies = {"adaptive"};
    options_.quiet = true;
    options_.save = [&](const FinishedGpus& finished, const std::string& made_with) {
      SaveFinished(partial_, finished, made_with);
      made_with_ = made_with;
    };
    partial_ = temporary_.path() + "/partial.json";
  }

  std::string Run() { return JsonOf(warehouse_, RunDatacenter(warehouse_, options_)); }

  Warehouse warehouse_;
  DatacenterOptions options_;
  std::string partial_;
  std::string made_with_;
};

TEST_F(ResumeTest, WhatIsFinishedIsNotRunAgainAndTheResultIsTheSame) {
  const std::string whole = Run();
  FinishedGpus finished = LoadFinished(partial_, warehouse_, made_with_);
  ASSERT_EQ(finished.pairs.count("adaptive"), 1U);
  EXPECT_TRUE(finished.gpus.empty());  // saved after the pairs; the GPUs took less than an interval
  options_.resume = [&](const std::string&) { return finished; };
  EXPECT_EQ(Run(), whole);
  // A figure that no run would give shows that a finished GPU is taken as it is.
  GpuFigures marked;
  marked.latency = {1, 1, 2'000'000'000, 1'000'000};
  marked.colocations = {{0, marked.latency, 0.5}};
  finished.gpus[RowName("adaptive", Placing::kRandom, 4)][3] = marked;
  SaveFinished(partial_, finished, made_with_);
  finished = LoadFinished(partial_, warehouse_, made_with_);
  EXPECT_EQ(finished.GpuCount(), 1U);
  EXPECT_EQ(finished.gpus.begin()->second.at(3), marked);
  EXPECT_THAT(Run(), HasSubstr("\"worst_excess\": 1999.0"));
}

TEST_F(ResumeTest, AFileThatDoesNotBelongIsRefusedWithWhatDiffers) {
  Run();
  const auto refused = [&](const std::string& part) {
    try {
      LoadFinished(partial_, warehouse_, made_with_);
      ADD_FAILURE() << "accepted: " << part;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  };
  const std::string text = Read(partial_);
  std::ofstream(partial_) << text.substr(0, text.size() / 2);
  refused("corrupt");
  std::string other = text;
  other[other.size() / 2] ^= 1;
  std::ofstream(partial_) << other;
  refused("corrupt");
  std::ofstream(partial_) << "";
  refused("corrupt");
  std::ofstream(partial_) << text;
  EXPECT_NO_THROW(LoadFinished(partial_, warehouse_, made_with_));
  warehouse_.apps.seed = 2;
  made_with_ = MadeWith(warehouse_, "kernel", "h200");
  refused("made with seed 1, and this run has 2");
  EXPECT_TRUE(LoadFinished(temporary_.path() + "/none.json", warehouse_, made_with_).empty());
}

TEST_F(DatacenterTest, BadInputIsOneSentence) {
  const auto refused = [&](const std::vector<std::string>& more, const std::string& part) {
    const Answer answer = RunTool(With(more));
    EXPECT_EQ(answer.code, 2) << part;
    EXPECT_EQ(answer.out, "") << part;
    EXPECT_THAT(answer.err, HasSubstr(part));
  };
  refused({"--gpus", "20000"}, "--tables draws them");
  refused({"--gpus", "100001", "--tables"}, "--gpus is 100001");
  refused({"--placement", "best"}, "--placement names 'best'");
  refused({"--policy", "besst"}, "besst");
  refused({"--tier", "warp"}, "--tier");
  EXPECT_THAT(RunTool(With({"--json", "--resume"})).err, HasSubstr("--resume needs --out"));
  std::ofstream(file_) << R"({"datacenter": 3})";
  refused({}, "datacenter");
  const Answer colocate = RunTool({"datacenter", profile_});
  EXPECT_EQ(colocate.code, 2);
  EXPECT_THAT(colocate.err, HasSubstr("'datacenter' is missing"));
}

TEST_F(DatacenterTest, ASlotWithFewQueriesIsRefused) {
  std::string text = Scenario(R"("target_solo_factor": 10)");
  text.replace(text.find("60000000"), 8, "10000000");
  std::ofstream(file_) << text;
  const Answer answer = RunTool(With({"--json"}));
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.err, HasSubstr("queries in a slot"));
}

}  // namespace
}  // namespace gpushare::tool
