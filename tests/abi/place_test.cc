// gpushare_place: the same placement as the C++ Placer, slots that keep their GPUs, and bad input,
// after which nothing is written.

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/core/base/random.h"
#include "src/models/placement/placer.h"
#include "tests/abi/api_fixture.h"
#include "tests/abi/place_request.h"
#include "tests/models/placement/random_clusters.h"

namespace gpushare_test {
namespace {

namespace placement = gpushare::models::placement;
using gpushare::core::Random;
using placement::Algorithm;
using placement::Cluster;
using placement::Placement;
using placement::PlaceOptions;
using placement::RandomCluster;
using placement::Together;

// How often each app is on each GPU.
using Counts = std::map<std::pair<std::string, int32_t>, int64_t>;

Counts CountsOf(const Cluster& cluster, const Placement& placed) {
  Counts counts;
  for (size_t gpu = 0; gpu < placed.gpus.size(); ++gpu) {
    const auto at = static_cast<int32_t>(gpu);
    const int32_t lc = placed.gpus[gpu].lc;
    if (lc != placement::kNone) ++counts[{cluster.lc[static_cast<size_t>(lc)].name, at}];
    for (const int32_t be : placed.gpus[gpu].be) {
      ++counts[{cluster.be[static_cast<size_t>(be)].name, at}];
    }
  }
  return counts;
}

// By slot: the name of its app.
std::vector<std::string> AppsOf(const Cluster& cluster) {
  std::vector<std::string> apps;
  for (const auto& app : cluster.lc) {
    apps.insert(apps.end(), static_cast<size_t>(app.replicas), app.name);
  }
  for (const auto& app : cluster.be) {
    apps.insert(apps.end(), static_cast<size_t>(app.instances), app.name);
  }
  return apps;
}

Counts CountsOf(const Cluster& cluster, const std::vector<int32_t>& gpus) {
  const std::vector<std::string> apps = AppsOf(cluster);
  Counts counts;
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (gpus[i] != GPUSHARE_NO_GPU) ++counts[{apps[i], gpus[i]}];
  }
  return counts;
}

// Groups of one to three GPUs; most apps have several replicas or instances.
Cluster MakeCluster(uint64_t seed) {
  const bool at_once = seed % 2 == 0;
  Cluster cluster = RandomCluster({.gpus = 6,
                                   .lc = 5,
                                   .be = 6,
                                   .be_per_gpu = 1 + static_cast<int32_t>(seed % 3),
                                   .together = at_once ? Together::kAtOnce : Together::kInTurns},
                                  seed);
  Random random(seed + 1000);
  for (auto& group : cluster.gpus) group.count = 1 + static_cast<int32_t>(random.Next() % 3);
  for (auto& app : cluster.lc) app.replicas = static_cast<int32_t>(random.Next() % 4);
  for (auto& app : cluster.be) app.instances = static_cast<int32_t>(random.Next() % 5);
  return cluster;
}

std::string GpuName(const Cluster& cluster, int32_t gpu) {
  for (const auto& group : cluster.gpus) {
    if (gpu < group.count) return group.name + ":" + std::to_string(gpu);
    gpu -= group.count;
  }
  return "";
}

// LC replicas stay. A BE instance stops only where it no longer fits, and either the moves are
// spent, or no new instance of its app has a GPU and none has room for it.
void ExpectOnlyNeededStops(const Cluster& cluster, const PlaceOptions& options,
                           const std::vector<int32_t>& running, const PlaceRequest& request) {
  const placement::PairTable table(cluster.pairs);
  const placement::Problem problem(cluster, table, options.valuation);
  placement::State before(problem);
  size_t slot = 0;
  for (size_t lc = 0; lc < cluster.lc.size(); ++lc) {
    for (int32_t i = 0; i < cluster.lc[lc].replicas; ++i, ++slot) {
      if (request.out[slot] >= 0) before.PutLc(request.out[slot], static_cast<int32_t>(lc));
      if (running[slot] >= 0) {
        EXPECT_EQ(request.out[slot], running[slot]);
      }
    }
  }
  placement::State after = before;
  const size_t first_be = slot;
  std::vector<bool> fits(static_cast<size_t>(problem.gpus()), true);
  const auto each = [&](const auto& call) {
    slot = first_be;
    for (size_t be = 0; be < cluster.be.size(); ++be) {
      for (int32_t i = 0; i < cluster.be[be].instances; ++i) call(be, slot++);
    }
  };
  std::vector<bool> starts(cluster.be.size(), false);
  each([&](size_t be, size_t i) {
    const auto app = static_cast<int32_t>(be);
    if (request.out[i] >= 0) after.Add(request.out[i], app);
    if (request.out[i] >= 0 && running[i] < 0) starts[be] = true;
    if (running[i] < 0) return;
    if (before.Fits(running[i], app)) {
      before.Add(running[i], app);
    } else {
      fits[static_cast<size_t>(running[i])] = false;
    }
  });
  each([&](size_t be, size_t i) {
    if (running[i] < 0 || request.out[i] >= 0) return;
    EXPECT_FALSE(fits[static_cast<size_t>(running[i])]) << "slot " << i;
    if (request.result.moved == options.moves_max) return;
    EXPECT_FALSE(starts[be]) << "a new instance has the place of slot " << i;
    for (int32_t gpu = 0; gpu < problem.gpus(); ++gpu) {
      EXPECT_FALSE(after.Fits(gpu, static_cast<int32_t>(be))) << "slot " << i << " on " << gpu;
    }
  });
}

// Calls both, and expects the same of them. Returns the slots' GPUs.
std::vector<int32_t> PlaceBoth(Cluster cluster, const PlaceOptions& options,
                               const std::vector<int32_t>& running) {
  static constexpr gpushare_place_algorithm kAlgorithms[] = {
      GPUSHARE_PLACE_RANDOM, GPUSHARE_PLACE_FIRST_FIT, GPUSHARE_PLACE_GREEDY,
      GPUSHARE_PLACE_ASSIGNMENT};
  const auto number = [](double value) { return value == 0 ? -1 : value; };
  PlaceRequest request(cluster);
  request.running = running;
  request.options.algorithm = kAlgorithms[static_cast<size_t>(options.algorithm)];
  request.options.seed = options.seed;
  request.options.moves_max = options.moves_max;
  request.options.ignore_bounds = options.valuation.keep_bounds ? 0 : 1;
  request.options.error_bars = number(options.valuation.error_bars);
  request.options.risk = number(options.valuation.risk);
  request.options.free_gpu = number(options.valuation.free_gpu);
  EXPECT_OK(request.Place());

  const std::vector<std::string> apps = AppsOf(cluster);
  for (size_t i = 0; i < running.size(); ++i) {
    if (running[i] == GPUSHARE_NO_GPU) continue;
    cluster.running.push_back({GpuName(cluster, running[i]), apps[i], 1});
  }
  const placement::PairTable table(cluster.pairs);
  const auto placed = placement::Place(cluster, table, options);
  EXPECT_TRUE(placed.ok()) << placed.status();
  if (!placed.ok()) return {};
  EXPECT_EQ(CountsOf(cluster, request.out), CountsOf(cluster, *placed));
  EXPECT_EQ(request.result.lc_placed, placed->lc_placed);
  EXPECT_EQ(request.result.be_placed, placed->be_placed);
  EXPECT_EQ(request.result.free_gpus, placed->free_gpus);
  EXPECT_EQ(request.result.moved, placed->moved);
  EXPECT_EQ(request.result.bounds_broken, placed->bounds_broken);
  EXPECT_EQ(request.result.be_rate, placed->be_rate);
  EXPECT_EQ(request.result.value, placed->value);
  EXPECT_EQ(request.result.upper_bound, placed->upper_bound);
  EXPECT_EQ(request.result.struct_size, sizeof(gpushare_place_result));
  // As many running slots have another GPU as the placement counts moves.
  int64_t moved = 0;
  for (size_t i = 0; i < running.size(); ++i) {
    const int32_t now = request.out[i];
    if (running[i] == GPUSHARE_NO_GPU || now == GPUSHARE_NO_GPU) continue;
    if (running[i] != now) ++moved;
  }
  EXPECT_EQ(moved, request.result.moved);
  EXPECT_LE(moved, options.moves_max);
  if (!running.empty()) ExpectOnlyNeededStops(cluster, options, running, request);
  return request.out;
}

TEST(PlaceTest, PlacesAsTheCppPlacerDoes) {
  int64_t placed = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Cluster cluster = MakeCluster(seed);
    for (const Algorithm algorithm :
         {Algorithm::kRandom, Algorithm::kFirstFit, Algorithm::kGreedy, Algorithm::kAssignment}) {
      PlaceOptions options;
      options.algorithm = algorithm;
      options.seed = seed;
      options.valuation.keep_bounds = seed % 5 != 0;
      if (seed % 4 == 0) options.valuation = {.error_bars = 0, .risk = 0, .free_gpu = 0};
      if (seed % 4 == 1) options.valuation.free_gpu = 1.5;
      for (const int32_t gpu : PlaceBoth(cluster, options, {})) placed += gpu >= 0 ? 1 : 0;
    }
  }
  EXPECT_GT(placed, 1000);
}

// Loads rise and apps come and go: what runs is where the placement before put it.
TEST(PlaceTest, MovesWhatRunsAsTheCppPlacerDoes) {
  int64_t moved = 0;
  int64_t stopped = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Cluster cluster = MakeCluster(seed);
    const Cluster other = MakeCluster(seed + 500);
    PlaceOptions options;
    const std::vector<int32_t> before = PlaceBoth(cluster, options, {});
    // An app's first slots run on; those beyond are new, or gone.
    std::vector<int32_t> running;
    size_t slot = 0;
    const auto change = [&](int32_t& count, int32_t to) {
      for (int32_t i = 0; i < to; ++i) {
        running.push_back(i < count ? before[slot + static_cast<size_t>(i)] : GPUSHARE_NO_GPU);
      }
      slot += static_cast<size_t>(count);
      count = to;
    };
    for (size_t i = 0; i < cluster.lc.size(); ++i) {
      change(cluster.lc[i].replicas, other.lc[i].replicas);
      cluster.lc[i].load = other.lc[i].load;
      cluster.lc[i].p99_bound = other.lc[i].p99_bound;
    }
    for (size_t i = 0; i < cluster.be.size(); ++i) {
      change(cluster.be[i].instances, other.be[i].instances);
    }
    for (const Algorithm algorithm :
         {Algorithm::kRandom, Algorithm::kFirstFit, Algorithm::kGreedy, Algorithm::kAssignment}) {
      options.algorithm = algorithm;
      for (const int64_t moves_max : {0, 1, 3, 100}) {
        options.moves_max = moves_max;
        const std::vector<int32_t> after = PlaceBoth(cluster, options, running);
        for (size_t i = 0; i < after.size(); ++i) {
          if (running[i] >= 0 && after[i] >= 0 && running[i] != after[i]) ++moved;
          if (running[i] >= 0 && after[i] < 0) ++stopped;
        }
      }
    }
    options.algorithm = Algorithm::kAssignment;
  }
  EXPECT_GT(moved, 200);
  EXPECT_GT(stopped, 200);
}

// The job on GPU 0 no longer fits beside its service. GPU 1 has one place for it or for the new
// one.
TEST(PlaceTest, ARunningInstanceTakesAPlaceBeforeANewOne) {
  Cluster cluster;
  cluster.gpus = {{"a", 100, 2}};
  cluster.lc = {{.name = "chat", .kind = "decode", .load = 0.9, .memory_bytes = 60}};
  cluster.be = {{.name = "tune", .kind = "lora", .memory_bytes = 20, .instances = 2}};
  cluster.pairs = {{"decode", "lora", 0.5, 1.01, 0.002, 0.5, 0.02}};
  for (const Algorithm algorithm :
       {Algorithm::kRandom, Algorithm::kFirstFit, Algorithm::kGreedy, Algorithm::kAssignment}) {
    PlaceOptions options;
    options.algorithm = algorithm;
    options.moves_max = 1;
    EXPECT_EQ(PlaceBoth(cluster, options, {0, 0, -1}), (std::vector<int32_t>{0, 1, -1}));
    EXPECT_EQ(PlaceBoth(cluster, options, {0, -1, 0}), (std::vector<int32_t>{0, -1, 1}));
    options.moves_max = 0;
    EXPECT_EQ(PlaceBoth(cluster, options, {0, 0, -1}), (std::vector<int32_t>{0, -1, 1}));
  }
}

// One move is allowed. The large job, the first that lost its GPU, fits nowhere.
TEST(PlaceTest, AMoveThatFindsNoPlaceIsLeftToTheNextInstance) {
  Cluster cluster;
  cluster.gpus = {{"a", 100, 2}, {"b", 50, 1}};
  cluster.lc = {{.name = "chat", .kind = "decode", .load = 0.9, .memory_bytes = 10, .replicas = 2}};
  cluster.be = {{.name = "large", .kind = "lora", .memory_bytes = 80},
                {.name = "small", .kind = "lora", .memory_bytes = 20}};
  cluster.pairs = {{"decode", "lora", 0.5, 1.01, 0.002, 0.5, 0.02}};
  for (const Algorithm algorithm :
       {Algorithm::kRandom, Algorithm::kFirstFit, Algorithm::kGreedy, Algorithm::kAssignment}) {
    PlaceOptions options;
    options.algorithm = algorithm;
    options.moves_max = 1;
    EXPECT_EQ(PlaceBoth(cluster, options, {0, 1, 0, 1}), (std::vector<int32_t>{0, 1, -1, 2}));
  }
}

// An LC app with two replicas and a BE app with three instances on three GPUs.
Cluster SmallCluster() {
  Cluster cluster;
  cluster.gpus = {{"a", 100, 2}, {"b", 100, 1}};
  cluster.lc = {{.name = "chat", .kind = "decode", .load = 0.4, .memory_bytes = 60, .replicas = 2}};
  cluster.be = {{.name = "tune", .kind = "lora", .memory_bytes = 20, .instances = 3}};
  cluster.pairs = {{"decode", "lora", 0.5, 1.01, 0.002, 0.5, 0.02}};
  return cluster;
}

TEST(PlaceTest, SlotsKeepTheirGpus) {
  const Cluster cluster = SmallCluster();
  PlaceRequest request(cluster);
  request.running = {2, GPUSHARE_NO_GPU, GPUSHARE_NO_GPU, 1, 0};
  ASSERT_OK(request.Place());
  EXPECT_EQ(request.out[0], 2);
  EXPECT_EQ(request.out[3], 1);
  EXPECT_EQ(request.out[4], 0);
  EXPECT_EQ(request.out[2], 2);  // where room is left
  EXPECT_EQ(request.result.moved, 0);
}

TEST(PlaceTest, OneArrayMayBeReadAndWritten) {
  const Cluster cluster = SmallCluster();
  PlaceRequest apart(cluster);
  apart.running = {2, GPUSHARE_NO_GPU, 2, 2, GPUSHARE_NO_GPU};
  apart.options.be_per_gpu = 2;
  apart.options.moves_max = 1;
  ASSERT_OK(apart.Place());
  std::vector<int32_t> both = apart.running;
  gpushare_place_result result = GPUSHARE_PLACE_RESULT_INIT;
  ASSERT_OK(gpushare_place(&apart.options, apart.gpus.data(), 2, apart.lc.data(), 1,
                           apart.be.data(), 1, apart.pairs.data(), 1, both.data(), both.data(),
                           both.size(), &result));
  EXPECT_EQ(both, apart.out);
}

TEST(PlaceTest, WhatHasNoGpuIsNoError) {
  Cluster cluster = SmallCluster();
  cluster.lc[0].replicas = 5;
  cluster.lc[0].load = 0.6;  // above every row
  PlaceRequest request(cluster);
  ASSERT_OK(request.Place());
  EXPECT_EQ(request.out, (std::vector<int32_t>{0, 1, 2, -1, -1, -1, -1, -1}));
  EXPECT_EQ(request.result.lc_placed, 3);
  EXPECT_EQ(request.result.be_placed, 0);
}

TEST(PlaceTest, AClusterMayHaveNoApps) {
  gpushare_place_options options = GPUSHARE_PLACE_OPTIONS_INIT;
  gpushare_place_gpu gpu = GPUSHARE_PLACE_GPU_INIT;
  gpu.name = "a";
  gpu.count = 4;
  gpu.memory_bytes = 1;
  gpushare_place_result result = GPUSHARE_PLACE_RESULT_INIT;
  ASSERT_OK(gpushare_place(&options, &gpu, 1, nullptr, 0, nullptr, 0, nullptr, 0, nullptr, nullptr,
                           0, &result));
  EXPECT_EQ(result.free_gpus, 4);
  EXPECT_NEAR(result.value, 4 * 0.05, 1e-12);
}

// --- bad input -----------------------------------------------------------------------------------

// The call fails with this code and a sentence that has `text`, and writes nothing.
void ExpectRefused(PlaceRequest& request, gpushare_status code, const char* text) {
  request.result.value = 77;
  const gpushare_place_result before = request.result;
  EXPECT_FAILS(request.Place(), code, text);
  for (const int32_t gpu : request.out) EXPECT_EQ(gpu, PlaceRequest::kUnwritten) << text;
  EXPECT_EQ(std::memcmp(&before, &request.result, sizeof(before)), 0) << text;
}

struct BadInput {
  std::function<void(PlaceRequest&)> spoil;
  const char* text;
  gpushare_status code = GPUSHARE_INVALID_ARGUMENT;
};

void ExpectAllRefused(const std::vector<BadInput>& inputs) {
  const Cluster cluster = SmallCluster();
  for (const BadInput& input : inputs) {
    PlaceRequest request(cluster);
    ASSERT_OK(request.Place());
    request = PlaceRequest(cluster);
    input.spoil(request);
    ExpectRefused(request, input.code, input.text);
  }
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const char* const kLongName = "a name of sixty-four bytes, one more than a name has, 1234567890";

TEST(PlaceBadInputTest, Options) {
  using R = PlaceRequest;
  ExpectAllRefused({
      {[](R& r) { r.options.struct_size = 60; }, "place_options.struct_size is 60"},
      {[](R& r) { r.options.algorithm = 4; }, "algorithm is 4"},
      {[](R& r) { r.options.algorithm = -1; }, "algorithm is -1"},
      {[](R& r) { r.options.together = 2; }, "together is 2"},
      {[](R& r) { r.options.be_per_gpu = -1; }, "-1 BE instances on a GPU"},
      {[](R& r) { r.options.be_per_gpu = 65; }, "from 1 to 64"},
      {[](R& r) { r.options.ignore_bounds = 2; }, "ignore_bounds is 2"},
      {[](R& r) { r.options.reserved = 1; }, "reserved is 1", GPUSHARE_UNIMPLEMENTED},
      {[](R& r) { r.options.moves_max = -1; }, "number of moves is -1"},
      {[](R& r) { r.options.error_bars = kNan; }, "number of error bars is nan"},
      {[](R& r) { r.options.error_bars = -0.5; }, "number of error bars is -0.5"},
      {[](R& r) { r.options.risk = 101; }, "risk is 101"},
      {[](R& r) { r.options.free_gpu = kInfinity; }, "worth of a free GPU is inf"},
      {[](R& r) { r.result.struct_size = 8; }, "place_result.struct_size is 8"},
  });
}

TEST(PlaceBadInputTest, GpusAndApps) {
  using R = PlaceRequest;
  ExpectAllRefused({
      {[](R& r) { r.gpus.clear(); }, "has no GPU"},
      {[](R& r) { r.gpus[0].struct_size = 0; }, "gpus[0].struct_size is 0"},
      {[](R& r) { r.gpus[1].struct_size = 32; }, "gpus[1].struct_size is 32"},
      {[](R& r) { r.gpus[0].name = nullptr; }, "gpus[0].name is null"},
      {[](R& r) { r.gpus[0].name = ""; }, "gpus[0].name is empty"},
      {[](R& r) { r.gpus[0].name = "\xff"; }, "gpus[0].name is not UTF-8"},
      {[](R& r) { r.gpus[1].name = "a"; }, "'a' is stated twice"},
      {[](R& r) { r.gpus[1].count = 0; }, "has the count 0"},
      {[](R& r) { r.gpus[1].count = INT32_MAX; }, "from 1 to 100000"},
      {[](R& r) { r.gpus[0].count = r.gpus[1].count = 60'000; }, "the limit is 100000"},
      {[](R& r) { r.gpus[0].memory_bytes = 0; }, "memory in bytes 0"},
      {[](R& r) { r.gpus[0].memory_bytes = INT64_MAX; }, "memory in bytes 9223372036854775807"},
      {[](R& r) { r.lc[0].struct_size = 63; }, "lc[0].struct_size is 63"},
      {[](R& r) { r.lc[0].name = kLongName; }, "lc[0].name is longer than 63"},
      {[](R& r) { r.lc[0].kind = nullptr; }, "lc[0].kind is null"},
      {[](R& r) { r.lc[0].replicas = -1; }, "number of replicas -1"},
      {[](R& r) { r.lc[0].load = kNan; }, "load nan"},
      {[](R& r) { r.lc[0].load = 1.01; }, "load 1.01"},
      {[](R& r) { r.lc[0].memory_bytes = -1; }, "memory in bytes -1"},
      {[](R& r) { r.lc[0].p99_bound = 0.9; }, "bound on p99 0.9"},
      {[](R& r) { r.lc[0].p99_bound = kNan; }, "bound on p99 nan"},
      {[](R& r) { r.lc[0].target_ns = 5; }, "has a target and no p99 alone"},
      {[](R& r) { r.lc[0].target_ns = -5; }, "target in ns -5"},
      {[](R& r) { r.lc[0].p99_alone_ns = -5; }, "p99 alone in ns -5"},
      {[](R& r) { r.be[0].struct_size = 8192; }, "be[0].struct_size is 8192"},
      {[](R& r) { r.be[0].name = "chat"; }, "'chat' is stated twice"},
      {[](R& r) { r.be[0].kind = ""; }, "be[0].kind is empty"},
      {[](R& r) { r.be[0].instances = -3; }, "number of instances -3"},
      {[](R& r) { r.be[0].instances = INT32_MAX; }, "from 0 to 1000000"},
      {[](R& r) { r.be[0].memory_bytes = -1; }, "memory in bytes -1"},
      {[](R& r) { r.be[0].weight = -1; }, "weight -1"},
      {[](R& r) { r.be[0].weight = kInfinity; }, "weight inf"},
  });
}

TEST(PlaceBadInputTest, Pairs) {
  using R = PlaceRequest;
  ExpectAllRefused({
      {[](R& r) { r.pairs[0].struct_size = 1; }, "pairs[0].struct_size is 1"},
      {[](R& r) { r.pairs[0].reserved = 1; }, "reserved is 1", GPUSHARE_UNIMPLEMENTED},
      {[](R& r) { r.pairs[0].lc = nullptr; }, "pairs[0].lc is null"},
      {[](R& r) { r.pairs[0].be = kLongName; }, "pairs[0].be is longer"},
      {[](R& r) { r.pairs[0].load = -0.1; }, "load -0.1"},
      {[](R& r) { r.pairs[0].p99_ratio = 0; }, "it must be given"},
      {[](R& r) { r.pairs[0].p99_ratio = kNan; }, "p99 over alone nan"},
      {[](R& r) { r.pairs[0].p99_error = -1; }, "error of the p99 -1"},
      {[](R& r) { r.pairs[0].be_rate = 1.5; }, "BE rate 1.5"},
      {[](R& r) { r.pairs[0].be_error = kNan; }, "error of the BE rate nan"},
  });
}

TEST(PlaceBadInputTest, WhatRuns) {
  using R = PlaceRequest;
  ExpectAllRefused({
      {[](R& r) {
         r.running = {-1, -1, -1, -1, 3};
       },
       "running[4], of app 'tune', is 3"},
      {[](R& r) {
         r.running = {-2, -1, -1, -1, -1};
       },
       "running[0], of app 'chat', is -2"},
      {[](R& r) {
         r.running = {1, 1, -1, -1, -1};
       },
       "one LC replica at most"},
      {[](R& r) {
         r.gpus[0].memory_bytes = 70;
         r.running = {0, -1, 0, -1, -1};
       },
       "it needs 20 bytes there, and 10 are left"},
  });
}

// Before the computation: the message is of the result, and not of the option.
TEST(PlaceBadInputTest, TheSizeOfTheResultIsCheckedFirst) {
  const Cluster cluster = SmallCluster();
  PlaceRequest request(cluster);
  request.result.struct_size = 8;
  request.options.algorithm = 4;
  ExpectRefused(request, GPUSHARE_INVALID_ARGUMENT, "place_result.struct_size is 8");
}

TEST(PlaceBadInputTest, PointersAndCounts) {
  const Cluster cluster = SmallCluster();
  PlaceRequest r(cluster);
  const auto place = [&](const gpushare_place_options* options, const gpushare_place_gpu* gpus,
                         size_t gpu_count, const gpushare_place_lc* lc, size_t lc_count,
                         const gpushare_place_be* be, size_t be_count,
                         const gpushare_place_pair* pairs, size_t pair_count, int32_t* out,
                         size_t out_count, gpushare_place_result* result) {
    return gpushare_place(options, gpus, gpu_count, lc, lc_count, be, be_count, pairs, pair_count,
                          nullptr, out, out_count, result);
  };
  const auto refuse = [&](gpushare_status status, const char* text) {
    EXPECT_FAILS(status, GPUSHARE_INVALID_ARGUMENT, text);
    for (const int32_t gpu : r.out) EXPECT_EQ(gpu, PlaceRequest::kUnwritten);
  };
  const auto* const options = &r.options;
  const auto* const gpus = r.gpus.data();
  const auto* const lc = r.lc.data();
  const auto* const be = r.be.data();
  const auto* const pairs = r.pairs.data();
  int32_t* const out = r.out.data();
  refuse(place(nullptr, gpus, 2, lc, 1, be, 1, pairs, 1, out, 5, &r.result), "place_options is");
  refuse(place(options, nullptr, 2, lc, 1, be, 1, pairs, 1, out, 5, &r.result), "gpus is null");
  refuse(place(options, gpus, 2, nullptr, 1, be, 1, pairs, 1, out, 5, &r.result), "lc is null");
  refuse(place(options, gpus, 2, lc, 1, nullptr, 1, pairs, 1, out, 5, &r.result), "be is null");
  refuse(place(options, gpus, 2, lc, 1, be, 1, nullptr, 1, out, 5, &r.result), "pairs is null");
  refuse(place(options, gpus, 2, lc, 1, be, 1, pairs, 1, nullptr, 5, &r.result), "out_gpu is null");
  refuse(place(options, gpus, 2, lc, 1, be, 1, pairs, 1, out, 5, nullptr), "out_result is null");
  // No array is read with a count beyond its limit.
  refuse(place(options, gpus, SIZE_MAX, lc, 1, be, 1, pairs, 1, out, 5, &r.result),
         "gpus has 18446744073709551615 entries, and the limit is 100000");
  refuse(place(options, gpus, 2, lc, 100'001, be, 1, pairs, 1, out, 5, &r.result), "lc has 100001");
  refuse(place(options, gpus, 2, lc, 1, be, SIZE_MAX, pairs, 1, out, 5, &r.result), "be has 184");
  refuse(place(options, gpus, 2, lc, 1, be, 1, pairs, 65'537, out, 5, &r.result),
         "the limit is 65536");
  for (const size_t count : {size_t{0}, size_t{4}, size_t{6}, SIZE_MAX}) {
    refuse(place(options, gpus, 2, lc, 1, be, 1, pairs, 1, out, count, &r.result),
           "it must be 5, an entry for each replica and each instance");
  }
}

// --- structs of another version ------------------------------------------------------------------

struct LongerGpu {
  gpushare_place_gpu known;
  int64_t later = 0;
};

TEST(PlaceStructSizeTest, StructsOfALaterHeaderLieFartherApart) {
  const Cluster cluster = SmallCluster();
  PlaceRequest request(cluster);
  ASSERT_OK(request.Place());
  std::vector<LongerGpu> gpus;
  for (const gpushare_place_gpu& gpu : request.gpus) {
    gpus.push_back({gpu});
    gpus.back().known.struct_size = sizeof(LongerGpu);
  }
  std::vector<int32_t> out(5, PlaceRequest::kUnwritten);
  const auto place = [&] {
    return gpushare_place(&request.options, &gpus[0].known, gpus.size(), request.lc.data(), 1,
                          request.be.data(), 1, request.pairs.data(), 1, nullptr, out.data(), 5,
                          &request.result);
  };
  ASSERT_OK(place());
  EXPECT_EQ(out, request.out);
  gpus[1].later = 1;
  EXPECT_FAILS(place(), GPUSHARE_UNIMPLEMENTED, "gpus[1] uses a field at byte 24");
}

TEST(PlaceStructSizeTest, AResultOfALaterHeaderIsFilledAsFarAsItIsKnown) {
  const Cluster cluster = SmallCluster();
  PlaceRequest request(cluster);
  struct {
    gpushare_place_result known = GPUSHARE_PLACE_RESULT_INIT;
    int64_t later = 5;
  } longer;
  longer.known.struct_size = sizeof(longer);
  ASSERT_OK(gpushare_place(&request.options, request.gpus.data(), 2, request.lc.data(), 1,
                           request.be.data(), 1, request.pairs.data(), 1, nullptr,
                           request.out.data(), 5, &longer.known));
  EXPECT_EQ(longer.known.struct_size, sizeof(gpushare_place_result));
  EXPECT_EQ(longer.later, 0);
  EXPECT_EQ(longer.known.be_placed, 3);
}

}  // namespace
}  // namespace gpushare_test
