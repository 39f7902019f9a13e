// Sizes of profiles and checkpoints, which are refused before the first measurement.

#include "src/calibration/stages/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "src/calibration/profile/checkpoint.h"
#include "src/core/base/limits.h"

namespace gpushare::models {
namespace {

using ::testing::HasSubstr;

core::DeviceProfile Device() {
  core::DeviceProfile device;
  device.name = "device";
  return device;
}

TEST(CheckSizeTest, ACatalogueFitsAndEveryPairOfAThousandKernelsDoesNot) {
  CalibrationSize catalogue;
  catalogue.kernels = 64;
  catalogue.pairs = 8 * 56;
  catalogue.co_resident = 8 * 56 + 56 * 55 / 2;
  catalogue.fused = kCalibrationFusedMax;
  catalogue.kept_bytes = 1 << 20;
  EXPECT_TRUE(CheckSize(catalogue).ok()) << CheckSize(catalogue);
  CalibrationSize many;
  many.kernels = 1024;
  EXPECT_TRUE(CheckSize(many).ok()) << CheckSize(many);
  many.co_resident = 1024 * 1023 / 2;
  EXPECT_TRUE(absl::IsInvalidArgument(CheckSize(many)));
  many.co_resident = 0;
  many.pairs = 1000;  // of the checkpoint's lines
  EXPECT_THAT(CheckSize(many).message(), HasSubstr("its checkpoint may need"));
}

// The largest records that there are, and their bytes in a file.
TEST(CheckSizeTest, NoRecordIsLargerThanItIsCountedFor) {
  constexpr int64_t kLong = 3'599'999'999'999;
  const double digits = -1.0 / 3;
  const std::string name(64, 'n');
  KernelMeasurement kernel;
  kernel.name = name;
  for (int64_t* value : {&kernel.solo_ns, &kernel.worker_solo_ns, &kernel.block_task_ns,
                         &kernel.eviction_p50_ns, &kernel.eviction_p99_ns, &kernel.spent_ns,
                         &kernel.block_tasks, &kernel.slice_block_tasks}) {
    *value = kLong;
  }
  kernel.block_task_spread = kernel.worker_overhead = kernel.saturating_occupancy = digits;
  kernel.eviction_ns.assign(kEvictionSamplesMax, kLong);
  kernel.speed.assign(core::kMaxSpeedPoints, {4000, 1e-5 / 3});
  kernel.knees.assign(core::kMaxSpeedPoints, 4000);
  kernel.solo_sizes.assign(kSoloSizesMax, {kLong, std::vector<int64_t>(kSoloRepeatsMax, kLong)});
  PairMeasurement pair;
  pair.query_ns = kLong;
  pair.speeds.assign(kPairSplitsMax, {4000, 1e-5 / 3, 1e-5 / 3});
  pair.blocking_ns.assign(kPairBlockingSamples, kLong);
  const std::string path =
      (std::filesystem::temp_directory_path() / ("gpushare_size_" + std::to_string(getpid())))
          .string();
  Checkpoint checkpoint;
  checkpoint.device = Device();
  const auto learned = [&] {
    EXPECT_TRUE(SaveCheckpoint(path, checkpoint).ok());
    const absl::StatusOr<Profile> profile = LoadProfile(path);
    return profile.ok() ? static_cast<int64_t>(profile->learned.size()) : int64_t{0};
  };
  const int64_t empty = learned();
  checkpoint.kernels[~uint64_t{0}] = kernel;
  EXPECT_LE(learned() - empty, kKernelLineBytes);
  checkpoint.kernels.clear();
  checkpoint.pairs[{~uint64_t{0}, ~uint64_t{0}}] = pair;
  EXPECT_LE(learned() - empty, kPairLineBytes);
  std::filesystem::remove(path);

  Profile profile;
  profile.device = Device();
  const auto bytes = [&] { return static_cast<int64_t>(FormatProfile(profile).size()); };
  CoResidentRecord co_resident;
  co_resident.first = co_resident.second = name;
  co_resident.points.assign(3, {4000, 4000, 1e-5 / 3, 1e-5 / 3});
  profile.calibration.co_resident.assign(1, co_resident);
  const int64_t one = bytes();
  profile.calibration.co_resident.assign(2, co_resident);
  EXPECT_LE(bytes() - one, kCoResidentRecordBytes);
  FusedRecord fused;
  fused.name = fused.tensor = fused.cuda = name;
  fused.tensor_blocks = fused.cuda_blocks = 1 << 20;
  fused.opportune_load_ratio = fused.opportune_duration_ratio = 1e-5 / 3;
  fused.saving = digits * 1e-5;
  fused.points.assign(5, {1e-5 / 3, 1e-5 / 3});
  profile.calibration.fused.assign(1, fused);
  const int64_t with_one = bytes();
  profile.calibration.fused.assign(2, fused);
  EXPECT_LE(bytes() - with_one, kFusedRecordBytes);
  profile.calibration = CalibrationRecord();
  profile.kernels.emplace_back().name = name;
  const int64_t unmeasured = bytes();
  profile.kernels[0].simulation.speed.assign(core::kMaxSpeedPoints, {4000, 1e-5 / 3});
  profile.calibration.kernels.push_back({name, Intensity::kCompute, 4000, kLong, digits, 4000});
  EXPECT_LE(bytes() - unmeasured, kKernelRecordBytes);
}

}  // namespace
}  // namespace gpushare::models
