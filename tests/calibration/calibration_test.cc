// Calibration on the simulated device, whose truth is known: it must find what the device runs on,
// from a base profile whose latencies and rates are wrong; resume after a crash; report a hang.

#include "src/calibration/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/calibration/profile/checkpoint.h"
#include "src/core/base/limits.h"
#include "src/models/online/online_model.h"
#include "src/models/samples/row_times.h"
#include "src/sim/sim_device.h"
#include "tests/core/forwarding_device.h"
#include "tests/temporary_folder.h"

namespace gpushare::models {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Profile& Truth() {
  static const auto* const kProfile =
      new Profile(*LoadProfile(GPUSHARE_H200_PROFILE));  // NOLINT: lives as long as the program
  return *kProfile;
}

// What a real device knows of itself before it is measured: its sizes.
core::DeviceProfile Guess() {
  core::DeviceProfile guess = Truth().device;
  guess.launch_latency_ns = 7000;
  guess.graph_launch_latency_ns = 9000;
  guess.completion_latency_ns = 900;
  guess.eviction_write_latency_ns = 12000;
  guess.pinned_bytes_per_ns = 20;
  guess.duplex_bytes_per_ns = 21;
  guess.pageable_h2d_bytes_per_ns = 5;
  guess.pageable_d2h_bytes_per_ns = 5;
  guess.copy_latency_ns = 20000;
  guess.remainder_for_lc = Truth().device.remainder_for_lc;
  return guess;
}

// A simulated device that does not tell what it runs on.
class BlindDevice final : public core::ForwardingDevice {
 public:
  explicit BlindDevice(std::unique_ptr<core::Device> device)
      : ForwardingDevice(std::move(device)), capabilities_(inner().capabilities()) {
    capabilities_.profile = Guess();
  }
  const core::DeviceCapabilities& capabilities() const override { return capabilities_; }
  absl::Status CreatePlace(core::PlaceIndex place, const core::PlaceSpec& spec) override {
    if (spec.groups == too_few_groups && spec.with_remainder) too_small_ = place;
    return inner().CreatePlace(place, spec);
  }
  bool Confines(core::KernelId /*kernel*/, core::PlaceIndex place) const override {
    return place != too_small_ && (place == core::kWholeDevice || !confines_nothing);
  }
  void AbandonLane(core::LaneIndex lane) override {
    ++abandoned;
    inner().AbandonLane(lane);
  }
  absl::Status Launch(const core::LaunchRequest& request) override {
    ++launches;
    const int64_t stands = stall ? stall(request, more_followed_) : 0;
    if (stands > 0) stalled_[request.parts[0].launch.value] = stands;
    more_followed_ = request.more_follows;
    return inner().Launch(request);
  }
  size_t PollCompletions(absl::Span<core::DeviceCompletion> out) override {
    const size_t count = inner().PollCompletions(out);
    for (size_t i = 0; i < count; ++i) {
      const auto found = stalled_.find(out[i].launch.value);
      if (found == stalled_.end()) continue;
      inner().AdvanceTo(inner().NowNs() + found->second);
      stalled_.erase(found);
    }
    return count;
  }

  int launches = 0;
  int abandoned = 0;
  bool confines_nothing = false;  // no kernel stays in a partition
  int32_t too_few_groups = -1;    // on so many, and the remainder, no kernel is confined
  // How long the host stands still before it sees the end of a launch. The second argument: the
  // launch before it said that more follows.
  std::function<int64_t(const core::LaunchRequest&, bool)> stall;

 private:
  bool more_followed_ = false;
  std::map<uint64_t, int64_t> stalled_;  // by launch
  core::PlaceIndex too_small_ = core::kNoPlace;
  core::DeviceCapabilities capabilities_;
};

CalibrationItem Item(const std::string& name, int64_t rounds = 100) {
  CalibrationItem item;
  item.kernel = *Truth().FindKernel(name);
  if (item.kernel.kind() == core::TaskKind::kKernel) {
    item.block_tasks = rounds * item.kernel.resources.workers_per_sm_max * Truth().device.sm_count;
  }
  return item;
}

// The record's speed on `sms` SMs, between its points as the simulated device has it.
double TrueSpeed(const core::KernelDesc& kernel, int32_t sms) {
  const std::vector<core::SpeedPoint>& table = kernel.simulation.speed;
  if (table.empty()) return sms / 132.0;
  core::SpeedPoint low{0, 0};
  for (const core::SpeedPoint& point : table) {
    if (sms <= point.sms) {
      return low.speed + (point.speed - low.speed) * (sms - low.sms) / (point.sms - low.sms);
    }
    low = point;
  }
  return low.speed;
}

class CalibrationTest : public ::testing::TestWithParam<sim::Tier> {
 protected:
  void SetUp() override { options_.output_path = folder_ + "/profile.json"; }

  std::unique_ptr<BlindDevice> MakeDevice(const sim::FaultPlan& faults = {}) {
    sim::SimOptions options = {.profile = Truth().device, .tier = GetParam(), .faults = faults};
    return std::make_unique<BlindDevice>(*sim::MakeSimDevice(options));
  }
  absl::StatusOr<CalibrationResult> Run(const std::vector<CalibrationItem>& items) {
    device_ = MakeDevice(faults_);
    device_->too_few_groups = too_few_groups_;
    device_->confines_nothing = confines_nothing_;
    device_->stall = stall_;
    Profile base = Truth();
    base.device = Guess();
    return Calibrate(*device_, base, items, options_);
  }
  bool HasCheckpoint() const {
    return std::filesystem::exists(CheckpointPath(options_.output_path));
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  CalibrationOptions options_;
  sim::FaultPlan faults_;
  int32_t too_few_groups_ = -1;
  bool confines_nothing_ = false;
  std::function<int64_t(const core::LaunchRequest&, bool)> stall_;
  std::unique_ptr<BlindDevice> device_;
};

TEST_P(CalibrationTest, FindsWhatTheKernelsRunOn) {
  for (const char* name : {"sincos_267us", "streaming_59us"}) {
    SCOPED_TRACE(name);
    CalibrationItem item = Item(name);
    // Far from 0, which a measurement that is never made would give.
    if (item.kernel.name == "streaming_59us") item.kernel.simulation.worker_overhead = 0.04;
    const core::SimulationRecord& truth = item.kernel.simulation;
    const CalibrationResult result = Run({item}).value();
    const KernelMeasurement& measured = result.kernels.front();
    const double task = static_cast<double>(truth.block_task_ns);
    EXPECT_NEAR(static_cast<double>(measured.block_task_ns), task, 0.03 * task);
    EXPECT_NEAR(static_cast<double>(measured.solo_ns), 100 * task, 3 * task);
    EXPECT_NEAR(measured.worker_overhead, truth.worker_overhead, 0.002);
    EXPECT_NEAR(measured.saturating_occupancy, truth.saturating_occupancy, 0.03);
    EXPECT_EQ(measured.block_task_spread, 0);
    EXPECT_EQ(measured.workers_per_sm, 8);
    // The last 0.86 to 0.97 of a block task of workers, and the write before it.
    const double worker_task = task * (1 + truth.worker_overhead);
    EXPECT_NEAR(static_cast<double>(measured.eviction_p50_ns), 0.86 * worker_task + 5000,
                0.05 * task);
    EXPECT_NEAR(static_cast<double>(measured.eviction_p99_ns), worker_task + 5000, 0.08 * task);
    ASSERT_EQ(measured.speed.size(), 31u);
    for (const core::SpeedPoint& point : measured.speed) {
      EXPECT_NEAR(point.speed, TrueSpeed(item.kernel, point.sms), 0.02) << point.sms << " SMs";
    }
    EXPECT_THAT(measured.knees, IsEmpty());
  }
}

// As sincos on an H200. Cut at 0, the block task would be that of workers, and the grid's run,
// which is what LC queries and BE alone are, too short in every prediction and simulation.
TEST_P(CalibrationTest, WorkersThatAreFasterThanTheGridStaySoInTheProfile) {
  CalibrationItem item = Item("sincos_267us");
  item.kernel.simulation.worker_overhead = -0.08;
  const CalibrationResult result = Run({item}).value();
  EXPECT_NEAR(result.kernels.front().worker_overhead, -0.08, 0.002);
  const Profile loaded = LoadProfile(options_.output_path).value();
  const core::KernelDesc* const kernel = loaded.FindKernel("sincos_267us");
  ASSERT_NE(kernel, nullptr);
  EXPECT_NEAR(kernel->simulation.worker_overhead, -0.08, 0.002);
  EXPECT_NEAR(static_cast<double>(kernel->simulation.block_task_ns), 267000, 0.03 * 267000);
  // Calibrated again, the device that the profile describes gives the same.
  CalibrationItem again = item;
  again.kernel = *kernel;
  const CalibrationResult second = Run({again}).value();
  EXPECT_NEAR(second.kernels.front().worker_overhead, -0.08, 0.004);
  EXPECT_NEAR(static_cast<double>(second.kernels.front().solo_ns),
              static_cast<double>(result.kernels.front().solo_ns), 0.03 * 26'700'000);
}

TEST_P(CalibrationTest, FindsAGraphsSpeedAndItsKnees) {
  const CalibrationItem item = Item("decode16");
  const CalibrationResult result = Run({item}).value();
  const KernelMeasurement& measured = result.kernels.front();
  EXPECT_NEAR(static_cast<double>(measured.solo_ns), 16 * 33660.0, 0.01 * 16 * 33660);
  for (const core::SpeedPoint& point : measured.speed) {
    EXPECT_NEAR(point.speed, TrueSpeed(item.kernel, point.sms), 0.02) << point.sms << " SMs";
  }
  EXPECT_THAT(measured.knees, ElementsAre(84, 108));
  // Its nodes agree with what was measured and stay as they are.
  EXPECT_EQ(result.profile.FindKernel("decode16")->simulation.nodes[0].duration_ns, 33160);
}

TEST_P(CalibrationTest, ASizeThatDoesNotConfineAGraphIsAsSlowAsTheNextSmallerOne) {
  too_few_groups_ = 4;  // and 12 SMs that groups leave over: 44
  const CalibrationResult result = Run({Item("decode16")}).value();
  const std::vector<core::SpeedPoint>& speed = result.kernels.front().speed;
  const auto size = std::find_if(speed.begin(), speed.end(),
                                 [](const core::SpeedPoint& point) { return point.sms == 44; });
  ASSERT_NE(size, speed.end());
  EXPECT_EQ(size->speed, std::prev(size)->speed);
  EXPECT_LT(size->speed, TrueSpeed(Item("decode16").kernel, 44));
  EXPECT_THAT(result.notes, Contains(HasSubstr("does not run on 44 SMs alone")));
}

// As a graph whose clusters no partition takes: its launches there run on every SM.
TEST_P(CalibrationTest, AGraphThatNoPartitionConfinesIsNotAsFastThereAsOnTheWholeDevice) {
  confines_nothing_ = true;
  const CalibrationResult result = Run({Item("decode16")}).value();
  const std::vector<core::SpeedPoint>& speed = result.kernels.front().speed;
  ASSERT_GT(speed.size(), 10U);
  for (const core::SpeedPoint& point : speed) {
    EXPECT_LE(point.speed, point.sms / 132.0 + 0.001) << point.sms << " SMs";
  }
}

// On 84 SMs decode keeps its speed beside compute and less than half of it beside streaming.
TEST_P(CalibrationTest, FindsWhatNeighboursDoToAGraph) {
  const CalibrationResult result =
      Run({Item("decode16"), Item("sincos_27us"), Item("streaming_59us")}).value();
  ASSERT_EQ(result.pairs.size(), 2u);
  const std::unique_ptr<core::CostModel> model = MakeOnlineModel(result.profile.device);
  ASSERT_TRUE(model->Load(result.profile.learned).ok());
  std::vector<core::KernelDesc> kernels(result.profile.kernels.begin(),
                                        result.profile.kernels.begin() + 3);
  for (uint32_t i = 0; i < 3; ++i) {
    kernels[i].id = core::KernelId{i + 1};
    model->AddKernel(kernels[i]);
  }
  const core::KernelDesc& decode = kernels[0];
  const double alone = TrueSpeed(decode, 84);
  for (const PairMeasurement& pair : result.pairs) {
    const bool streaming = pair.be == "streaming_59us";
    const core::KernelDesc& be = kernels[streaming ? 2 : 1];
    const auto speed = std::find_if(pair.speeds.begin(), pair.speeds.end(),
                                    [](const auto& one) { return one.lc_sms == 84; });
    ASSERT_NE(speed, pair.speeds.end()) << pair.be;
    EXPECT_NEAR(speed->alone, alone, 0.02);
    EXPECT_NEAR(speed->beside, streaming ? 0.46 : alone, 0.03) << pair.be;
    // What is planned with is what was measured.
    EXPECT_NEAR(model->durations().SpeedOn(decode, 84) *
                    model->neighbours().SpeedBeside(decode, 84, be, 48),
                speed->beside, 0.005);
    // On average most of a block task, and the write before it.
    ASSERT_EQ(pair.blocking_ns.size(), 16u);
    const auto task = static_cast<double>(be.simulation.block_task_ns);
    const auto blocking = static_cast<double>(model->durations().PredictBlocking(be).duration_ns);
    EXPECT_GT(blocking, 0.4 * task);
    EXPECT_LT(blocking, 1.1 * task + 5000);
  }
}

TEST_P(CalibrationTest, FindsTheDevicesPrimitives) {
  const CalibrationResult result = Run({Item("sincos_27us"), Item("decode16")}).value();
  const core::DeviceProfile& device = result.profile.device;
  EXPECT_NEAR(static_cast<double>(device.launch_latency_ns), 4500, 100);
  EXPECT_NEAR(static_cast<double>(device.completion_latency_ns), 2000, 100);
  EXPECT_NEAR(static_cast<double>(device.graph_launch_latency_ns), 6000, 700);
  // The record has the fastest write; jitter adds to the median.
  EXPECT_NEAR(static_cast<double>(device.eviction_write_latency_ns), 4700, 600);
  EXPECT_NEAR(device.pinned_bytes_per_ns, 55.5, 0.03 * 55.5);
  EXPECT_NEAR(device.duplex_bytes_per_ns, 101.6, 0.03 * 101.6);
  EXPECT_NEAR(device.pageable_h2d_bytes_per_ns, 10, 0.3);
  EXPECT_NEAR(device.pageable_d2h_bytes_per_ns, 19, 0.57);
  EXPECT_NEAR(static_cast<double>(device.copy_latency_ns), 5200, 260);
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST_P(CalibrationTest, WritesAProfileThatLoadsAndPredicts) {
  CalibrationItem item = Item("sincos_267us");
  item.kernel.functions()->original = &item;
  item.kernel.functions()->worker = &item;
  item.kernel.functions()->slice = &item;
  const CalibrationResult result = Run({item}).value();
  const Profile loaded = LoadProfile(options_.output_path).value();
  EXPECT_FALSE(HasCheckpoint());
  EXPECT_EQ(loaded.device.gpu_model, "NVIDIA H200");
  const core::KernelDesc* kernel = loaded.FindKernel("sincos_267us");
  ASSERT_NE(kernel, nullptr);
  // Measured, and given where nothing can be measured.
  EXPECT_EQ(kernel->simulation.block_task_ns, result.kernels[0].block_task_ns);
  EXPECT_EQ(kernel->simulation.demand.special, 0.95);
  // The same GPU's other kernels are kept; handles of this process are not.
  EXPECT_NE(loaded.FindKernel("decode16"), nullptr);
  EXPECT_EQ(result.profile.kernels[0].functions()->original, nullptr);
  EXPECT_EQ(result.profile.kernels[0].functions()->worker, nullptr);
  EXPECT_EQ(result.profile.kernels[0].functions()->slice, nullptr);
  const std::unique_ptr<core::CostModel> model = MakeOnlineModel(loaded.device);
  ASSERT_TRUE(model->Load(loaded.learned).ok());
  core::KernelDesc known = *kernel;
  known.id = core::KernelId{1};
  model->AddKernel(known);
  const core::Prediction eviction = model->durations().PredictEviction(known);
  EXPECT_TRUE(eviction.trained);
  EXPECT_NEAR(static_cast<double>(eviction.duration_ns), 235000, 20000);
}

// A first prediction is a measured one: of the whole sample task from its repeats, and where sizes
// were measured, of other sizes from a line.
TEST_P(CalibrationTest, EveryKernelStartsTrained) {
  const std::vector<CalibrationItem> items = {Item("sincos_27us"), Item("streaming_59us"),
                                              Item("decode16"), Item("cublaslt_library_gemm")};
  for (const bool with_sizes : {false, true}) {
    SCOPED_TRACE(with_sizes ? "with sizes" : "without sizes");
    if (with_sizes) options_.sample = [](const SampleRow& /*row*/) {};
    const CalibrationResult result = Run(items).value();
    const std::unique_ptr<core::CostModel> model = MakeOnlineModel(result.profile.device);
    ASSERT_TRUE(model->Load(result.profile.learned).ok());
    for (uint32_t i = 0; i < items.size(); ++i) {
      core::KernelDesc kernel = *result.profile.FindKernel(items[i].kernel.name);
      SCOPED_TRACE(kernel.name);
      kernel.id = core::KernelId{i + 1};
      model->AddKernel(kernel);
      const KernelMeasurement& measured = result.kernels[i];
      EXPECT_EQ(measured.solo_sizes.size(), with_sizes && kernel.evictable ? 8u : 1u);
      for (const double share : {1.0, 0.4}) {
        if (share < 1 && !(with_sizes && kernel.evictable)) continue;
        core::TaskFeatures features;
        features.kernel = &kernel;
        features.kind = kernel.kind();
        features.block_tasks =
            static_cast<int64_t>(share * static_cast<double>(measured.block_tasks));
        const core::Prediction prediction = model->durations().PredictSolo(features);
        EXPECT_TRUE(prediction.trained);
        const auto predicted = static_cast<double>(prediction.duration_ns);
        // Rounds of block tasks are steps, which a line over sizes leaves as its error.
        EXPECT_LE(static_cast<double>(prediction.error_ns), (with_sizes ? 0.03 : 0.02) * predicted);
        EXPECT_NEAR(predicted, share * static_cast<double>(measured.solo_ns), 0.02 * predicted);
      }
    }
  }
}

// The repeats outlive an interrupt.
TEST_P(CalibrationTest, AResumedCalibrationIsAsTrained) {
  const std::vector<CalibrationItem> items = {Item("sincos_27us"), Item("decode16")};
  options_.sample = [](const SampleRow& /*row*/) {};
  const CalibrationResult whole = Run(items).value();
  int asked = 0;
  bool in_pairs = false;
  options_.progress = [&](const CalibrationProgress& progress) {
    in_pairs = progress.what.find(" | ") != std::string::npos;
  };
  options_.cancelled = [&] { return in_pairs && ++asked > 5; };
  ASSERT_TRUE(absl::IsCancelled(Run(items).status()));
  options_.cancelled = nullptr;
  options_.resume = true;
  const CalibrationResult resumed = Run(items).value();
  ASSERT_EQ(resumed.kept, 2);
  for (size_t i = 0; i < items.size(); ++i) {
    const std::vector<SoloSize>& kept = resumed.kernels[i].solo_sizes;
    ASSERT_EQ(kept.size(), whole.kernels[i].solo_sizes.size());
    for (size_t size = 0; size < kept.size(); ++size) {
      EXPECT_EQ(kept[size].block_tasks, whole.kernels[i].solo_sizes[size].block_tasks);
      EXPECT_EQ(kept[size].ns, whole.kernels[i].solo_sizes[size].ns);
    }
  }
}

TEST_P(CalibrationTest, SeesTheSpreadOfBlockTasks) {
  CalibrationItem item = Item("sincos_267us", 40);
  item.kernel.simulation.block_task_spread = 0.2;
  const CalibrationResult result = Run({item}).value();
  EXPECT_GT(result.kernels[0].block_task_spread, 0.05);
  EXPECT_LT(result.kernels[0].block_task_spread, 0.3);
  EXPECT_NEAR(static_cast<double>(result.kernels[0].block_task_ns), 267000, 0.05 * 267000);
}

TEST_P(CalibrationTest, AKernelWithoutWorkersIsMeasuredByItsGrid) {
  CalibrationItem item = Item("sincos_267us");
  item.kernel.evictable = false;
  const CalibrationResult result = Run({item}).value();
  EXPECT_NEAR(static_cast<double>(result.kernels[0].block_task_ns), 267000, 0.03 * 267000);
  EXPECT_EQ(result.kernels[0].eviction_p99_ns, 0);
  EXPECT_EQ(result.kernels[0].worker_solo_ns, 0);
  ASSERT_EQ(result.kernels[0].speed.size(), 31u);
  EXPECT_NEAR(result.kernels[0].speed[10].speed, result.kernels[0].speed[10].sms / 132.0, 0.02);
  EXPECT_THAT(result.notes, ::testing::Contains(HasSubstr("No item is evictable")));
}

TEST_P(CalibrationTest, AResumedCalibrationGivesTheSameProfile) {
  const std::vector<CalibrationItem> items = {Item("sincos_267us"), Item("decode16"),
                                              Item("streaming_59us")};
  CalibrationResult whole = Run(items).value();
  const int launches = device_->launches;
  std::filesystem::remove(options_.output_path);

  // The crash: cancelled in the middle of the second kernel.
  bool in_second = false;
  int asked = 0;
  options_.resume = true;
  options_.progress = [&](const CalibrationProgress& progress) {
    // The device, three kernels, a graph beside two kernels on splits and on the same SMs, and the
    // two kernels with each other.
    EXPECT_EQ(progress.total, 1 + 3 + 2 + 2 + 1);
    in_second = progress.what == "decode16" && progress.kernel == nullptr;
  };
  options_.cancelled = [&] { return in_second && ++asked > 20; };
  const absl::StatusOr<CalibrationResult> cut = Run(items);
  EXPECT_TRUE(absl::IsCancelled(cut.status())) << cut.status();
  EXPECT_TRUE(HasCheckpoint());
  EXPECT_FALSE(std::filesystem::exists(options_.output_path));

  options_.cancelled = nullptr;
  const CalibrationResult resumed = Run(items).value();
  EXPECT_EQ(resumed.kept, 1);
  EXPECT_LT(device_->launches, launches);
  EXPECT_FALSE(HasCheckpoint());
  // What came before the crash is the same to the bit, the rest within what a repeat differs by.
  EXPECT_EQ(resumed.profile.device.eviction_write_latency_ns,
            whole.profile.device.eviction_write_latency_ns);
  EXPECT_EQ(resumed.kernels[0].solo_ns, whole.kernels[0].solo_ns);
  EXPECT_EQ(resumed.kernels[0].speed[3].speed, whole.kernels[0].speed[3].speed);
  // Evictions come once all kernels have their durations.
  EXPECT_NEAR(static_cast<double>(resumed.kernels[0].eviction_p50_ns),
              static_cast<double>(whole.kernels[0].eviction_p50_ns), 20'000);
  EXPECT_EQ(resumed.kernels[0].worker_overhead, whole.kernels[0].worker_overhead);
  for (size_t i = 0; i < items.size(); ++i) {
    const KernelMeasurement& a = whole.kernels[i];
    const KernelMeasurement& b = resumed.kernels[i];
    EXPECT_NEAR(static_cast<double>(a.solo_ns), static_cast<double>(b.solo_ns),
                0.01 * static_cast<double>(a.solo_ns));
    EXPECT_EQ(a.knees, b.knees);
    ASSERT_EQ(a.speed.size(), b.speed.size());
    for (size_t p = 0; p < a.speed.size(); ++p) {
      EXPECT_NEAR(a.speed[p].speed, b.speed[p].speed, 0.01);
    }
  }
}

TEST_P(CalibrationTest, AChangedItemIsMeasuredAnew) {
  std::vector<CalibrationItem> items = {Item("sincos_27us"), Item("sincos_267us")};
  options_.resume = true;
  bool in_second = false;
  options_.progress = [&](const CalibrationProgress& progress) {
    in_second = progress.what == "sincos_267us";
  };
  options_.cancelled = [&] { return in_second; };
  EXPECT_TRUE(absl::IsCancelled(Run(items).status()));
  options_.cancelled = nullptr;
  items[0].block_tasks /= 2;
  const CalibrationResult resumed = Run(items).value();
  EXPECT_EQ(resumed.kept, 0);
  EXPECT_NEAR(static_cast<double>(resumed.kernels[0].solo_ns), 50 * 27000, 30000);
}

TEST_P(CalibrationTest, ABadCheckpointIsRefused) {
  options_.resume = true;
  std::ofstream(CheckpointPath(options_.output_path)) << "{\"schema_version\": 1, \"devi";
  absl::Status status = Run({Item("sincos_27us")}).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("is corrupt"));
  // A profile is no checkpoint, and a checkpoint of another GPU is not this one's.
  Profile other = Truth();
  ASSERT_TRUE(SaveProfile(CheckpointPath(options_.output_path), other).ok());
  EXPECT_TRUE(absl::IsDataLoss(Run({Item("sincos_27us")}).status()));
  other.kernels.clear();
  other.device.gpu_model = "NVIDIA B200";
  other.learned = "gpushare calibration 4 device\n";
  ASSERT_TRUE(SaveProfile(CheckpointPath(options_.output_path), other).ok());
  status = Run({Item("sincos_27us")}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("NVIDIA B200"));
  // Nor is one of another version, whose lines have other numbers.
  other.learned = "gpushare calibration 2 device\n";
  ASSERT_TRUE(SaveProfile(CheckpointPath(options_.output_path), other).ok());
  status = Run({Item("sincos_27us")}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("begins with 'gpushare calibration 2"));
}

TEST_P(CalibrationTest, ACheckpointWithAnImpossibleNumberIsRefused) {
  const std::vector<CalibrationItem> items = {Item("sincos_27us"), Item("decode16")};
  bool in_second = false;
  int asked = 0;
  options_.progress = [&](const CalibrationProgress& progress) {
    in_second = progress.what == "decode16" && progress.kernel == nullptr;
  };
  options_.cancelled = [&] { return in_second && ++asked > 20; };
  ASSERT_TRUE(absl::IsCancelled(Run(items).status()));
  options_.cancelled = nullptr;
  Profile checkpoint = LoadProfile(CheckpointPath(options_.output_path)).value();
  // The kernel's line: digest, kind, block tasks.
  std::string& text = checkpoint.learned;
  const size_t line = text.rfind('\n', text.find(" sincos_27us"));
  const size_t kind = text.find(' ', text.find(' ', line + 1) + 1);
  ASSERT_NE(kind, std::string::npos);
  text.insert(kind + 1, "-");
  ASSERT_TRUE(SaveProfile(CheckpointPath(options_.output_path), checkpoint).ok());
  options_.resume = true;
  const absl::Status status = Run(items).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("is not a measurement"));
}

TEST_P(CalibrationTest, AHangIsReportedAndBounded) {
  options_.hang_limit_ns = 100'000'000;
  for (const int64_t nth : {1, 5, 40, 200}) {
    SCOPED_TRACE(nth);
    faults_ = {};
    faults_.hang.nth = nth;
    const absl::Status status = Run({Item("sincos_27us", 10)}).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("has not completed after"));
    EXPECT_THAT(status.message(), HasSubstr("the limit is 100 ms"));
    EXPECT_GE(device_->abandoned, 1);
  }
}

TEST_P(CalibrationTest, ALostDeviceAndAFailedLaunchAreErrors) {
  faults_.device_lost.nth = 30;
  EXPECT_TRUE(absl::IsUnavailable(Run({Item("sincos_27us")}).status()));
  faults_ = {};
  faults_.launch_failure.nth = 30;
  const absl::Status status = Run({Item("sincos_27us")}).status();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("failed with code "));
}

TEST_P(CalibrationTest, ALaneWhoseEvictionsAreBlockedIsNoted) {
  // Long after the round that the lane's test expects: the whole task of 27 ms.
  faults_.blocked_eviction.nth = 1;
  const CalibrationResult result = Run({Item("sincos_27us", 1000)}).value();
  EXPECT_THAT(result.notes, ::testing::Contains(HasSubstr("was not evicted")));
}

TEST_P(CalibrationTest, LittleTimeGivesFewerSizes) {
  options_.seconds_per_kernel = 1;
  const CalibrationResult result = Run({Item("sincos_267us", 200)}).value();
  const KernelMeasurement& measured = result.kernels[0];
  EXPECT_LT(measured.speed.size(), 20u);
  EXPECT_GE(measured.speed.size(), 3u);
  EXPECT_EQ(measured.speed.back().sms, 132);
  EXPECT_LT(measured.spent_ns, 8'000'000'000);
  EXPECT_GE(measured.eviction_ns.size(), 16u);  // of fewer there is no p99
}

TEST_P(CalibrationTest, BadOptionsAreRefused) {
  options_.repeats = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(Run({Item("sincos_27us")}).status()));
  options_.repeats = 7;
  options_.seconds_per_kernel = std::nan("");
  EXPECT_TRUE(absl::IsInvalidArgument(Run({Item("sincos_27us")}).status()));
  options_.seconds_per_kernel = 30;
  EXPECT_TRUE(absl::IsInvalidArgument(Run({}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Run({Item("decode16"), Item("decode16")}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Run({Item("sincos_27us", 0)}).status()));
}

// 1.5 us between slices are 2 % of 75 us: 37.5 rounds of 2 us.
TEST_P(CalibrationTest, FindsTheSmallestSlice) {
  CalibrationItem item = Item("sincos_27us", 1000);
  item.kernel.simulation.block_task_ns = 2000;
  item.kernel.simulation.saturating_occupancy = 1;
  absl::StatusOr<CalibrationResult> result = Run({item});
  ASSERT_TRUE(result.ok()) << result.status();
  KernelMeasurement measured = result->kernels.front();
  EXPECT_LE(measured.slice_overhead, 0.02);
  EXPECT_GE(measured.slice_block_tasks, 34 * 8 * 132);
  EXPECT_LE(measured.slice_block_tasks, 40 * 8 * 132);
  EXPECT_EQ(measured.slice_block_tasks % 132, 0);
  // A fifth as long where five times as much may be lost.
  options_.slice_overhead_max = 0.1;
  result = Run({item});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GE(result->kernels.front().slice_block_tasks, 6 * 8 * 132);
  EXPECT_LE(result->kernels.front().slice_block_tasks, 9 * 8 * 132);
  // Long block tasks need no more than a round.
  result = Run({Item("sincos_267us")});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->kernels.front().slice_block_tasks, 0);
  EXPECT_LE(result->kernels.front().slice_block_tasks, 8 * 132);
  // It is in the profile.
  const Profile loaded = LoadProfile(options_.output_path).value();
  ASSERT_EQ(loaded.calibration.kernels.size(), 1u);
  EXPECT_EQ(loaded.calibration.kernels[0].name, "sincos_267us");
  EXPECT_EQ(loaded.calibration.kernels[0].slice_block_tasks,
            result->kernels.front().slice_block_tasks);
}

TEST_P(CalibrationTest, FindsTheFewestWorkersOfFullSpeed) {
  CalibrationItem half = Item("sincos_27us");
  half.kernel.simulation.saturating_occupancy = 0.5;
  CalibrationItem all = Item("sincos_267us");
  all.kernel.simulation.saturating_occupancy = 1;
  const CalibrationResult result = Run({half, all}).value();
  EXPECT_EQ(result.kernels[0].workers_per_sm_least, 4);
  EXPECT_EQ(result.kernels[1].workers_per_sm_least, 8);
  EXPECT_EQ(result.profile.calibration.kernels[0].workers_per_sm_least, 4);
}

TEST_P(CalibrationTest, TellsMemoryFromComputeByTheCurve) {
  CalibrationItem flat = Item("streaming_59us");
  flat.kernel.simulation.speed = {{33, 0.5}, {66, 1}, {132, 1}};
  const CalibrationResult result = Run({flat, Item("sincos_267us")}).value();
  EXPECT_EQ(result.kernels[0].intensity, Intensity::kMemory);
  EXPECT_NEAR(result.kernels[0].flat_from_sms, 66, 4);
  EXPECT_EQ(result.kernels[1].intensity, Intensity::kCompute);
  EXPECT_EQ(result.kernels[1].flat_from_sms, 0);
  EXPECT_EQ(result.profile.calibration.kernels[0].intensity, Intensity::kMemory);
}

// Two kernels of different bottlenecks share an SM better than a kernel with its like.
TEST_P(CalibrationTest, FindsWhatKernelsDoToEachOtherOnTheSameSms) {
  CalibrationItem twin = Item("sincos_27us", 400);
  twin.kernel.name = "twin";
  const CalibrationResult result =
      Run({Item("sincos_27us", 400), twin, Item("streaming_59us", 200)}).value();
  const std::vector<CoResidentRecord>& pairs = result.profile.calibration.co_resident;
  ASSERT_EQ(pairs.size(), 3u);
  double sums[2] = {0, 0};
  for (const CoResidentRecord& pair : pairs) {
    ASSERT_EQ(pair.points.size(), 3u) << pair.first << " + " << pair.second;
    for (const CoResidentPoint& point : pair.points) {
      EXPECT_EQ(point.first_workers_per_sm + point.second_workers_per_sm, 8);
      EXPECT_GT(point.first_speed, 0);
      EXPECT_GT(point.second_speed, 0);
      EXPECT_LE(point.first_speed, 1.01);
      EXPECT_LE(point.second_speed, 1.01);
    }
    const CoResidentPoint& half = pair.points[1];
    if (pair.first != "sincos_27us") continue;
    sums[pair.second == "twin" ? 0 : 1] = half.first_speed + half.second_speed;
  }
  EXPECT_NEAR(sums[0], 1, 0.1);
  EXPECT_GT(sums[1], 1.1);
}

class FusedCalibrationTest : public CalibrationTest {
 protected:
  static CalibrationFused Pair(const std::string& name, double load, double duration,
                               int32_t cuda_blocks = 1) {
    CalibrationFused fused;
    fused.kernel.name = name;
    fused.kernel.opportune_load_ratio = load;
    fused.kernel.opportune_duration_ratio = duration;
    fused.kernel.cuda_blocks = cuda_blocks;
    fused.tensor_item = 0;
    fused.cuda_item = 1;
    return fused;
  }
  // Parts of which an SM holds as many workers as there are in its fused blocks.
  static std::vector<CalibrationItem> Parts() {
    CalibrationItem tensor = Item("sincos_267us", 100);
    CalibrationItem cuda = Item("streaming_59us", 800);
    for (CalibrationItem* item : {&tensor, &cuda}) {
      item->kernel.resources.threads_per_block = 128;
      item->kernel.resources.workers_per_sm_max = 8;
      item->kernel.simulation.worker_overhead = 0;
    }
    return {tensor, cuda};
  }
};

TEST_P(FusedCalibrationTest, FindsTheInflectionAndKeepsTheBestOfThePair) {
  options_.fused = {Pair("good", 0.8, 1.3), Pair("better", 1.2, 1.4), Pair("never", 0.8, 1.8)};
  CalibrationFused spills = Pair("spills", 0.8, 1.1);
  spills.local_bytes = 16;
  options_.fused.push_back(spills);
  const CalibrationResult result = Run(Parts()).value();
  const Profile loaded = LoadProfile(options_.output_path).value();
  const std::vector<FusedRecord>& fused = loaded.calibration.fused;
  ASSERT_EQ(fused.size(), 4u);
  EXPECT_EQ(fused[0].verdict, FusedVerdict::kSlower);
  EXPECT_EQ(fused[1].verdict, FusedVerdict::kKept);
  EXPECT_EQ(fused[2].verdict, FusedVerdict::kNeverGains);
  EXPECT_EQ(fused[3].verdict, FusedVerdict::kSpills);
  EXPECT_TRUE(fused[3].points.empty());
  EXPECT_NEAR(fused[0].opportune_load_ratio, 0.8, 0.05);
  EXPECT_NEAR(fused[0].opportune_duration_ratio, 1.3, 0.05);
  EXPECT_NEAR(fused[0].saving, 1 - 1.3 / 1.8, 0.02);
  EXPECT_NEAR(fused[1].opportune_load_ratio, 1.2, 0.05);
  EXPECT_NEAR(fused[1].saving, 1 - 1.4 / 2.2, 0.02);
  ASSERT_EQ(fused[0].points.size(), 6u);  // the last at the inflection
  for (const auto& [index, load] : {std::pair{0, 0.1}, std::pair{1, 0.2}, std::pair{2, 1.0},
                                    std::pair{3, 1.8}, std::pair{4, 1.9}}) {
    EXPECT_NEAR(fused[0].points[static_cast<size_t>(index)].load_ratio, load, 0.03);
  }
  EXPECT_THAT(result.notes, Contains(HasSubstr("'better' is kept, and 3 others are dropped")));
}

TEST_P(FusedCalibrationTest, APairThatNeverGainsIsNotFused) {
  options_.fused = {Pair("never", 0.8, 1.9)};
  const CalibrationResult result = Run(Parts()).value();
  EXPECT_EQ(result.profile.calibration.fused[0].verdict, FusedVerdict::kNeverGains);
  EXPECT_THAT(result.notes, Contains(HasSubstr("the pair is not fused")));
}

TEST_P(FusedCalibrationTest, ResumesWithinThePairs) {
  options_.fused = {Pair("good", 0.8, 1.3), Pair("better", 1.2, 1.4)};
  options_.resume = true;
  bool in_last = false;
  options_.progress = [&](const CalibrationProgress& progress) {
    EXPECT_EQ(progress.total, 1 + 2 + 1 + 2);
    in_last = progress.what == "good";
  };
  options_.cancelled = [&] { return in_last; };
  EXPECT_TRUE(absl::IsCancelled(Run(Parts()).status()));
  const int launches = device_->launches;
  EXPECT_TRUE(HasCheckpoint());
  options_.cancelled = nullptr;
  const CalibrationResult resumed = Run(Parts()).value();
  EXPECT_EQ(resumed.kept, 2);
  EXPECT_LT(device_->launches, launches / 4);
  ASSERT_EQ(resumed.profile.calibration.fused.size(), 2u);
  EXPECT_EQ(resumed.profile.calibration.co_resident.size(), 1u);
  EXPECT_EQ(resumed.profile.calibration.fused[1].verdict, FusedVerdict::kKept);
  EXPECT_FALSE(resumed.profile.calibration.copies.empty());
}

TEST_P(FusedCalibrationTest, PairsOfAChangedKernelAreMeasuredAnew) {
  options_.fused = {Pair("good", 0.8, 1.3), Pair("better", 1.2, 1.4)};
  options_.resume = true;
  for (const bool changed : {false, true}) {
    SCOPED_TRACE(changed);
    std::filesystem::remove(CheckpointPath(options_.output_path));
    bool in_last = false;
    options_.progress = [&](const CalibrationProgress& progress) {
      in_last = progress.what == "good";
    };
    options_.cancelled = [&] { return in_last; };
    EXPECT_TRUE(absl::IsCancelled(Run(Parts()).status()));
    std::vector<CalibrationItem> items = Parts();
    if (changed) items[1].block_tasks /= 2;
    std::vector<int> launches;  // at each report
    options_.progress = [&](const CalibrationProgress& progress) {
      if (progress.what == "good" || progress.what == "sincos_267us + streaming_59us" ||
          progress.what == "streaming_59us") {
        launches.push_back(device_->launches);
      }
    };
    options_.cancelled = nullptr;
    ASSERT_TRUE(Run(items).ok());
    ASSERT_GE(launches.size(), 3u);
    const size_t last = launches.size() - 1;
    EXPECT_EQ(launches[last] > launches[last - 1], changed) << "the fused kernel";
    EXPECT_EQ(launches[last - 1] > launches[last - 2], changed) << "the co-resident pair";
  }
}

TEST_P(FusedCalibrationTest, BadFusedKernelsAreRefused) {
  options_.fused = {Pair("one", 0.8, 1.3), Pair("one", 0.8, 1.3)};
  EXPECT_TRUE(absl::IsInvalidArgument(Run(Parts()).status()));
  options_.fused = {Pair("one", 0.8, 1.3)};
  options_.fused[0].cuda_item = 2;
  EXPECT_TRUE(absl::IsInvalidArgument(Run(Parts()).status()));
  options_.fused[0].cuda_item = 1;
  EXPECT_TRUE(absl::IsInvalidArgument(Run({Parts()[0], Item("decode16")}).status()));
  options_.fused[0].kernel.cuda_blocks = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(Run(Parts()).status()));
  EXPECT_EQ(device_->launches, 0);
}

// What the profile's reader, or the measurement itself, would refuse only after minutes.
TEST_P(FusedCalibrationTest, FusedKernelsThatNoProfileHoldsAreRefusedBeforeTheFirstMeasurement) {
  const auto refused = [&](const CalibrationFused& fused, const std::string& part) {
    options_.fused = {fused};
    const absl::Status status = Run(Parts()).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << part << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr(part));
    EXPECT_EQ(device_->launches, 0) << part;
  };
  refused(Pair(std::string(65, 'n'), 0.8, 1.3), "has 65 bytes, and 1 to 64 are allowed");
  refused(Pair("many", 0.8, 1.3, (1 << 20) + 1), "and 1048577 blocks of its parts");
  refused(Pair("nan", std::nan(""), 1.3), "an opportune ratio of nan");
  CalibrationFused same = Pair("same", 0.8, 1.3);
  same.cuda_item = 0;
  refused(same, "Both parts of fused kernel 'same' are item 0, 'sincos_267us'");
  CalibrationFused local = Pair("local", 0.8, 1.3);
  local.local_bytes = -1;
  refused(local, "has -1 bytes of local memory");
  options_.fused = {Pair("short", 0.8, 1.3)};
  std::vector<CalibrationItem> items = Parts();
  items[1].block_tasks = 19;
  const absl::Status status = Run(items).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("has 19 block tasks, and the load ratios from 0.1"));
  EXPECT_EQ(device_->launches, 0);
}

// Each kind of record has its share of the time, and a second call goes on where the first stopped.
TEST_P(FusedCalibrationTest, EveryKindOfRecordHasItsShareOfTheTime) {
  std::vector<CalibrationItem> items = Parts();
  for (const char* name : {"twin", "third", "fourth", "fifth"}) {
    items.push_back(Item("sincos_27us", 400));
    items.back().kernel.name = name;
  }
  items.push_back(Item("decode16"));
  for (int i = 0; i < 8; ++i) {
    options_.fused.push_back(Pair("variant" + std::to_string(i), 0.8, 1.1 + 0.1 * i));
  }
  options_.seconds_total = 15;
  options_.resume = true;
  const absl::StatusOr<CalibrationResult> first = Run(items);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_LT(device_->NowNs(), 25'000'000'000);
  EXPECT_FALSE(first->not_reached.empty());
  EXPECT_TRUE(HasCheckpoint());
  EXPECT_GT(first->kernels.front().eviction_p50_ns, 0);
  EXPECT_FALSE(first->pairs.empty());
  const CalibrationRecord& record = first->profile.calibration;
  EXPECT_FALSE(record.co_resident.empty());
  EXPECT_FALSE(record.fused.empty());
  // A later call has the same time again.
  size_t left = first->not_reached.size();
  for (int calls = 0; left > 0 && calls < 20; ++calls) {
    const CalibrationResult next = Run(items).value();
    EXPECT_LT(next.not_reached.size(), left);
    left = next.not_reached.size();
    if (left > 0) continue;
    EXPECT_EQ(next.profile.calibration.fused.size(), 8u);
    EXPECT_EQ(next.profile.calibration.co_resident.size(), 6u * 5u / 2u + 6u);
    EXPECT_EQ(next.pairs.size(), 6u);
    // In the order asked for, whatever was measured first.
    EXPECT_EQ(next.profile.calibration.fused[3].name, "variant3");
    EXPECT_EQ(next.profile.calibration.co_resident[1].second, "twin");
  }
  EXPECT_EQ(left, 0u);
  EXPECT_FALSE(HasCheckpoint());
}

// The host stands still in the one short time of a sample: the slices seem to take less than none.
TEST_P(CalibrationTest, AHiccupInASliceIsDroppedAndTaken) {
  int64_t last_size = 0;
  stall_ = [&](const core::LaunchRequest& request, bool more_followed) -> int64_t {
    if (request.form != core::Form::kSlice || request.more_follows || more_followed) return 0;
    const bool first = request.parts[0].block_count != last_size;
    last_size = request.parts[0].block_count;
    return first ? 500'000'000 : 0;
  };
  options_.seconds_per_kernel = 0.01;  // so that nothing is repeated for its own sake
  const CalibrationResult result = Run({Item("sincos_27us")}).value();
  EXPECT_GT(result.kernels[0].slice_block_tasks, 0);
  EXPECT_GT(result.kernels[0].slice_overhead, -0.05);
  EXPECT_LE(result.kernels[0].slice_overhead, 0.02);
  EXPECT_THAT(result.notes, Contains(HasSubstr("samples of the overhead of slices were dropped")));
  EXPECT_TRUE(LoadProfile(options_.output_path).ok());
}

TEST_P(CalibrationTest, SlicesWithoutAUsableSampleAreNotFoundAndTheProfileIsWritten) {
  stall_ = [](const core::LaunchRequest& request, bool more_followed) -> int64_t {
    const bool one = !request.more_follows && !more_followed;
    return request.form == core::Form::kSlice && one ? 500'000'000 : 0;
  };
  const CalibrationResult result = Run({Item("sincos_27us")}).value();
  EXPECT_EQ(result.kernels[0].slice_block_tasks, 0);
  EXPECT_EQ(result.kernels[0].slice_overhead, 0);
  EXPECT_GT(result.kernels[0].eviction_p50_ns, 0);
  EXPECT_TRUE(LoadProfile(options_.output_path).ok());
}

// Every second shorter batch seems longer than the long one behind it.
TEST_P(CalibrationTest, ADurationIsTakenAgainAfterAHiccup) {
  int singles = 0;
  stall_ = [&](const core::LaunchRequest& request, bool more_followed) -> int64_t {
    if (request.form != core::Form::kOriginal || request.more_follows || more_followed) return 0;
    return ++singles % 2 == 0 ? 500'000'000 : 0;
  };
  const CalibrationResult result = Run({Item("sincos_27us")}).value();
  EXPECT_NEAR(static_cast<double>(result.kernels[0].solo_ns), 100 * 27000, 0.03 * 100 * 27000);
  EXPECT_NEAR(result.kernels[0].worker_overhead,
              Item("sincos_27us").kernel.simulation.worker_overhead, 0.003);
  EXPECT_THAT(result.notes, Contains(HasSubstr("samples of a launch's time came out below 1 ns")));
}

TEST_P(CalibrationTest, ADurationWithoutAUsableSampleIsAnError) {
  stall_ = [](const core::LaunchRequest& request, bool more_followed) -> int64_t {
    const bool one = !request.more_follows && !more_followed;
    return request.form == core::Form::kOriginal && one ? 500'000'000 : 0;
  };
  const absl::Status status = Run({Item("sincos_27us")}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("'sincos_27us'"));
  EXPECT_THAT(status.message(), HasSubstr("the last of 5 samples"));
}

// The profile's reader takes overheads from -0.5 to 10.
TEST_P(CalibrationTest, AnImpossiblePtbOverheadIsDropped) {
  int batches = 0;
  stall_ = [&](const core::LaunchRequest& request, bool more_followed) -> int64_t {
    // The end of a longer batch of the grid: that sample seems to take far longer than its workers.
    const bool end = more_followed && !request.more_follows;
    if (request.form != core::Form::kOriginal || !end) return 0;
    return ++batches % 2 == 1 ? 500'000'000 : 0;
  };
  options_.repeats = 4;
  const CalibrationResult result = Run({Item("sincos_27us")}).value();
  EXPECT_NEAR(result.kernels[0].worker_overhead,
              Item("sincos_27us").kernel.simulation.worker_overhead, 0.003);
  EXPECT_THAT(result.notes, Contains(HasSubstr("impossible samples of the PTB overhead")));
}

TEST_P(CalibrationTest, WhatCannotBeWrittenIsFoundBeforeTheFirstMeasurement) {
  options_.output_path = folder_;  // a folder
  absl::Status status = Run({Item("sincos_27us")}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("is a folder"));
  options_.output_path = folder_ + "/no/such/profile.json";
  EXPECT_FALSE(Run({Item("sincos_27us")}).ok());
  EXPECT_EQ(device_->launches, 0);
  options_.output_path = folder_ + "/profile.json";
  CalibrationItem item = Item("sincos_27us");
  item.kernel.name = std::string(65, 'n');
  status = Run({item}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("65 bytes, and 1 to 64 are allowed"));
  // What a simulated device runs on and no profile holds.
  item = Item("decode16");
  item.kernel.simulation.nodes[0].repeat = (1 << 20) + 1;
  status = Run({item}).status();
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(device_->launches, 0);
}

TEST_P(CalibrationTest, MoreRecordsThanAProfileHoldsAreRefusedAtTheStart) {
  std::vector<CalibrationItem> items;
  for (int i = 0; i < 220; ++i) {
    items.push_back(Item("sincos_27us"));
    items.back().kernel.name = "copy" + std::to_string(i);
  }
  options_.cancelled = [] { return true; };  // days, if they were measured
  const absl::Status status = Run(items).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("220 kernels, 0 pairs on partitions, 24090 co-resident"));
  EXPECT_THAT(status.message(), HasSubstr("the most is 16777216: calibrate fewer kernels"));
  EXPECT_EQ(device_->launches, 0);
}
// A pair that was measured before the crash is not measured again.
TEST_P(CalibrationTest, ResumesWithinThePairs) {
  const std::vector<CalibrationItem> items = {Item("decode16"), Item("sincos_27us", 400),
                                              Item("streaming_59us", 200)};
  options_.resume = true;
  bool after_first = false;
  options_.progress = [&](const CalibrationProgress& progress) {
    after_first = progress.what == "decode16 | sincos_27us";
  };
  options_.cancelled = [&] { return after_first; };
  EXPECT_TRUE(absl::IsCancelled(Run(items).status()));
  options_.cancelled = nullptr;
  int launches = -1;  // until the pair that is known is done
  options_.progress = [&](const CalibrationProgress& progress) {
    if (progress.what == "decode16 | sincos_27us") launches = device_->launches;
  };
  const CalibrationResult resumed = Run(items).value();
  EXPECT_EQ(resumed.kept, 3);
  EXPECT_EQ(launches, 0);
  ASSERT_EQ(resumed.pairs.size(), 2u);
  for (const PairMeasurement& pair : resumed.pairs) {
    EXPECT_EQ(pair.lc, "decode16");
    EXPECT_FALSE(pair.speeds.empty()) << pair.be;
    EXPECT_EQ(pair.blocking_ns.size(), 16u) << pair.be;
    EXPECT_GT(pair.query_ns, 0) << pair.be;
  }
  EXPECT_EQ(resumed.pairs[0].be, "sincos_27us");
}

TEST_P(CalibrationTest, BadBoundsAreRefused) {
  options_.seconds_total = -1;
  EXPECT_TRUE(absl::IsInvalidArgument(Run({Item("sincos_27us")}).status()));
  options_.seconds_total = 0;
  options_.slice_overhead_max = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(Run({Item("sincos_27us")}).status()));
}

// However short the time, each call measures something, and says what it did not.
TEST_P(CalibrationTest, CallsThatAreTooShortComeToAnEnd) {
  const std::vector<CalibrationItem> items = {Item("sincos_27us"), Item("streaming_59us"),
                                              Item("decode16")};
  options_.seconds_total = 0.001;
  options_.resume = true;
  // Two stages of three kernels, two pairs on partitions and three on the same SMs.
  size_t left = 11;
  for (int calls = 1; calls <= 11; ++calls) {
    SCOPED_TRACE(calls);
    const CalibrationResult result = Run(items).value();
    EXPECT_LT(result.not_reached.size(), left);
    left = result.not_reached.size();
    EXPECT_EQ(HasCheckpoint(), left > 0);
    ASSERT_TRUE(LoadProfile(options_.output_path).ok());
    if (calls == 1) {
      ASSERT_EQ(result.kernels.size(), 1u);
      EXPECT_EQ(result.kernels[0].name, "decode16");  // a query first
      EXPECT_THAT(result.not_reached, Contains("decode16 | streaming_59us"));
      EXPECT_THAT(result.notes,
                  Contains(HasSubstr("of 0.001 s in all was over; not reached: 2 of 3 "
                                     "kernels (sincos_27us, streaming_59us)")));
    }
    if (left > 0) continue;
    EXPECT_EQ(result.kernels.size(), 3u);
    EXPECT_EQ(result.pairs.size(), 2u);
    EXPECT_EQ(result.profile.calibration.co_resident.size(), 3u);
    EXPECT_GT(result.kernels[0].eviction_p50_ns, 0);
    return;
  }
  FAIL() << left << " are left";
}

// A kernel whose measurement no profile holds does not use up a call: the one measurement that each
// call makes, however short the time, is the next one's. It comes once it can be measured.
TEST_P(CalibrationTest, AFirstKernelThatIsNeverUsableLeavesTheCallToTheNext) {
  const std::vector<CalibrationItem> items = {Item("sincos_27us"), Item("decode16")};
  options_.seconds_total = 0.001;
  options_.resume = true;
  bool begun = false;  // the device is measured without
  options_.progress = [&](const CalibrationProgress& progress) {
    begun = progress.what == "decode16";
  };
  stall_ = [&](const core::LaunchRequest& request, bool more_followed) -> int64_t {
    // The end of a longer batch: a launch seems to take more than an hour.
    const bool end = more_followed && !request.more_follows;
    return begun && request.form == core::Form::kGraph && end ? 20 * core::kMaxDurationNs : 0;
  };
  // Two stages of each kernel, and both sharings of the pair. In the third call nothing is left
  // that can be measured.
  for (const size_t left : {5u, 4u, 4u}) {
    SCOPED_TRACE(left);
    const CalibrationResult result = Run(items).value();
    EXPECT_THAT(result.notes,
                Contains(HasSubstr("The measurement of 'decode16' was dropped: ")).Times(1));
    ASSERT_EQ(result.kernels.size(), 1u);
    EXPECT_EQ(result.kernels[0].name, "sincos_27us");
    EXPECT_EQ(result.not_reached.size(), left);
    EXPECT_EQ(result.not_reached.front(), "decode16");
    EXPECT_TRUE(HasCheckpoint());
    const Profile loaded = LoadProfile(options_.output_path).value();
    ASSERT_NE(loaded.FindKernel("decode16"), nullptr) << "the base profile's";
    EXPECT_EQ(loaded.FindKernel("decode16")->solo_hint_ns,
              Truth().FindKernel("decode16")->solo_hint_ns);
  }
  // Nor do passes over what is left go on for ever where the time has no bound.
  options_.seconds_total = 0;
  options_.cancelled = [&] { return device_->launches > 100'000; };
  const CalibrationResult unbounded = Run(items).value();
  EXPECT_THAT(unbounded.notes,
              Contains(HasSubstr("Without a usable measurement: 1 of 2 kernels (decode16)")));
  stall_ = nullptr;
  const CalibrationResult result = Run(items).value();
  EXPECT_THAT(result.not_reached, IsEmpty());
  EXPECT_FALSE(HasCheckpoint());
  ASSERT_EQ(result.kernels.size(), 2u);
  EXPECT_NEAR(static_cast<double>(result.kernels[1].solo_ns), 16 * 33660.0, 0.01 * 16 * 33660);
  EXPECT_EQ(result.pairs.size(), 1u);
}

// No time at all is worse than a wrong one: the caller is told, and the device stays measured.
TEST_P(CalibrationTest, AFirstKernelWithoutAUsableTimeEndsABoundedCalibration) {
  const std::vector<CalibrationItem> items = {Item("sincos_27us"), Item("decode16")};
  options_.seconds_total = 0.001;
  options_.resume = true;
  int launches = -1;  // before the first kernel
  options_.progress = [&](const CalibrationProgress& progress) {
    if (progress.what == "decode16" && launches < 0) launches = device_->launches;
  };
  stall_ = [&](const core::LaunchRequest& request, bool more_followed) -> int64_t {
    const bool one = !request.more_follows && !more_followed;
    return launches >= 0 && request.form == core::Form::kGraph && one ? 500'000'000 : 0;
  };
  const absl::Status status = Run(items).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("'decode16'"));
  EXPECT_GT(launches, 0);
  EXPECT_TRUE(HasCheckpoint());
  EXPECT_FALSE(std::filesystem::exists(options_.output_path));
  stall_ = nullptr;
  launches = -1;
  const CalibrationResult resumed = Run(items).value();
  EXPECT_EQ(launches, 0);
  ASSERT_EQ(resumed.kernels.size(), 1u);
  EXPECT_EQ(resumed.kernels[0].name, "decode16");
}

TEST_P(CalibrationTest, MeasuresCopiesOverSizes) {
  const CalibrationResult result = Run({Item("sincos_27us")}).value();
  const std::vector<CopyPoint>& copies = result.profile.calibration.copies;
  EXPECT_EQ(copies.size(), 4u * 8u);
  int large = 0;
  for (const CopyPoint& copy : copies) {
    if (copy.bytes != int64_t{64} << 20) continue;
    ++large;
    const double rate = copy.pinned ? 55.5 : copy.to_device ? 10 : 19;
    EXPECT_NEAR(static_cast<double>(copy.bytes) / static_cast<double>(copy.duration_ns), rate,
                0.04 * rate);
  }
  EXPECT_EQ(large, 4);
}

// Rows that only models need, by kind.
class ContentionTest : public CalibrationTest {
 protected:
  std::map<SampleKind, std::vector<SampleRow>> RowsOf(const std::vector<CalibrationItem>& items) {
    std::map<SampleKind, std::vector<SampleRow>> rows;
    options_.buffers.bytes = int64_t{256} << 20;
    options_.sample = [&rows](const SampleRow& row) { rows[row.what].push_back(row); };
    const absl::StatusOr<CalibrationResult> result = Run(items);
    EXPECT_TRUE(result.ok()) << result.status();
    return rows;
  }
  static double Kept(const SampleRow& row) { return MedianRatio(row.alone_ns, row.ns); }
};

// The simulated link gives two pinned copies 98.8 GB/s together, of 55.4 that one has alone, and
// slows no pageable copy.
TEST_P(ContentionTest, ACopyBesideOneTheOtherWayGetsHalfOfTheDuplexRate) {
  const auto rows = RowsOf({Item("sincos_27us")});
  const core::DeviceProfile& truth = Truth().device;
  const double duplex = truth.duplex_bytes_per_ns / 2 / truth.pinned_bytes_per_ns;
  int large = 0;
  for (const SampleRow& row : rows.at(SampleKind::kCopyBeside)) {
    if (!row.neighbour.empty()) continue;
    EXPECT_GE(row.neighbour_bytes, 8 * row.bytes);
    if (row.bytes < int64_t{4} << 20) continue;
    EXPECT_NEAR(Kept(row), row.pinned ? duplex : 1, 0.02) << row.bytes;
    ++large;
  }
  EXPECT_EQ(large, 2 * 2 * 3);  // 4, 8 and 16 MB; both directions; pinned and pageable
}

// The simulator has no contention between kernels and copies, so that every row must keep all.
TEST_P(ContentionTest, KernelsAndCopiesAreTimedBesideEachOther) {
  const auto rows = RowsOf({Item("sincos_27us"), Item("streaming_59us"), Item("decode16")});
  int beside_kernels = 0;
  for (const SampleRow& row : rows.at(SampleKind::kCopyBeside)) {
    if (row.neighbour.empty()) continue;
    EXPECT_EQ(row.neighbour_bytes, 0);
    EXPECT_NEAR(Kept(row), 1, 0.02) << row.neighbour;
    ++beside_kernels;
  }
  EXPECT_GE(beside_kernels, 2 * 2 * 2 * 2);
  // Both directions, pinned and pageable, and both directions at once; a graph has no workers.
  const std::vector<SampleRow>& kernels = rows.at(SampleKind::kBesideCopy);
  EXPECT_EQ(kernels.size(), 2U * 5U);
  for (const SampleRow& row : kernels) {
    EXPECT_NEAR(Kept(row), 1, 0.02) << row.kernel;
    EXPECT_EQ(row.form, core::Form::kWorkers);
    EXPECT_GT(row.block_tasks, 0);
    EXPECT_EQ(row.bytes, int64_t{128} << 20);
  }
}

// Factors of 2 to 1 MB, quarter-octaves above; each size once in each direction.
TEST_P(ContentionTest, CopiesAreSampledDenselyWhereTheirRateBends) {
  const auto rows = RowsOf({Item("sincos_27us")});
  std::map<int64_t, int> pageable;
  for (const SampleRow& row : rows.at(SampleKind::kCopy)) {
    if (!row.pinned && !row.both_ways && row.to_device) ++pageable[row.bytes];
  }
  EXPECT_EQ(pageable.size(), 9U + 28U);  // 4 KB to 1 MB, then to 128 MB
  double before = 0;
  for (const auto& [bytes, count] : pageable) {
    EXPECT_EQ(count, 1) << bytes;
    EXPECT_EQ(bytes % 4096, 0);
    if (before >= 1 << 20) {
      EXPECT_LT(static_cast<double>(bytes), 1.2 * before);
    }
    before = static_cast<double>(bytes);
  }
}

TEST_P(ContentionTest, TheNameOfAQueryTellsItsInputSize) {
  CalibrationItem item = Item("decode16");
  item.kernel.name = "decode@48";
  const auto rows = RowsOf({item});
  ASSERT_FALSE(rows.at(SampleKind::kSolo).empty());
  for (const SampleRow& row : rows.at(SampleKind::kSolo)) EXPECT_EQ(row.input_size, 48);
}

TEST_P(ContentionTest, WithoutSamplesNothingOfItIsMeasured) {
  RowsOf({Item("sincos_27us")});
  const int with_samples = device_->launches;
  options_.sample = nullptr;
  ASSERT_TRUE(Run({Item("sincos_27us")}).ok());
  EXPECT_LT(device_->launches, with_samples - 500);
}

INSTANTIATE_TEST_SUITE_P(Tiers, ContentionTest,
                         ::testing::Values(sim::Tier::kKernel, sim::Tier::kBlock),
                         [](const ::testing::TestParamInfo<sim::Tier>& param) {
                           return param.param == sim::Tier::kBlock ? "Block" : "Kernel";
                         });

INSTANTIATE_TEST_SUITE_P(Tiers, FusedCalibrationTest,
                         ::testing::Values(sim::Tier::kKernel, sim::Tier::kBlock),
                         [](const ::testing::TestParamInfo<sim::Tier>& param) {
                           return param.param == sim::Tier::kBlock ? "Block" : "Kernel";
                         });

INSTANTIATE_TEST_SUITE_P(Tiers, CalibrationTest,
                         ::testing::Values(sim::Tier::kKernel, sim::Tier::kBlock),
                         [](const ::testing::TestParamInfo<sim::Tier>& param) {
                           return param.param == sim::Tier::kBlock ? "Block" : "Kernel";
                         });
}  // namespace
}  // namespace gpushare::models
