// `gpushare replay`: logs of colocate come out the same, another policy differs with exit code 1,
// and bad, truncated and foreign logs end with exit code 2 and one sentence.

#include "tools/gpushare/events/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/tools/run_tool.h"

namespace gpushare::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

// One folder of logs for all tests, which only read it: whole runs, of which one policy cuts graphs
// and one evicts.
class ReplayCommandTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string name = (std::filesystem::temp_directory_path() / "gpushare_replay_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    const char* scenarios = std::getenv("GPUSHARE_TEST_SCENARIOS");
    ASSERT_NE(scenarios, nullptr) << "the test needs the folder of the scenarios";
    scenarios_ = scenarios;
    const Answer made = RunTool({"colocate", scenarios_ + "/smoke.json", "--device", "sim",
                                 "--queries", "40", "--trace-ms", "10000", "--out", folder_});
    ASSERT_EQ(made.code, 0) << made.err;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/events")) {
      if (entry.path().extension() == ".gpulog") logs_.push_back(entry.path().string());
    }
    ASSERT_GT(logs_.size(), 1u);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }

  // A folder with the same index, whose logs are to be damaged.
  static std::string Copy() {
    const std::string copy = folder_ + "/copy";
    std::filesystem::remove_all(copy);
    std::filesystem::create_directories(copy);
    std::filesystem::copy(folder_ + "/events", copy + "/events");
    return copy;
  }
  static void ExpectRefused(const std::vector<std::string>& arguments, const std::string& why) {
    const Answer answer = RunTool(arguments);
    EXPECT_EQ(answer.code, 2) << answer.out;
    EXPECT_THAT(answer.err, StartsWith("gpushare: "));
    EXPECT_THAT(answer.err, HasSubstr(why));
    EXPECT_EQ(answer.out, "");
  }

  static inline std::string folder_;
  static inline std::string scenarios_;
  static inline std::vector<std::string> logs_;
};

TEST_F(ReplayCommandTest, EveryLogOfARunComesOutTheSame) {
  const Answer answer = RunTool({"replay", folder_, "--json"});
  EXPECT_EQ(answer.code, 0) << answer.out << answer.err;
  const auto json = nlohmann::json::parse(answer.out);
  EXPECT_EQ(json["matches"], true);
  ASSERT_EQ(json["logs"].size(), logs_.size());
  for (const auto& log : json["logs"]) {
    EXPECT_EQ(log["difference"], "") << log["file"];
    EXPECT_EQ(log["events_equal"], log["events"]);
    EXPECT_EQ(log["decisions_equal"], log["decisions"]);
    EXPECT_GT(log["decisions"], 40) << "a decision for each query at least";
    EXPECT_EQ(log["under"], log["policy"]);
  }
  const Answer one = RunTool({"replay", logs_[0]});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr(": the same, "));
  EXPECT_THAT(one.out, HasSubstr(std::filesystem::path(logs_[0]).filename().string()));
}

TEST_F(ReplayCommandTest, AnotherPolicyDiffersWithExitCode1) {
  const std::vector<std::string> arguments = {"replay",  folder_, "--policy", "adaptive",
                                              "--under", "fifo",  "--json"};
  const Answer answer = RunTool(arguments);
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.err, HasSubstr("differ from their logs."));
  const auto json = nlohmann::json::parse(answer.out);
  EXPECT_EQ(json["matches"], false);
  ASSERT_FALSE(json["logs"].empty());
  for (const auto& log : json["logs"]) {
    EXPECT_LT(log["decisions_equal"], log["decisions"]);
    EXPECT_THAT(log["difference"].get<std::string>(), HasSubstr("the replay has"));
  }
  const Answer text = RunTool({"replay", folder_, "--policy", "adaptive", "--under", "fifo"});
  EXPECT_EQ(text.code, 1);
  EXPECT_THAT(text.out, HasSubstr("differs after "));
  EXPECT_THAT(text.out, HasSubstr("  Event "));
}

TEST_F(ReplayCommandTest, BadTruncatedAndForeignLogsAreRefused) {
  const std::string copy = Copy();
  const std::string log = copy + "/events/" + std::filesystem::path(logs_[0]).filename().string();
  const std::string good = Read(log);
  ExpectRefused({"replay", copy + "/events/none.gpulog"}, "none.gpulog");
  Write(log, good.substr(0, good.size() - 10));
  ExpectRefused({"replay", log}, "bytes of records");
  Write(log, "GPUSHLOG");
  ExpectRefused({"replay", log}, "its header alone takes");
  Write(log, std::string(good.size(), 'x'));
  ExpectRefused({"replay", log}, "does not start with 'GPUSHLOG'");
  std::string damaged = good;
  damaged[100] = static_cast<char>(damaged[100] + 1);
  Write(log, damaged);
  ExpectRefused({"replay", log}, "corrupt");
  // A good log of another program: no index names it.
  Write(copy + "/events/other.gpulog", good);
  ExpectRefused({"replay", copy + "/events/other.gpulog"}, "index");
  Write(copy + "/lone.gpulog", good);
  ExpectRefused({"replay", copy + "/lone.gpulog"}, "index");
}

TEST_F(ReplayCommandTest, WhatTheRunWasMadeWithMustBeThere) {
  ExpectRefused({"replay", folder_, "--under", "fifoo"}, "fifo");
  ExpectRefused({"replay", folder_, "--policy", "nothing"}, "No event log");
  ExpectRefused({"replay", folder_, "--scenario", scenarios_ + "/demo.json"}, "digest");
  ExpectRefused({"replay", folder_, "--scenario", folder_ + "/none.json"}, "none.json");
  // Logs of earlier versions, and of windows inside a run.
  const std::string copy = Copy();
  auto index = nlohmann::json::parse(Read(copy + "/events/index.json"));
  for (auto& run : index["runs"]) run.erase("origin");
  Write(copy + "/events/index.json", index.dump());
  ExpectRefused({"replay", copy}, "cannot be replayed");
}

}  // namespace
}  // namespace gpushare::tool
