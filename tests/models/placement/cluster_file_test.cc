// The file of a cluster and its table of pairs.

#include "src/models/placement/cluster_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "src/models/placement/pair_table.h"

namespace gpushare::models::placement {
namespace {

using testing::HasSubstr;

void ExpectRefused(const std::string& text, const std::string& part) {
  const auto cluster = ParseCluster(text);
  ASSERT_FALSE(cluster.ok()) << text;
  EXPECT_THAT(cluster.status().message(), HasSubstr(part));
  EXPECT_EQ(cluster.status().message().back(), '.') << cluster.status();
}

std::string With(const std::string& members) {
  return R"({"gpus": [{"name": "g", "memory_bytes": 100, "count": 2}], )" + members + "}";
}

TEST(ClusterFileTest, ReadsEachField) {
  const auto cluster = ParseCluster(With(
      R"("lc_apps": [{"name": "a", "kind": "s", "load": 0.4, "memory_bytes": 7, "p99_bound": 1.05,
                      "target_ns": 9, "p99_alone_ns": 8, "replicas": 2}],
         "be_apps": [{"name": "b", "kind": "k", "memory_bytes": 5, "weight": 2, "instances": 3}],
         "pairs": [{"lc": "s", "be": "k", "load": 0.5, "p99_ratio": 1.01, "p99_error": 0.02,
                    "be_rate": 0.6, "be_error": 0.03}],
         "running": [{"gpu": "g:1", "app": "b", "instances": 2}],
         "be_per_gpu": 10, "together": "at_once")"));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->gpus[0].count, 2);
  EXPECT_EQ(cluster->lc[0].replicas, 2);
  EXPECT_EQ(cluster->lc[0].target_ns, 9);
  EXPECT_EQ(cluster->be[0].weight, 2);
  EXPECT_EQ(cluster->be[0].instances, 3);
  EXPECT_EQ(cluster->pairs[0].be_error, 0.03);
  EXPECT_EQ(cluster->running[0].instances, 2);
  EXPECT_EQ(cluster->be_per_gpu, 10);
  EXPECT_EQ(cluster->together, Together::kAtOnce);
}

TEST(ClusterFileTest, RefusalsNameThePlaceAndTheValue) {
  const std::string app = R"("name": "a", "kind": "s", "load": 0.4, "memory_bytes": 7)";
  ExpectRefused("[]", "The cluster is not a JSON object.");
  ExpectRefused("{", "is not valid JSON");
  ExpectRefused("{}", "The cluster has no GPU");
  ExpectRefused(With(R"("gpu": 1)"), "Key 'gpu' is not known");
  ExpectRefused(With(R"("lc_apps": [{"name": "a"}])"), "Key 'lc_apps[0].kind' is missing.");
  ExpectRefused(With(R"("lc_apps": [{)" + app + R"(, "load": 1})"), "twice");
  ExpectRefused(With(R"("lc_apps": [{"name": "a", "kind": "s", "load": 2, "memory_bytes": 7}])"),
                "lc_apps[0].load");
  ExpectRefused(With(R"("lc_apps": [{)" + app + "}, {" + app + "}]"),
                "'a' is stated twice; give each a name of its own.");
  ExpectRefused(With(R"("lc_apps": [{)" + app + R"(, "target_ns": 5}])"), "no p99 alone");
  ExpectRefused(With(R"("lc_apps": [{)" + app + R"(, "p99_bound": 0.9}])"), "p99_bound");
  ExpectRefused(With(R"("be_apps": [{"name": "b", "kind": "k", "memory_bytes": 5,
                        "instances": 1000001}])"),
                "instances");
  ExpectRefused(With(R"("pairs": [{"lc": "s", "be": "k", "load": 0.5, "p99_ratio": 1}])"),
                "Key 'pairs[0].be_rate' is missing.");
  ExpectRefused(With(R"("together": "never")"), "in_turns, at_once");
  ExpectRefused(With(R"("be_per_gpu": 65)"), "be_per_gpu");
  ExpectRefused(R"({"gpus": [{"name": "g", "memory_bytes": 1, "count": 60000},
                             {"name": "h", "memory_bytes": 1, "count": 60000}]})",
                "100000");
  ExpectRefused(R"({"gpus": [{"name": "g", "memory_bytes": 1}, {"name": "g", "memory_bytes": 1}]})",
                "'g' is stated twice; give each a name of its own.");
}

TEST(ClusterTest, ARefusedCountHasItsDigits) {
  Cluster cluster;
  cluster.gpus = {{"g", kMemoryBytesMax + 1, 1}};
  EXPECT_EQ(Check(cluster).message(),
            "The group of GPUs 'g' has the memory in bytes 1125899906842625, and it must be from 1 "
            "to 1125899906842624.");
}

TEST(PairTableTest, InterpolatesBetweenLoadsAndKnowsNothingAbove) {
  const PairTable table({{"s", "k", 0.6, 1.2, 0.02, 0.4, 0.03},
                         {"s", "k", 0.2, 1.0, 0.01, 0.8, 0.05},
                         {"s", "k", 0.6, 1.1, 0.02, 0.4, 0.03}});
  const auto middle = table.Beside("s", 0.4, "k", 1);
  ASSERT_TRUE(middle.has_value());
  EXPECT_NEAR(middle->p99_ratio, 1.05, 1e-12);  // of two rows at a load the later counts
  EXPECT_NEAR(middle->be_rate, 0.6, 1e-12);
  EXPECT_EQ(middle->p99_error, 0.02);
  EXPECT_EQ(middle->be_error, 0.05);
  EXPECT_EQ(table.Beside("s", 0.1, "k", 1)->be_rate, 0.8);
  EXPECT_EQ(table.Beside("s", 0.6, "k", 1)->p99_ratio, 1.1);
  EXPECT_FALSE(table.Beside("s", 0.61, "k", 1).has_value());
  EXPECT_FALSE(table.Beside("s", 0.4, "other", 1).has_value());
  EXPECT_FALSE(table.Beside("other", 0.4, "k", 1).has_value());
}

}  // namespace
}  // namespace gpushare::models::placement
