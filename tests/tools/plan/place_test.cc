// `gpushare place` as a user runs it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"
#include "tests/tools/run_tool.h"

namespace gpushare::tool {
namespace {

using ::testing::HasSubstr;

constexpr char kCluster[] = R"({
  "gpus": [{"name": "h200", "memory_bytes": 100, "count": 3}],
  "lc_apps": [{"name": "chat", "kind": "decode", "load": 0.5, "memory_bytes": 40, "p99_bound": 1.05,
               "replicas": 2}],
  "be_apps": [{"name": "lora", "kind": "train", "memory_bytes": 30},
              {"name": "batch", "kind": "embed", "memory_bytes": 10},
              {"name": "scan", "kind": "stream", "memory_bytes": 10, "instances": 2}],
  "pairs": [
    {"lc": "decode", "be": "train", "load": 0.5, "p99_ratio": 1.01, "p99_error": 0.01,
     "be_rate": 0.5, "be_error": 0.02},
    {"lc": "decode", "be": "embed", "load": 0.5, "p99_ratio": 1.02, "be_rate": 0.4},
    {"lc": "decode", "be": "stream", "load": 0.5, "p99_ratio": 1.3, "be_rate": 0.6}])";

class PlaceTest : public ::testing::Test {
 protected:
  std::string File(const std::string& text) {
    std::string path = temporary_.path() + "/cluster.json";
    std::ofstream(path) << text;
    return path;
  }
  static std::string Scenario(const std::string& name) {
    const char* const folder = std::getenv("GPUSHARE_TEST_SCENARIOS");
    return std::string(folder == nullptr ? "" : folder) + "/" + name + ".json";
  }
  std::string With(const std::string& members) { return File(kCluster + members + "}"); }

  const TemporaryFolder temporary_;
};

TEST_F(PlaceTest, AllPlacedIsExitCodeZeroWithARowForEachGpu) {
  const std::string file = With(R"(, "be_per_gpu": 2)");
  const Answer table = RunTool({"place", file});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("h200:0  chat"));
  EXPECT_THAT(table.out, HasSubstr("scan x2"));
  EXPECT_THAT(table.out, HasSubstr("Placed by assignment: 2 LC replicas and 4 BE instances"));
  const Answer answer = RunTool({"place", file, "--json"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  const auto placed = nlohmann::json::parse(answer.out);
  EXPECT_EQ(placed.at("schema_version"), 1);
  EXPECT_EQ(placed.at("be_placed"), 4);
  EXPECT_LE(placed.at("value"), placed.at("upper_bound"));
  ASSERT_EQ(placed.at("gpus").size(), 3U);
  for (const auto& gpu : placed.at("gpus")) {
    if (!gpu.contains("lc_app")) continue;
    EXPECT_LE(gpu.at("p99_ratio_max"), 1.05);
    for (const auto& be : gpu.at("be_apps")) EXPECT_NE(be.at("app"), "scan");
  }
}

TEST_F(PlaceTest, AnAppWithoutAGpuIsExitCodeOneWithItsReason) {
  const Answer answer = RunTool({"place", With("")});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.out, HasSubstr("No GPU for 1 of BE app 'scan'. Of 3 GPUs,"));
  EXPECT_THAT(answer.err, HasSubstr("0 LC replicas and 1 BE instances have no GPU"));
  const Answer json = RunTool({"place", With(""), "--json"});
  EXPECT_EQ(json.code, 1);
  EXPECT_THAT(json.out, HasSubstr("\"class\": \"be\""));
  // Beside its bound there is room.
  const Answer ignored =
      RunTool({"place", With(R"(, "be_per_gpu": 2)"), "--ignore-bounds", "--algorithm", "random"});
  EXPECT_EQ(ignored.code, 0) << ignored.err;
}

// Kinds of the scenario 'papers_many_be'; the row of the file counts before a prediction.
TEST_F(PlaceTest, PairsWithoutARowArePredicted) {
  const std::string cluster = R"({
    "gpus": [{"name": "h200", "memory_bytes": 100, "count": 2}],
    "lc_apps": [{"name": "chat", "kind": "decode16", "load": 0.5, "memory_bytes": 40, "replicas": 2}],
    "be_apps": [{"name": "a", "kind": "sincos_w1", "memory_bytes": 1},
                {"name": "b", "kind": "mriq_w2", "memory_bytes": 1}],
    "pairs": [{"lc": "decode16", "be": "mriq_w2", "load": 0.5, "p99_ratio": 1.04, "be_rate": 0.125}]
  })";
  const std::string file = File(cluster);
  EXPECT_EQ(RunTool({"place", file}).code, 1) << "without a scenario a pair has no row";
  const Answer table = RunTool({"place", file, "--predict", Scenario("papers_many_be")});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("1 pairs are predicted by the cost model"));
  const Answer answer = RunTool({"place", file, "--predict", Scenario("papers_many_be"), "--json"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  const auto placed = nlohmann::json::parse(answer.out);
  ASSERT_EQ(placed.at("predicted").size(), 1U);
  const auto& row = placed.at("predicted")[0];
  EXPECT_EQ(row.at("be"), "sincos_w1");
  EXPECT_GT(row.at("be_rate"), 0.4);
  EXPECT_LE(row.at("p99_ratio").get<double>() + row.at("p99_error").get<double>(), 1.05);
  EXPECT_NEAR(placed.at("be_rate"), 0.125 + row.at("be_rate").get<double>(), 1e-9);
  EXPECT_FALSE(placed.contains("not_predicted"));
}

// The scenario of `gpushare datacenter` has services that copy, which the model does not know.
TEST_F(PlaceTest, AWarehouseDescribesItsKinds) {
  const std::string cluster = R"({
    "gpus": [{"name": "h200", "memory_bytes": 100, "count": 2}],
    "lc_apps": [{"name": "a", "kind": "asr", "load": 0.4, "memory_bytes": 1},
                {"name": "f", "kind": "face", "load": 0.4, "memory_bytes": 1}],
    "be_apps": [{"name": "m", "kind": "mriq", "memory_bytes": 1}]
  })";
  const Answer answer = RunTool({"place", File(cluster), "--predict", Scenario("warehouse")});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("'face' is not predicted: it copies"));
}

// A pair that was measured up to a load is not allowed above it.
TEST_F(PlaceTest, AMeasuredPairIsNotPredictedAboveItsLoad) {
  const std::string cluster = R"({
    "gpus": [{"name": "h200", "memory_bytes": 100}],
    "lc_apps": [{"name": "chat", "kind": "decode16", "load": 0.8, "memory_bytes": 40}],
    "be_apps": [{"name": "b", "kind": "mriq_w2", "memory_bytes": 1}],
    "pairs": [{"lc": "decode16", "be": "mriq_w2", "load": 0.5, "p99_ratio": 1.01, "be_rate": 0.4}]
  })";
  EXPECT_EQ(RunTool({"place", File(cluster), "--predict", Scenario("papers_many_be")}).code, 1);
}

// The row that is printed is that of the tighter bound, so that it serves both apps.
TEST_F(PlaceTest, OfTwoBoundsTheTighterOneIsPrinted) {
  const std::string cluster = R"({
    "gpus": [{"name": "h200", "memory_bytes": 100, "count": 2}],
    "lc_apps": [
      {"name": "loose", "kind": "decode16", "load": 0.5, "memory_bytes": 40, "p99_bound": 2},
      {"name": "tight", "kind": "decode16", "load": 0.5, "memory_bytes": 40, "p99_bound": 1.02}],
    "be_apps": [{"name": "a", "kind": "sincos_w1", "memory_bytes": 1, "instances": 2}]
  })";
  const Answer answer =
      RunTool({"place", File(cluster), "--predict", Scenario("papers_many_be"), "--json"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  const auto placed = nlohmann::json::parse(answer.out);
  ASSERT_EQ(placed.at("predicted").size(), 1U);
  const auto& row = placed.at("predicted")[0];
  EXPECT_LE(row.at("p99_ratio").get<double>() + row.at("p99_error").get<double>(), 1.02);
}

TEST_F(PlaceTest, WhatCannotBePredictedIsNamed) {
  std::string text = kCluster;
  text.replace(text.find("\"be\": \"embed\""), 13, "\"be\": \"other\"");
  const Answer answer =
      RunTool({"place", File(text + "}"), "--predict", Scenario("papers_many_be")});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(
      answer.out,
      HasSubstr("'decode' is not predicted: the scenario 'papers_many_be' has no such app."));
  EXPECT_EQ(RunTool({"place", With(""), "--predict", "nowhere"}).code, 2);
}

TEST_F(PlaceTest, MovesAreThoseThatWereAllowed) {
  const std::string file = With(R"(, "be_per_gpu": 2,
    "running": [{"gpu": "h200:0", "app": "chat"}, {"gpu": "h200:1", "app": "chat"},
                {"gpu": "h200:2", "app": "lora"}, {"gpu": "h200:2", "app": "batch"}])");
  const Answer none = RunTool({"place", file, "--json"});
  EXPECT_EQ(none.code, 1) << none.out;  // scan runs beside no LC app, and h200:2 is full
  const Answer moved = RunTool({"place", file, "--moves", "2", "--json"});
  EXPECT_EQ(moved.code, 0) << moved.err;
  EXPECT_EQ(nlohmann::json::parse(moved.out).at("moved"), 2);
}

TEST_F(PlaceTest, BadClustersAndOptionsAreOneSentence) {
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& part) {
    const Answer answer = RunTool(arguments);
    EXPECT_EQ(answer.code, 2) << part;
    EXPECT_EQ(answer.out, "") << part;
    EXPECT_THAT(answer.err, HasSubstr(part));
  };
  refused({"place", File("{")}, "not valid JSON");
  refused({"place", File("{}")}, "The cluster has no GPU");
  refused({"place", With(R"(, "gpu": 1)")}, "Key 'gpu' is not known");
  refused({"place", With(R"(, "running": [{"gpu": "h200:7", "app": "lora"}])")}, "no such GPU");
  refused({"place", With(""), "--algorithm", "best"}, "--algorithm is 'best'");
  refused({"place", With(""), "--moves", "-1"}, "--moves");
  refused({"place", With(""), "--risk", "-1"}, "The risk is -1");
  refused({"place", With(""), "--free-gpu", "much"}, "--free-gpu");
  refused({"place", temporary_.path() + "/none.json"}, "none.json");
}

// 100,000 apps, and a file that is not one: in proportion to the text.
TEST_F(PlaceTest, LargeFilesEndSoon) {
  const auto start = std::chrono::steady_clock::now();
  std::string many =
      R"({"gpus": [{"name": "g", "memory_bytes": 100, "count": 100000}], "be_apps": [)";
  for (int i = 0; i < 100'000; ++i) {
    many += (i == 0 ? "" : ",") + std::string(R"({"name": "b)") + std::to_string(i) +
            R"(", "kind": "k", "memory_bytes": )" + std::to_string(1 + i % 100) + "}";
  }
  EXPECT_EQ(RunTool({"place", File(many + "]}")}).code, 0);
  std::string empty = R"({"gpus": [)";
  for (int i = 0; i < 300'000; ++i) empty += i == 0 ? "{}" : ",{}";
  EXPECT_EQ(RunTool({"place", File(empty + "]}")}).code, 2);
  EXPECT_EQ(RunTool({"place", File(std::string(size_t{33} << 20, ' '))}).code, 2);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(120));
}

}  // namespace
}  // namespace gpushare::tool
