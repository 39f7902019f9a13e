// `gpushare datacenter` as a user runs it, on a warehouse of a few GPUs.

#include "tools/gpushare/datacenter/datacenter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"
#include "tests/tools/run_tool.h"
#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/library.h"
#include "tools/gpushare/datacenter/finished_gpus.h"
#include "tools/gpushare/datacenter/gpu_run.h"
#include "tools/gpushare/datacenter/slot.h"
#include "tools/gpushare/datacenter/warehouse.h"
#include "tools/gpushare/datacenter/warehouse_text.h"
#include "tools/gpushare/workloads/workloads.h"

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
  for (const size_t row : {2U, 3U}) {
    const Json& adaptive = result.at("rows")[row];
    EXPECT_EQ(adaptive.at("policy"), "adaptive");
    EXPECT_EQ(adaptive.at("lc_apps").at("violated"), 0);
    EXPECT_GT(adaptive.at("be_time"), 0.4);
    EXPECT_LT(adaptive.at("be_time"), 1.2);
  }
  ASSERT_EQ(result.at("checks").size(), 2U);
  EXPECT_EQ(result.at("checks")[1].at("violated_checked"), 0);
  const Json seeded = Json::parse(RunTool(With({"--json", "--seed", "2"})).out);
  for (const size_t row : {0U, 1U, 2U, 3U}) {
    EXPECT_NE(seeded.at("rows")[row].at("be_time"), result.at("rows")[row].at("be_time"));
  }
}

// The check has the arrivals of the row: only what the tier `kernel` gives up may differ.
TEST_F(DatacenterTest, ACheckRunsInTheTierBlock) {
  const auto check = [&](const std::string& tier) {
    const Answer answer = RunTool(With({"--json", "--policy", "adaptive", "--placement", "random",
                                        "--tier", tier, "--check", "4"}));
    EXPECT_EQ(answer.code, 0) << answer.err;
    return Json::parse(answer.out).at("checks")[0];
  };
  const Json block = check("block");
  EXPECT_EQ(block.at("p99_difference_max"), 0);
  EXPECT_EQ(block.at("be_time_difference_max"), 0);
  const Json kernel = check("kernel");
  EXPECT_GT(kernel.at("be_time_difference_max"), 0);
  EXPECT_LT(kernel.at("be_time_difference_max"), 0.05);
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
  // Pairs that no run would give show that kept ones are taken as they are: GPUs are drawn from
  // them.
  const FinishedGpus real = finished;
  for (SlotRun& slot : finished.pairs.at("adaptive").slots()) slot.be_time = 7;
  finished.pairs.at("adaptive").slots()[0].latencies_ns.clear();  // no query arrived
  SaveFinished(partial_, finished, made_with_);
  finished = LoadFinished(partial_, warehouse_, made_with_);
  options_.tables = true;
  EXPECT_EQ(RunDatacenter(warehouse_, options_).rows.at(0).be_time, 7);
  options_.tables = false;
  finished = real;
  // A figure that no run would give shows that a finished GPU is taken as it is.
  GpuFigures marked;
  marked.latency = {1, 1, 2'000'000'000, 1'000'000};
  marked.colocations = {{marked.latency, 0.5}};
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
  refused({"--placement", "random,random"}, "--placement names 'random' twice");
  refused({"--placement", "assigned", "--check", "1"}, "--check is 1");
  refused({"--policy", "besst"}, "besst");
  refused({"--policy", "partitioned"}, "runs periodic apps by a plan");
  refused({"--tier", "warp"}, "--tier");
  EXPECT_THAT(RunTool(With({"--json", "--resume"})).err, HasSubstr("--resume needs --out"));
  std::ofstream(file_) << R"({"datacenter": 3})";
  refused({}, "datacenter");
  const Answer colocate = RunTool({"datacenter", profile_});
  EXPECT_EQ(colocate.code, 2);
  EXPECT_THAT(colocate.err, HasSubstr("'datacenter' is missing"));
}

// Slots by themselves, without the command.
class SlotTest : public DatacenterTest {
 protected:
  void SetUp() override {
    DatacenterTest::SetUp();
    warehouse_ = LoadWarehouse(file_);
    device_.device = "sim";
    device_.tier = "kernel";
    device_.profile = warehouse_.apps.profile;
    {
      const RuntimeHandle runtime = OpenRuntime(device_, "bare");
      workloads_ = MakeWorkloads(FactsOf(runtime.get()));
    }
    runner_ = std::make_unique<SlotRunner>(warehouse_, device_, *workloads_, stop_);
  }

  void Measure(size_t policies) {
    runner_->Measure(policies, 2, stop_, [](const std::string&) {});
  }
  void ExpectRefused(size_t policies, const std::string& part) {
    try {
      Measure(policies);
      ADD_FAILURE() << "accepted: " << part;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }

  Warehouse warehouse_;
  DeviceChoice device_;
  std::unique_ptr<Workloads> workloads_;
  std::atomic<bool> stop_{false};
  std::unique_ptr<SlotRunner> runner_;
};

TEST_F(SlotTest, ASlotWithoutAnArrivalHasNoQueryAndIsOfTheBeWork) {
  Measure(1);
  warehouse_.services[0].load = 1e-6;  // a query in minutes
  const SlotRun beside = runner_->Run({0, 0, "adaptive", "kernel", 1});
  EXPECT_TRUE(beside.latencies_ns.empty());
  EXPECT_NEAR(beside.be_time, 1, 0.1);
  EXPECT_TRUE(runner_->Run({0, kNoBe, "bare", "kernel", 1}).latencies_ns.empty());
}

// All arrivals and devices would be alike if a part of the seed were dropped.
TEST_F(SlotTest, EachGpuAndEachSlotDrawsArrivalsOfItsOwn) {
  Measure(1);
  const RunContext context{warehouse_, *runner_, "kernel", 1, stop_, [](const std::string&) {}};
  const GpuFigures first = SimulateGpu(context, {0, 0, {0, 0}}, "adaptive");
  EXPECT_EQ(SimulateGpu(context, {0, 0, {0, 0}}, "adaptive"), first);
  EXPECT_NE(first.colocations[0], first.colocations[1]);
  const GpuFigures second = SimulateGpu(context, {0, 1, {0, 0}}, "adaptive");
  EXPECT_NE(second.colocations[0], first.colocations[0]);
  EXPECT_NE(second.colocations[0], first.colocations[1]);
}

TEST_F(SlotTest, KeptQueriesAreBoundedOverAllPolicies) {
  Measure(1);
  double queries = 0;
  for (size_t i = 0; i < warehouse_.services.size(); ++i) {
    queries += static_cast<double>(warehouse_.slot_ns) * warehouse_.services[i].load /
               static_cast<double>(runner_->SoloNs(static_cast<int32_t>(i)));
  }
  // 6,000,000 queries under one policy, and the limit is 10,000,000.
  warehouse_.table_runs =
      static_cast<int64_t>(6e6 / queries / static_cast<double>(warehouse_.apps.be.size()));
  EXPECT_NO_THROW(Measure(1));
  ExpectRefused(2, "under 2 policies have 1.2e+07 queries");
}

TEST_F(SlotTest, BatchesAndNotTheirQueriesMustBeMany) {
  warehouse_.apps.lc[0].arrivals.kind = ArrivalKind::kBatches;
  warehouse_.apps.lc[0].arrivals.batch_size = 1;
  Measure(1);
  warehouse_.apps.lc[0].arrivals.batch_size = 10;
  ExpectRefused(1, "at least 20 batches");
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
