#include "tools/gpushare/datacenter/warehouse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/datacenter/placing.h"

namespace gpushare::tool {
namespace {

using ::testing::HasSubstr;

std::string Text(const std::string& section, const std::string& lc_more = "",
                 const std::string& more = "") {
  return R"({"schema_version": 1, "name": "w", "lc": [
      {"name": "asr", "kernel": "decode16", "target_solo_factor": 10},
      {"name": "pos", "kernel": "decode12")" +
         (lc_more.empty() ? R"(, "p99_bound": 1.05)" : lc_more) + R"(}],
    "be": [{"name": "nn", "kernel": "nn", "block_tasks": 100},
           {"name": "lbm", "kernel": "lbm", "block_tasks": 100}])" +
         more + R"(, "datacenter": {)" + section + "}}";
}

TEST(WarehouseTest, EachLcAppIsAServiceAtEachLoad) {
  const Warehouse warehouse =
      ParseWarehouse(Text(R"("gpus": 8, "be_per_gpu": 3, "loads": [0.4, 0.2])"), "w.json");
  ASSERT_EQ(warehouse.services.size(), 4U);
  EXPECT_EQ(warehouse.services[0].name, "asr@0.2");
  EXPECT_EQ(warehouse.services[3].name, "pos@0.4");
  EXPECT_EQ(warehouse.services[3].lc, 1);
  EXPECT_EQ(warehouse.slot_ns, 1'000'000'000);
  EXPECT_EQ(warehouse.placings, (std::vector<Placing>{Placing::kRandom, Placing::kAssigned}));
  // It is a scenario for colocate too.
  EXPECT_EQ(warehouse.apps.cases.size(), 4U);
  EXPECT_EQ(warehouse.apps.cases[1].load, 0.4);
}

TEST(WarehouseTest, BadFilesAreOneSentenceWithThePlace) {
  const auto refused = [](const std::string& text, const std::string& part) {
    try {
      ParseWarehouse(text, "w.json");
      ADD_FAILURE() << "accepted: " << part;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(part));
      EXPECT_EQ(std::string(error.what()).back(), '.');
    }
  };
  refused("{", "not valid JSON");
  refused("[]", "'datacenter' is missing");
  refused(R"({"schema_version": 1, "name": "w"})", "'datacenter' is missing");
  refused(Text(""), "datacenter.loads is missing");
  refused(Text(R"("loads": [])"), "datacenter.loads is missing or empty");
  refused(Text(R"("loads": [0])"), "from 0.01 to 1");
  refused(Text(R"("loads": ["x"])"), "from 0.01 to 1");
  refused(Text(R"("loads": [0.2, 0.2])"), "holds a load twice");
  refused(Text(R"("loads": [0.2], "gpus": 0)"), "datacenter.gpus is 0");
  refused(Text(R"("loads": [0.2], "gpus": 1000000)"), "datacenter.gpus is 1000000");
  refused(Text(R"("loads": [0.2], "be_per_gpu": 65)"), "datacenter.be_per_gpu is 65");
  refused(Text(R"("loads": [0.2], "slot_ns": 1)"), "datacenter.slot_ns is 1");
  refused(Text(R"("loads": [0.2], "placements": ["best"])"), "names 'best'");
  refused(Text(R"("loads": [0.2], "gpu": 1)"), "'gpu'");
  refused(Text(R"("loads": [0.2])", "", R"(, "cases": [])"), "'cases' and 'datacenter'");
  refused(Text(R"("loads": [0.2])", R"(, "q": 1)"), "lc[1]");
  refused(Text(R"("loads": [0.2])", R"(, "share": 1)"), "has no p99_bound, target_ns");
  refused(Text(R"("loads": [0.2])",
               R"(, "target_ns": 9, "arrivals": {"type": "explicit", "times_ns": [1]})"),
          "every GPU draws its own");
  refused(Text(R"("loads": [0.2])", R"(, "target_ns": 9, "arrivals": {"type": "periodic"})"),
          "must be poisson, gamma or batches");
  refused(Text(R"("loads": [0.2], "placements": ["random", "random"])"), "names 'random' twice");
  refused(Text(R"("loads": [0.2], "placements": [])"), "datacenter.placements is empty");
  refused(Text(R"("loads": [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], "slot_ns": 60000000000,
                  "table_runs": 64)"),
          "more than the limit");
}

Warehouse OfSize(int64_t gpus, int64_t be_per_gpu) {
  Warehouse warehouse;
  warehouse.gpus = gpus;
  warehouse.be_per_gpu = be_per_gpu;
  warehouse.slot_ns = 1'000'000'000;
  warehouse.placings = {Placing::kRandom};
  return warehouse;
}

TEST(WarehouseTest, TooManyGpusToSimulateNameTheTables) {
  EXPECT_NO_THROW(CheckGpus("--gpus", OfSize(100'000, 10), false));
  EXPECT_NO_THROW(CheckGpus("--gpus", OfSize(10'000, 10), true));
  EXPECT_THROW(CheckGpus("--gpus", OfSize(100'000, 11), false), InputError);
  try {
    CheckGpus("--gpus", OfSize(10'001, 1), true);
    ADD_FAILURE() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--tables"));
  }
}

TEST(WarehouseTest, TheSimulatedTimeOfARowIsBounded) {
  Warehouse warehouse = OfSize(10'000, 11);
  EXPECT_THROW(CheckGpus("--gpus", warehouse, true), InputError);
  EXPECT_NO_THROW(CheckGpus("--gpus", warehouse, false));
  warehouse = OfSize(1'000, 10);
  warehouse.slot_ns = kSlotNsMax;
  EXPECT_THROW(CheckGpus("--gpus", warehouse, true), InputError);
  EXPECT_NO_THROW(CheckChecked(warehouse, 166));
  EXPECT_THROW(CheckChecked(warehouse, 167), InputError);
  warehouse.gpus = 100;
  EXPECT_NO_THROW(CheckChecked(warehouse, 1'000));  // all 100 are checked
}

TEST(WarehouseTest, ACheckNeedsTheRandomPlacement) {
  Warehouse warehouse = OfSize(10, 10);
  warehouse.placings = {Placing::kAssigned};
  EXPECT_NO_THROW(CheckChecked(warehouse, 0));
  EXPECT_THROW(CheckChecked(warehouse, 1), InputError);
}

class PlacingTest : public ::testing::Test {
 protected:
  // Four services, two BE apps; 'nn' suits the first two services, 'lbm' the others.
  const Warehouse warehouse_ =
      ParseWarehouse(Text(R"("gpus": 10, "be_per_gpu": 4, "loads": [0.2, 0.4])"), "w.json");
  const std::vector<std::vector<double>> be_time_ = {
      {0.9, 0.5}, {0.8, 0.4}, {0.5, 0.9}, {0.4, 0.8}};

  double BeTime(const std::vector<PlacedGpu>& gpus) const {
    double sum = 0;
    for (const PlacedGpu& gpu : gpus) {
      for (const int32_t be : gpu.be) {
        sum += be_time_[static_cast<size_t>(gpu.service)][static_cast<size_t>(be)];
      }
    }
    return sum / 40;
  }
};

TEST_F(PlacingTest, EveryInstanceHasAGpuAndEveryGpuItsNumber) {
  for (const Placing placing : {Placing::kRandom, Placing::kAssigned}) {
    const std::vector<PlacedGpu> gpus = PlaceWarehouse(warehouse_, placing, be_time_);
    ASSERT_EQ(gpus.size(), 10U);
    std::vector<int> instances(2);
    std::set<std::pair<int32_t, int32_t>> replicas;
    for (const PlacedGpu& gpu : gpus) {
      EXPECT_EQ(gpu.be.size(), 4U);
      for (const int32_t be : gpu.be) ++instances[static_cast<size_t>(be)];
      EXPECT_TRUE(replicas.insert({gpu.service, gpu.replica}).second);
    }
    EXPECT_EQ(instances, (std::vector<int>{20, 20}));
    // 10 GPUs among four services: 3, 3, 2, 2.
    EXPECT_EQ(replicas.count({0, 2}), 1U);
    EXPECT_EQ(replicas.count({3, 2}), 0U);
  }
}

TEST_F(PlacingTest, TheAssignmentPutsPairsWhereTheyGiveTheMost) {
  const double random = BeTime(PlaceWarehouse(warehouse_, Placing::kRandom, be_time_));
  const double assigned = BeTime(PlaceWarehouse(warehouse_, Placing::kAssigned, be_time_));
  EXPECT_GT(assigned, random + 0.1);
  // The most: nn at 12 x 0.9 and 8 x 0.8, lbm at 8 x 0.9, 8 x 0.8 and, in the room that is left,
  // 4 x 0.4.
  EXPECT_NEAR(assigned, 32.4 / 40, 1e-9);
}

// Evenly spaced by service, whatever the order in which the GPUs were placed.
TEST(EvenlySpacedTest, EveryServiceHasItsShareOfTheCheck) {
  std::vector<PlacedGpu> gpus;
  gpus.reserve(8);
  for (int32_t i = 0; i < 8; ++i) gpus.push_back({i % 2, i / 2, {}});
  EXPECT_EQ(EvenlySpaced(gpus, 4), (std::vector<size_t>{2, 6, 3, 7}));
  EXPECT_EQ(EvenlySpaced(gpus, 100).size(), 8U);
  EXPECT_TRUE(EvenlySpaced(gpus, 0).empty());
}

TEST(EvenlyTest, TheFirstOnesGetTheRest) {
  EXPECT_EQ(Evenly(10, 4), (std::vector<int64_t>{3, 3, 2, 2}));
  EXPECT_EQ(Evenly(1, 3), (std::vector<int64_t>{1, 0, 0}));
}

}  // namespace
}  // namespace gpushare::tool
