// `gpushare plan` and `gpushare evaluate-planner` as a user runs them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"
#include "tests/tools/run_tool.h"

namespace gpushare::tool {
namespace {

using ::testing::HasSubstr;

class PlanTest : public ::testing::Test {
 protected:
  std::string File(const std::string& text) {
    std::string path = temporary_.path() + "/tasks.json";
    std::ofstream(path) << text;
    return path;
  }

  void ExpectRefusedFile(const std::string& text, const std::string& part) {
    const Answer answer = RunTool({"plan", File(text)});
    EXPECT_EQ(answer.code, 2) << part;
    EXPECT_EQ(answer.out, "") << part;
    EXPECT_THAT(answer.err, HasSubstr(part));
  }

  // One task with these members beside its name.
  static std::string One(const std::string& members) {
    return R"({"sms": 16, "tasks": [{"name": "a", )" + members + "}]}";
  }

  const TemporaryFolder temporary_;
};

constexpr char kTwo[] = R"({"sms": 16, "tasks": [
  {"name": "control", "period_ns": 1000000, "deadline_ns": 600000, "worst_case": {"a_ns": 4000000}},
  {"name": "vision", "period_ns": 30000000, "kind": "memory", "evictable": true,
   "eviction_ns": 20000, "resume_ns": 10000, "worst_case": {"a_ns": 200000000, "b_ns": 1000}}]})";

TEST_F(PlanTest, AdmitsWithABoundForEachTask) {
  const std::string file = File(kTwo);
  const std::string svg = temporary_.path() + "/map.svg";
  const Answer answer = RunTool({"plan", file, "--json", "--svg", svg});
  ASSERT_EQ(answer.code, 0) << answer.err;
  const auto plan = nlohmann::json::parse(answer.out);
  EXPECT_EQ(plan.at("admitted"), true);
  EXPECT_LE(plan.at("planned_sms"), 16);
  int tasks = 0;
  for (const auto& partition : plan.at("partitions")) {
    for (const auto& task : partition.at("tasks")) {
      EXPECT_LE(task.at("worst_case_ns"), task.at("response_bound_ns"));
      EXPECT_LE(task.at("response_bound_ns"), task.at("deadline_ns"));
      ++tasks;
    }
  }
  EXPECT_EQ(tasks, 2);
  std::ifstream map(svg);
  const std::string text((std::istreambuf_iterator<char>(map)), {});
  EXPECT_THAT(text, HasSubstr("control"));
  EXPECT_THAT(text, HasSubstr("</svg>"));
  const Answer table = RunTool({"plan", file});
  EXPECT_THAT(table.out, HasSubstr("Admitted by the evictable analysis"));
  EXPECT_THAT(table.out, HasSubstr("control"));
}

TEST_F(PlanTest, ARefusalIsExitCodeOneWithItsReason) {
  const std::string file = File(kTwo);
  const Answer answer = RunTool({"plan", file, "--reserve-sms", "8"});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.out, HasSubstr("Refused by the evictable analysis."));
  EXPECT_THAT(answer.err, HasSubstr("SMs, and the plan has 8."));
}

TEST_F(PlanTest, BadTaskSetsAreOneSentence) {
  const std::string curve = R"("worst_case": [{"sms": 1, "ns": 5}])";
  ExpectRefusedFile(One(R"("period_ns": 0, )" + curve), "tasks[0].period_ns is 0");
  ExpectRefusedFile(One(R"("period_ns": 10, "deadline_ns": 11, )" + curve),
                    "tasks[0].deadline_ns is 11");
  ExpectRefusedFile(One(R"("period_ns": 10)"), "tasks[0].worst_case is missing");
  ExpectRefusedFile(One(R"("period_ns": 10, "worst_case": [])"), "is empty");
  ExpectRefusedFile(One(R"("period_ns": 10, "worst_case": [{"sms": 17, "ns": 5}])"),
                    "the device's 16");
  ExpectRefusedFile(One(R"("period_ns": 10, "kind": "disk", )" + curve), "'disk'");
  ExpectRefusedFile(One(R"("perod_ns": 10, )" + curve), "there is a key 'perod_ns'");
  ExpectRefusedFile(One(R"("period_ns": 99999999999999999999, )" + curve), "period_ns");
  ExpectRefusedFile(One(R"("period_ns": 10, "resume_ns": 1, )" + curve), "evictable");
  ExpectRefusedFile(R"({"sms": 16, "tasks": []})", "tasks is missing or empty");
  ExpectRefusedFile("{", "not valid JSON");
}

TEST_F(PlanTest, AnInfeasibleDeadlineIsNamed) {
  const Answer answer = RunTool({"plan", File(One(R"("period_ns": 10, "deadline_ns": 4,
                                "worst_case": [{"sms": 1, "ns": 5}])"))});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.out, HasSubstr("Task 'a' takes up to 5 ns on all 16 SMs, and its deadline is "
                                    "4 ns."));
}

// Neither a million tasks nor periods without a common multiple in 64 bits take long.
TEST_F(PlanTest, LargeSetsEndSoon) {
  const auto start = std::chrono::steady_clock::now();
  std::string many = R"({"sms": 16, "tasks": [)";
  for (int i = 0; i < 1'000'000; ++i) many += i == 0 ? "{}" : ",{}";
  ExpectRefusedFile(many + "]}", "1024");
  std::string long_file(size_t{17} << 20, ' ');
  ExpectRefusedFile(long_file, "16777216");
  std::string primes = R"({"sms": 16, "tasks": [)";
  for (int i = 0; i < 1'024; ++i) {
    const std::string period = std::to_string(3'599'990'000'001 + 2LL * i * i);
    primes += std::string(i == 0 ? "" : ",") + R"({"name": "t)" + std::to_string(i) +
              R"(", "period_ns": )" + period + R"(, "worst_case": {"a_ns": 40000000000}})";
  }
  EXPECT_EQ(RunTool({"plan", File(primes + "]}")}).code, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST_F(PlanTest, EvaluationHasTheMembersOfItsSchema) {
  const std::vector<std::string> arguments = {"evaluate-planner",
                                              "--tasks",
                                              "20",
                                              "--utilisation",
                                              "6,12",
                                              "--sets",
                                              "4",
                                              "--sms",
                                              "16",
                                              "--seed",
                                              "1",
                                              "--analysis",
                                              "exclusive",
                                              "--json",
                                              "--quiet"};
  const Answer answer = RunTool(arguments);
  ASSERT_EQ(answer.code, 0) << answer.err;
  const auto result = nlohmann::json::parse(answer.out);
  ASSERT_EQ(result.at("points").size(), 2);
  const auto& point = result.at("points")[0];
  EXPECT_EQ(point.at("utilisation"), 6);
  for (const char* way : {"1G", "one-each", "SMS-ACT", "SMS-INA", "BF-ACT", "BF-INA", "planner"}) {
    EXPECT_GE(point.at("schedulable").at(way), 0);
    EXPECT_LE(point.at("schedulable").at(way), 1);
    EXPECT_GE(point.at("lost_to_1G").at(way), 0);
    EXPECT_GE(point.at("analysis_ms").at(way), 0);
  }
  EXPECT_GE(point.at("prefill_ms"), 0);
  EXPECT_EQ(point.at("schedulable").at("planner"), 1);
  // The same rates again.
  const auto again = nlohmann::json::parse(RunTool(arguments).out);
  EXPECT_EQ(again.at("points")[1].at("schedulable"), result.at("points")[1].at("schedulable"));
}

TEST_F(PlanTest, EvaluationRefusesBadOptions) {
  const auto refused = [](std::vector<std::string> options, const std::string& part) {
    options.insert(options.begin(), "evaluate-planner");
    const Answer answer = RunTool(options);
    EXPECT_EQ(answer.code, 2) << part;
    EXPECT_THAT(answer.err, HasSubstr(part));
  };
  refused({"--utilisation", "20,"}, "--utilisation is '20,'");
  refused({"--utilisation", "69"}, "at most the 68 SMs");
  refused({"--utilisation", "nan"}, "above 0");
  refused({"--analysis", "guess"}, "concurrent, exclusive, evictable");
  refused({"--serial-share", "both"}, "per-sm, printed");
  refused({"--tasks", "0"}, "--tasks is 0");
}

}  // namespace
}  // namespace gpushare::tool
