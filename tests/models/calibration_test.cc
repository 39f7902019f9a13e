// Calibration on the simulated device, whose truth is known: it must find what the device runs on,
// from a base profile whose latencies and rates are wrong; resume after a crash; report a hang.

#include "src/models/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "src/models/calibration_fused.h"
#include "src/models/calibration_kernel.h"
#include "src/models/calibration_slice.h"
#include "src/models/online_model.h"
#include "src/sim/sim_device.h"

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
class BlindDevice final : public core::Device {
 public:
  explicit BlindDevice(std::unique_ptr<core::Device> device)
      : device_(std::move(device)), capabilities_(device_->capabilities()) {
    capabilities_.profile = Guess();
  }
  core::TimeNs NowNs() const override { return device_->NowNs(); }
  const core::DeviceCapabilities& capabilities() const override { return capabilities_; }
  absl::Status PrepareKernel(const core::KernelDesc& kernel) override {
    return device_->PrepareKernel(kernel);
  }
  absl::Status PrepareFusedKernel(core::FusedKernelDesc& fused) override {
    return device_->PrepareFusedKernel(fused);
  }
  absl::StatusOr<core::PlaceIndex> CreatePlace(const core::PlaceSpec& spec) override {
    absl::StatusOr<core::PlaceIndex> place = device_->CreatePlace(spec);
    if (place.ok() && spec.groups == too_few_groups && spec.with_remainder) too_small_ = *place;
    return place;
  }
  bool Confines(core::KernelId /*kernel*/, core::PlaceIndex place) const override {
    return place != too_small_;
  }
  absl::StatusOr<core::LaneIndex> CreateLane(const core::LaneSpec& spec) override {
    return device_->CreateLane(spec);
  }
  void AbandonLane(core::LaneIndex lane) override {
    ++abandoned;
    device_->AbandonLane(lane);
  }
  absl::Status Launch(const core::LaunchRequest& request) override {
    ++launches;
    return device_->Launch(request);
  }
  absl::Status Evict(core::LaneIndex lane, uint64_t epoch, int32_t keep) override {
    return device_->Evict(lane, epoch, keep);
  }
  void* LaneStream(core::LaneIndex lane) override { return device_->LaneStream(lane); }
  size_t PollCompletions(absl::Span<core::DeviceCompletion> out) override {
    return device_->PollCompletions(out);
  }
  core::TimeNs NextEventNs() const override { return device_->NextEventNs(); }
  void AdvanceTo(core::TimeNs time) override { device_->AdvanceTo(time); }
  int64_t BusySmNs() const override { return device_->BusySmNs(); }

  int launches = 0;
  int abandoned = 0;
  int32_t too_few_groups = -1;  // on so many, and the remainder, no kernel is confined

 private:
  core::PlaceIndex too_small_ = core::kNoPlace;
  std::unique_ptr<core::Device> device_;
  core::DeviceCapabilities capabilities_;
};

CalibrationItem Item(const std::string& name, int64_t rounds = 100) {
  CalibrationItem item;
  item.kernel = *Truth().FindKernel(name);
  if (item.kernel.kind == core::TaskKind::kKernel) {
    item.block_tasks = rounds * item.kernel.workers_per_sm_max * Truth().device.sm_count;
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
  void SetUp() override {
    std::string name =
        (std::filesystem::temp_directory_path() / "gpushare_calibration_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    options_.output_path = folder_ + "/profile.json";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<BlindDevice> MakeDevice(const sim::FaultPlan& faults = {}) {
    sim::SimOptions options;
    options.profile = Truth().device;
    options.tier = GetParam();
    options.faults = faults;
    return std::make_unique<BlindDevice>(*sim::MakeSimDevice(options));
  }
  absl::StatusOr<CalibrationResult> Run(const std::vector<CalibrationItem>& items) {
    device_ = MakeDevice(faults_);
    device_->too_few_groups = too_few_groups_;
    Profile base = Truth();
    base.device = Guess();
    return Calibrate(*device_, base, items, options_);
  }
  bool HasCheckpoint() const {
    return std::filesystem::exists(CheckpointPath(options_.output_path));
  }

  std::string folder_;
  CalibrationOptions options_;
  sim::FaultPlan faults_;
  int32_t too_few_groups_ = -1;
  std::unique_ptr<BlindDevice> device_;
};

TEST_P(CalibrationTest, FindsWhatTheKernelsRunOn) {
  for (const char* name : {"sincos_267us", "streaming_59us"}) {
    SCOPED_TRACE(name);
    CalibrationItem item = Item(name);
    // Far from 0, which a measurement that is never made would give.
    if (item.kernel.name == "streaming_59us") item.kernel.simulation.worker_overhead = 0.04;
    const core::SimulationRecord& truth = item.kernel.simulation;
    const absl::StatusOr<CalibrationResult> result = Run({item});
    ASSERT_TRUE(result.ok()) << result.status();
    const KernelMeasurement& measured = result->kernels.front();
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
  const absl::StatusOr<CalibrationResult> result = Run({item});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NEAR(result->kernels.front().worker_overhead, -0.08, 0.002);
  const absl::StatusOr<Profile> loaded = LoadProfile(options_.output_path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const core::KernelDesc* const kernel = loaded->FindKernel("sincos_267us");
  ASSERT_NE(kernel, nullptr);
  EXPECT_NEAR(kernel->simulation.worker_overhead, -0.08, 0.002);
  EXPECT_NEAR(static_cast<double>(kernel->simulation.block_task_ns), 267000, 0.03 * 267000);
  // Calibrated again, the device that the profile describes gives the same.
  CalibrationItem again = item;
  again.kernel = *kernel;
  const absl::StatusOr<CalibrationResult> second = Run({again});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NEAR(second->kernels.front().worker_overhead, -0.08, 0.004);
  EXPECT_NEAR(static_cast<double>(second->kernels.front().solo_ns),
              static_cast<double>(result->kernels.front().solo_ns), 0.03 * 26'700'000);
}

TEST_P(CalibrationTest, FindsAGraphsSpeedAndItsKnees) {
  const CalibrationItem item = Item("decode16");
  const absl::StatusOr<CalibrationResult> result = Run({item});
  ASSERT_TRUE(result.ok()) << result.status();
  const KernelMeasurement& measured = result->kernels.front();
  EXPECT_NEAR(static_cast<double>(measured.solo_ns), 16 * 33660.0, 0.01 * 16 * 33660);
  for (const core::SpeedPoint& point : measured.speed) {
    EXPECT_NEAR(point.speed, TrueSpeed(item.kernel, point.sms), 0.02) << point.sms << " SMs";
  }
  EXPECT_THAT(measured.knees, ElementsAre(84, 108));
  // Its nodes agree with what was measured and stay as they are.
  EXPECT_EQ(result->profile.FindKernel("decode16")->simulation.nodes[0].duration_ns, 33160);
}

TEST_P(CalibrationTest, ASizeThatDoesNotConfineAGraphIsAsSlowAsTheNextSmallerOne) {
  too_few_groups_ = 4;  // and 12 SMs that groups leave over: 44
  const absl::StatusOr<CalibrationResult> result = Run({Item("decode16")});
  ASSERT_TRUE(result.ok()) << result.status();
  const std::vector<core::SpeedPoint>& speed = result->kernels.front().speed;
  const auto size = std::find_if(speed.begin(), speed.end(),
                                 [](const core::SpeedPoint& point) { return point.sms == 44; });
  ASSERT_NE(size, speed.end());
  EXPECT_EQ(size->speed, std::prev(size)->speed);
  EXPECT_LT(size->speed, TrueSpeed(Item("decode16").kernel, 44));
  EXPECT_THAT(result->notes, Contains(HasSubstr("does not run on 44 SMs alone")));
}

// On 84 SMs decode keeps its speed beside compute and less than half of it beside streaming.
TEST_P(CalibrationTest, FindsWhatNeighboursDoToAGraph) {
  const absl::StatusOr<CalibrationResult> result =
      Run({Item("decode16"), Item("sincos_27us"), Item("streaming_59us")});
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->pairs.size(), 2u);
  const std::unique_ptr<core::CostModel> model = MakeOnlineModel(result->profile.device);
  ASSERT_TRUE(model->Load(result->profile.learned).ok());
  std::vector<core::KernelDesc> kernels(result->profile.kernels.begin(),
                                        result->profile.kernels.begin() + 3);
  for (uint32_t i = 0; i < 3; ++i) {
    kernels[i].id = core::KernelId{i + 1};
    model->AddKernel(kernels[i]);
  }
  const core::KernelDesc& decode = kernels[0];
  const double alone = TrueSpeed(decode, 84);
  for (const PairMeasurement& pair : result->pairs) {
    const bool streaming = pair.be == "streaming_59us";
    const core::KernelDesc& be = kernels[streaming ? 2 : 1];
    const auto speed = std::find_if(pair.speeds.begin(), pair.speeds.end(),
                                    [](const auto& one) { return one.lc_sms == 84; });
    ASSERT_NE(speed, pair.speeds.end()) << pair.be;
    EXPECT_NEAR(speed->alone, alone, 0.02);
    EXPECT_NEAR(speed->beside, streaming ? 0.46 : alone, 0.03) << pair.be;
    // What is planned with is what was measured.
    EXPECT_NEAR(model->SpeedOn(decode, 84) * model->SpeedBeside(decode, 84, be, 48), speed->beside,
                0.005);
    // On average most of a block task, and the write before it.
    ASSERT_EQ(pair.blocking_ns.size(), 16u);
    const auto task = static_cast<double>(be.simulation.block_task_ns);
    const auto blocking = static_cast<double>(model->PredictBlocking(be).duration_ns);
    EXPECT_GT(blocking, 0.4 * task);
    EXPECT_LT(blocking, 1.1 * task + 5000);
  }
}

TEST_P(CalibrationTest, FindsTheDevicesPrimitives) {
  const absl::StatusOr<CalibrationResult> result = Run({Item("sincos_27us"), Item("decode16")});
  ASSERT_TRUE(result.ok()) << result.status();
  const core::DeviceProfile& device = result->profile.device;
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
  EXPECT_THAT(result->notes, IsEmpty());
}

TEST_P(CalibrationTest, WritesAProfileThatLoadsAndPredicts) {
  CalibrationItem item = Item("sincos_267us");
  item.kernel.original_function = &item;
  item.kernel.worker_function = &item;
  const absl::StatusOr<CalibrationResult> result = Run({item});
  ASSERT_TRUE(result.ok()) << result.status();
  const absl::StatusOr<Profile> loaded = LoadProfile(options_.output_path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_FALSE(HasCheckpoint());
  EXPECT_EQ(loaded->device.gpu_model, "NVIDIA H200");
  const core::KernelDesc* kernel = loaded->FindKernel("sincos_267us");
  ASSERT_NE(kernel, nullptr);
  // Measured, and given where nothing can be measured.
  EXPECT_EQ(kernel->simulation.block_task_ns, result->kernels[0].block_task_ns);
  EXPECT_EQ(kernel->simulation.demand.special, 0.95);
  // The same GPU's other kernels are kept; handles of this process are not.
  EXPECT_NE(loaded->FindKernel("decode16"), nullptr);
  EXPECT_EQ(result->profile.kernels[0].original_function, nullptr);
  EXPECT_EQ(result->profile.kernels[0].worker_function, nullptr);
  const std::unique_ptr<core::CostModel> model = MakeOnlineModel(loaded->device);
  ASSERT_TRUE(model->Load(loaded->learned).ok());
  core::KernelDesc known = *kernel;
  known.id = core::KernelId{1};
  model->AddKernel(known);
  const core::Prediction eviction = model->PredictEviction(known);
  EXPECT_TRUE(eviction.trained);
  EXPECT_NEAR(static_cast<double>(eviction.duration_ns), 235000, 20000);
}

TEST_P(CalibrationTest, SeesTheSpreadOfBlockTasks) {
  CalibrationItem item = Item("sincos_267us", 40);
  item.kernel.simulation.block_task_spread = 0.2;
  const absl::StatusOr<CalibrationResult> result = Run({item});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->kernels[0].block_task_spread, 0.05);
  EXPECT_LT(result->kernels[0].block_task_spread, 0.3);
  EXPECT_NEAR(static_cast<double>(result->kernels[0].block_task_ns), 267000, 0.05 * 267000);
}

TEST_P(CalibrationTest, AKernelWithoutWorkersIsMeasuredByItsGrid) {
  CalibrationItem item = Item("sincos_267us");
  item.kernel.evictable = false;
  const absl::StatusOr<CalibrationResult> result = Run({item});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NEAR(static_cast<double>(result->kernels[0].block_task_ns), 267000, 0.03 * 267000);
  EXPECT_EQ(result->kernels[0].eviction_p99_ns, 0);
  EXPECT_EQ(result->kernels[0].worker_solo_ns, 0);
  ASSERT_EQ(result->kernels[0].speed.size(), 31u);
  EXPECT_NEAR(result->kernels[0].speed[10].speed, result->kernels[0].speed[10].sms / 132.0, 0.02);
  EXPECT_THAT(result->notes, ::testing::Contains(HasSubstr("No item is evictable")));
}

TEST_P(CalibrationTest, AResumedCalibrationGivesTheSameProfile) {
  const std::vector<CalibrationItem> items = {Item("sincos_267us"), Item("decode16"),
                                              Item("streaming_59us")};
  absl::StatusOr<CalibrationResult> whole = Run(items);
  ASSERT_TRUE(whole.ok()) << whole.status();
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
  const absl::StatusOr<CalibrationResult> resumed = Run(items);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->kept, 1);
  EXPECT_LT(device_->launches, launches);
  EXPECT_FALSE(HasCheckpoint());
  // What came before the crash is the same to the bit, the rest within what a repeat differs by.
  EXPECT_EQ(resumed->profile.device.eviction_write_latency_ns,
            whole->profile.device.eviction_write_latency_ns);
  EXPECT_EQ(resumed->kernels[0].eviction_ns, whole->kernels[0].eviction_ns);
  EXPECT_EQ(resumed->kernels[0].worker_overhead, whole->kernels[0].worker_overhead);
  for (size_t i = 0; i < items.size(); ++i) {
    const KernelMeasurement& a = whole->kernels[i];
    const KernelMeasurement& b = resumed->kernels[i];
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
  const absl::StatusOr<CalibrationResult> resumed = Run(items);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->kept, 0);
  EXPECT_NEAR(static_cast<double>(resumed->kernels[0].solo_ns), 50 * 27000, 30000);
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
  other.learned = "gpushare calibration 2 device\n";
  ASSERT_TRUE(SaveProfile(CheckpointPath(options_.output_path), other).ok());
  status = Run({Item("sincos_27us")}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("NVIDIA B200"));
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
  absl::StatusOr<Profile> checkpoint = LoadProfile(CheckpointPath(options_.output_path));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  // The kernel's line: digest, kind, block tasks.
  std::string& text = checkpoint->learned;
  const size_t line = text.rfind('\n', text.find(" sincos_27us"));
  const size_t kind = text.find(' ', text.find(' ', line + 1) + 1);
  ASSERT_NE(kind, std::string::npos);
  text.insert(kind + 1, "-");
  ASSERT_TRUE(SaveProfile(CheckpointPath(options_.output_path), *checkpoint).ok());
  options_.resume = true;
  const absl::Status status = Run(items).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("is not a measurement"));
}

// A hardened library stops a clamp between bounds that are the wrong way round.
TEST(CrossingOfTest, LoadsTheWrongWayRoundHaveTheirMean) {
  const std::vector<FusedPoint> points = {{0.1, 1.0}, {1.9, 1.1}, {1.7, 2.0}, {1.8, 3.0}};
  EXPECT_DOUBLE_EQ(CrossingOf(points), 1.8);
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
  EXPECT_THAT(status.message(), HasSubstr("failed with code 1"));
}

TEST_P(CalibrationTest, ALaneWhoseEvictionsAreBlockedIsNoted) {
  // Long after the round that the lane's test expects: the whole task of 27 ms.
  faults_.blocked_eviction.nth = 1;
  const absl::StatusOr<CalibrationResult> result = Run({Item("sincos_27us", 1000)});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->notes, ::testing::Contains(HasSubstr("was not evicted")));
}

TEST_P(CalibrationTest, LittleTimeGivesFewerSizes) {
  options_.seconds_per_kernel = 1;
  const absl::StatusOr<CalibrationResult> result = Run({Item("sincos_267us", 200)});
  ASSERT_TRUE(result.ok()) << result.status();
  const KernelMeasurement& measured = result->kernels[0];
  EXPECT_LT(measured.speed.size(), 20u);
  EXPECT_GE(measured.speed.size(), 3u);
  EXPECT_EQ(measured.speed.back().sms, 132);
  EXPECT_LT(measured.spent_ns, 8'000'000'000);
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

// Half a microsecond between launches is 2 % of 25 us: 12.5 rounds of 2 us.
TEST_P(CalibrationTest, FindsTheSmallestSlice) {
  CalibrationItem item = Item("sincos_27us", 1000);
  item.kernel.simulation.block_task_ns = 2000;
  item.kernel.simulation.saturating_occupancy = 1;
  absl::StatusOr<CalibrationResult> result = Run({item});
  ASSERT_TRUE(result.ok()) << result.status();
  KernelMeasurement measured = result->kernels.front();
  EXPECT_LE(measured.slice_overhead, 0.02);
  EXPECT_GE(measured.slice_block_tasks, 11 * 8 * 132);
  EXPECT_LE(measured.slice_block_tasks, 14 * 8 * 132);
  EXPECT_EQ(measured.slice_block_tasks % 132, 0);
  // A fifth as long where five times as much may be lost.
  options_.slice_overhead_max = 0.1;
  result = Run({item});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GE(result->kernels.front().slice_block_tasks, 2 * 8 * 132);
  EXPECT_LE(result->kernels.front().slice_block_tasks, 4 * 8 * 132);
  // Long block tasks need no more than a round.
  result = Run({Item("sincos_267us")});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->kernels.front().slice_block_tasks, 0);
  EXPECT_LE(result->kernels.front().slice_block_tasks, 8 * 132);
  // It is in the profile.
  const absl::StatusOr<Profile> loaded = LoadProfile(options_.output_path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->calibration.kernels.size(), 1u);
  EXPECT_EQ(loaded->calibration.kernels[0].name, "sincos_267us");
  EXPECT_EQ(loaded->calibration.kernels[0].slice_block_tasks,
            result->kernels.front().slice_block_tasks);
}

TEST_P(CalibrationTest, FindsTheFewestWorkersOfFullSpeed) {
  CalibrationItem half = Item("sincos_27us");
  half.kernel.simulation.saturating_occupancy = 0.5;
  CalibrationItem all = Item("sincos_267us");
  all.kernel.simulation.saturating_occupancy = 1;
  const absl::StatusOr<CalibrationResult> result = Run({half, all});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->kernels[0].workers_per_sm_least, 4);
  EXPECT_EQ(result->kernels[1].workers_per_sm_least, 8);
  EXPECT_EQ(result->profile.calibration.kernels[0].workers_per_sm_least, 4);
}

TEST_P(CalibrationTest, TellsMemoryFromComputeByTheCurve) {
  CalibrationItem flat = Item("streaming_59us");
  flat.kernel.simulation.speed = {{33, 0.5}, {66, 1}, {132, 1}};
  const absl::StatusOr<CalibrationResult> result = Run({flat, Item("sincos_267us")});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->kernels[0].intensity, Intensity::kMemory);
  EXPECT_NEAR(result->kernels[0].flat_from_sms, 66, 4);
  EXPECT_EQ(result->kernels[1].intensity, Intensity::kCompute);
  EXPECT_EQ(result->kernels[1].flat_from_sms, 0);
  EXPECT_EQ(result->profile.calibration.kernels[0].intensity, Intensity::kMemory);
}

// Two kernels of different bottlenecks share an SM better than a kernel with its like.
TEST_P(CalibrationTest, FindsWhatKernelsDoToEachOtherOnTheSameSms) {
  CalibrationItem twin = Item("sincos_27us", 400);
  twin.kernel.name = "twin";
  const absl::StatusOr<CalibrationResult> result =
      Run({Item("sincos_27us", 400), twin, Item("streaming_59us", 200)});
  ASSERT_TRUE(result.ok()) << result.status();
  const std::vector<CoResidentRecord>& pairs = result->profile.calibration.co_resident;
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
      item->kernel.threads_per_block = 128;
      item->kernel.workers_per_sm_max = 8;
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
  const absl::StatusOr<CalibrationResult> result = Run(Parts());
  ASSERT_TRUE(result.ok()) << result.status();
  const absl::StatusOr<Profile> loaded = LoadProfile(options_.output_path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const std::vector<FusedRecord>& fused = loaded->calibration.fused;
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
  ASSERT_EQ(fused[0].points.size(), 5u);
  for (const auto& [index, load] :
       {std::pair{0, 0.1}, std::pair{1, 0.2}, std::pair{2, 1.8}, std::pair{3, 1.9}}) {
    EXPECT_NEAR(fused[0].points[static_cast<size_t>(index)].load_ratio, load, 0.03);
  }
  EXPECT_THAT(result->notes, Contains(HasSubstr("'better' is kept, and 3 others are dropped")));
}

TEST_P(FusedCalibrationTest, APairThatNeverGainsIsNotFused) {
  options_.fused = {Pair("never", 0.8, 1.9)};
  const absl::StatusOr<CalibrationResult> result = Run(Parts());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->profile.calibration.fused[0].verdict, FusedVerdict::kNeverGains);
  EXPECT_THAT(result->notes, Contains(HasSubstr("the pair is not fused")));
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
  const absl::StatusOr<CalibrationResult> resumed = Run(Parts());
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->kept, 2);
  EXPECT_LT(device_->launches, launches / 4);
  ASSERT_EQ(resumed->profile.calibration.fused.size(), 2u);
  EXPECT_EQ(resumed->profile.calibration.co_resident.size(), 1u);
  EXPECT_EQ(resumed->profile.calibration.fused[1].verdict, FusedVerdict::kKept);
  EXPECT_FALSE(resumed->profile.calibration.copies.empty());
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
  const absl::StatusOr<CalibrationResult> resumed = Run(items);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->kept, 3);
  EXPECT_EQ(launches, 0);
  ASSERT_EQ(resumed->pairs.size(), 2u);
  for (const PairMeasurement& pair : resumed->pairs) {
    EXPECT_EQ(pair.lc, "decode16");
    EXPECT_FALSE(pair.speeds.empty()) << pair.be;
    EXPECT_EQ(pair.blocking_ns.size(), 16u) << pair.be;
    EXPECT_GT(pair.query_ns, 0) << pair.be;
  }
  EXPECT_EQ(resumed->pairs[0].be, "sincos_27us");
}

TEST_P(CalibrationTest, TheWholeIsBoundedInTime) {
  options_.seconds_total = 2;
  const absl::StatusOr<CalibrationResult> result =
      Run({Item("sincos_267us", 200), Item("streaming_59us", 200), Item("decode16")});
  ASSERT_TRUE(result.ok()) << result.status();
  // First samples of everything take longer than their share; pairs are left out then.
  EXPECT_LT(device_->NowNs(), 20'000'000'000);
  EXPECT_THAT(result->notes, Contains(HasSubstr("of 2 s in all was over before")));
  EXPECT_TRUE(result->profile.calibration.co_resident.empty());
  EXPECT_GT(result->kernels[2].solo_ns, 0);
  options_.seconds_total = -1;
  EXPECT_TRUE(absl::IsInvalidArgument(Run({Item("sincos_27us")}).status()));
  options_.seconds_total = 0;
  options_.slice_overhead_max = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(Run({Item("sincos_27us")}).status()));
}

TEST_P(CalibrationTest, MeasuresCopiesOverSizes) {
  const absl::StatusOr<CalibrationResult> result = Run({Item("sincos_27us")});
  ASSERT_TRUE(result.ok()) << result.status();
  const std::vector<CopyPoint>& copies = result->profile.calibration.copies;
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

TEST(FindKneesTest, OnlyWhatStandsOut) {
  EXPECT_THAT(FindKnees({{8, 0.1}, {16, 0.3}, {24, 0.2}, {32, 1}}), ElementsAre(16));
  EXPECT_THAT(FindKnees({{8, 0.1}, {16, 0.2}, {24, 0.3}, {32, 1}}), IsEmpty());
  // One percent of noise is no knee; the first size and the whole device are none.
  EXPECT_THAT(FindKnees({{8, 0.5}, {16, 0.505}, {24, 0.5}, {32, 1}}), IsEmpty());
  EXPECT_THAT(FindKnees({{8, 0.9}, {16, 0.5}, {32, 1}}), IsEmpty());
  EXPECT_THAT(FindKnees({{8, 0.1}, {16, 0.9}, {24, 0.9}, {32, 0.5}, {40, 1}}), ElementsAre(16));
  EXPECT_THAT(FindKnees({}), IsEmpty());
}

TEST(FewestWorkersTest, AllLargerNumbersMustBeAsFast) {
  EXPECT_EQ(FewestWorkers({0.25, 0.5, 0.995, 1}, 0.01), 3);
  EXPECT_EQ(FewestWorkers({1, 0.5, 0.995, 1}, 0.01), 3);
  EXPECT_EQ(FewestWorkers({0.5, 0, 0, 1}, 0.01), 4);  // 0: not measured
  EXPECT_EQ(FewestWorkers({1, 0, 0, 1}, 0.01), 1);
  EXPECT_EQ(FewestWorkers({}, 0.01), 0);
}

TEST(IntensityOfTest, AFlatEndIsMemory) {
  int32_t from = -1;
  EXPECT_EQ(IntensityOf({{32, 0.5}, {64, 0.98}, {96, 1}, {132, 1}}, &from), Intensity::kMemory);
  EXPECT_EQ(from, 64);
  EXPECT_EQ(IntensityOf({{32, 0.25}, {64, 0.5}, {112, 0.85}, {132, 1}}, &from),
            Intensity::kCompute);
  EXPECT_EQ(from, 0);
  // A step just below the whole device is no flat end.
  EXPECT_EQ(IntensityOf({{64, 0.5}, {124, 1}, {132, 1}}, &from), Intensity::kCompute);
  // Slower with all SMs than with some (MEASURED: 84 SMs beat 124).
  EXPECT_EQ(IntensityOf({{48, 0.6}, {84, 1.1}, {132, 1}}, &from), Intensity::kMemory);
  EXPECT_EQ(from, 84);
  EXPECT_EQ(IntensityOf({{132, 1}}, &from), Intensity::kUnknown);
  EXPECT_EQ(IntensityOf({}, &from), Intensity::kUnknown);
}

TEST(CrossingOfTest, FindsTheInflection) {
  // 1 + 0.5 r up to 0.8, then 1.4 + r - 0.8.
  const std::vector<FusedPoint> points = {{0.1, 1.05}, {0.2, 1.1}, {1.8, 2.4}, {1.9, 2.5}};
  EXPECT_NEAR(CrossingOf(points), 0.8, 1e-9);
  EXPECT_NEAR(CrossingOf({{0.1, 1.1}, {0.2, 1.2}, {1.8, 2.8}, {1.9, 2.9}}), 1, 1e-9);  // one line
  EXPECT_NEAR(CrossingOf({{0.1, 1}, {0.2, 1}, {1.8, 9}, {1.9, 9.1}}), 0.2, 1e-9);      // outside
}

TEST(FitSaturatingOccupancyTest, FindsTheBend) {
  EXPECT_NEAR(FitSaturatingOccupancy({0.25 / 0.6, 0.5 / 0.6, 1, 1}), 0.6, 0.01);
  EXPECT_NEAR(FitSaturatingOccupancy({0.25, 0.5, 0.75, 1}), 1, 0.01);
  EXPECT_NEAR(FitSaturatingOccupancy({1, 1, 1, 1}), 0.25, 0.01);
}

}  // namespace
}  // namespace gpushare::models
