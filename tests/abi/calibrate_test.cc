// gpushare_calibrate from outside: it writes a profile, reports progress, and answers bad input and
// a hang with a sentence.

#include <gmock/gmock.h>
#include <gpushare/gpushare.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Told {
  std::vector<std::string> kernels;
  std::vector<int32_t> knees;
  int64_t block_task_ns = 0;
  int32_t kept = 0;
  int32_t total = 0;
  int32_t done = 0;
  int64_t slice_block_tasks = 0;  // of the last kernel that has workers
  double slice_overhead = 1;
  int32_t workers_per_sm_least = 0;
  gpushare_intensity intensity = GPUSHARE_INTENSITY_UNKNOWN;
  std::vector<std::string> notes;
  int32_t cancel_at = -1;  // sets `cancel` once so many are done
  int32_t cancel = 0;
  gpushare_status nested = GPUSHARE_OK;
};

void Progress(void* user, const gpushare_calibration_progress* progress) {
  auto& told = *static_cast<Told*>(user);
  told.total = progress->total;
  told.done = progress->done;
  if (progress->note != nullptr) told.notes.emplace_back(progress->note);
  if (progress->done == told.cancel_at) told.cancel = 1;
  told.nested = gpushare_calibrate(nullptr, nullptr, nullptr);
  if (progress->kernel == nullptr) return;
  told.kernels.emplace_back(progress->kernel->name);
  told.kept += progress->kernel->kept;
  if (progress->kernel->block_task_ns > 0) told.block_task_ns = progress->kernel->block_task_ns;
  if (progress->kernel->worker_solo_ns > 0) {
    told.slice_block_tasks = progress->kernel->slice_block_tasks;
    told.slice_overhead = progress->kernel->slice_overhead;
    told.workers_per_sm_least = progress->kernel->workers_per_sm_least;
    told.intensity = progress->kernel->intensity;
  }
  told.knees.assign(progress->kernel->knees,
                    progress->kernel->knees + progress->kernel->knee_count);
}

class CalibrateApiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    output_ = folder_ + "/profile.json";
    kernels_[0].name = "sincos_267us";
    tasks_[0].block_tasks = 40 * 8 * 132;
    kernels_[1].name = "decode16";
    kernels_[1].kind = GPUSHARE_TASK_GRAPH;
    items_[0] = {&kernels_[0], &tasks_[0]};
    items_[1] = {&kernels_[1], nullptr};
    options_.device = "sim";
    options_.profile_path = std::getenv("GPUSHARE_TEST_PROFILE");
    ASSERT_NE(options_.profile_path, nullptr)
        << "the test needs the profile whose figures it knows";
    options_.output_path = output_.c_str();
    options_.items = items_;
    options_.item_count = 2;
    options_.cancel = &told_.cancel;
  }

  gpushare_status Run() { return gpushare_calibrate(&options_, &Progress, &told_); }
  void ExpectRefused(gpushare_status status, const std::string& part) {
    EXPECT_EQ(Run(), status) << part;
    EXPECT_THAT(gpushare_last_error_message(), HasSubstr(part));
  }

  const gpushare::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  std::string output_;
  Told told_;
  gpushare_kernel_options kernels_[2] = {GPUSHARE_KERNEL_OPTIONS_INIT,
                                         GPUSHARE_KERNEL_OPTIONS_INIT};
  gpushare_task_options tasks_[1] = {GPUSHARE_TASK_OPTIONS_INIT};
  gpushare_calibration_item items_[2] = {};
  gpushare_calibration_options options_ = GPUSHARE_CALIBRATION_OPTIONS_INIT;
};

TEST_F(CalibrateApiTest, WritesAProfileAndTellsItsProgress) {
  ASSERT_EQ(Run(), GPUSHARE_OK) << gpushare_last_error_message();
  EXPECT_THAT(told_.kernels, ElementsAre("sincos_267us", "decode16"));
  EXPECT_THAT(told_.knees, ElementsAre(84, 108));
  EXPECT_NEAR(static_cast<double>(told_.block_task_ns), 267000, 8000);
  // The device, both kernels, and their pair on partitions and on the same SMs.
  EXPECT_EQ(told_.total, 5);
  EXPECT_EQ(told_.done, 5);
  EXPECT_GT(told_.slice_block_tasks, 0);
  EXPECT_LE(told_.slice_overhead, 0.02);
  EXPECT_GT(told_.workers_per_sm_least, 0);
  EXPECT_EQ(told_.intensity, GPUSHARE_INTENSITY_COMPUTE);
  EXPECT_EQ(told_.nested, GPUSHARE_FAILED_PRECONDITION);  // a callback must not call
  EXPECT_EQ(gpushare_profile_validate(output_.c_str()), GPUSHARE_OK);
}

TEST_F(CalibrateApiTest, GoesOnAfterACancellation) {
  told_.cancel_at = 2;  // the device and the first kernel
  EXPECT_EQ(Run(), GPUSHARE_CANCELLED);
  EXPECT_FALSE(std::filesystem::exists(output_));
  told_ = Told();
  options_.resume = 1;
  EXPECT_EQ(Run(), GPUSHARE_OK) << gpushare_last_error_message();
  EXPECT_EQ(told_.kept, 1);
}

TEST_F(CalibrateApiTest, KeepsTheFusedKernelThatGains) {
  kernels_[1].name = "streaming_59us";
  kernels_[1].kind = GPUSHARE_TASK_KERNEL;
  gpushare_task_options streaming = GPUSHARE_TASK_OPTIONS_INIT;
  streaming.block_tasks = 400 * 8 * 132;
  items_[1] = {&kernels_[1], &streaming};
  gpushare_fused_kernel_options gains = GPUSHARE_FUSED_KERNEL_OPTIONS_INIT;
  gains.name = "gains";
  gains.opportune_load_ratio = 0.8;
  gains.opportune_duration_ratio = 1.2;
  gpushare_fused_kernel_options spills = gains;
  spills.name = "spills";
  const gpushare_calibration_fused fused[] = {{&gains, 0, 1, 0, 0}, {&spills, 0, 1, 8, 0}};
  options_.fused = fused;
  options_.fused_count = 2;
  ASSERT_EQ(Run(), GPUSHARE_OK) << gpushare_last_error_message();
  EXPECT_THAT(told_.notes, ::testing::Contains(HasSubstr("'gains' is kept, and 1 others")));
  EXPECT_EQ(gpushare_profile_validate(output_.c_str()), GPUSHARE_OK);
}

struct Judged {
  int workers = 0;
  int right = 0;
  gpushare_status nested = GPUSHARE_OK;
};

void Judge(void* user, const gpushare_judged_prediction* prediction) {
  auto& judged = *static_cast<Judged*>(user);
  judged.nested = gpushare_evaluate_models("x", nullptr, nullptr);
  if (std::string(prediction->family) != "workers") return;
  ++judged.workers;
  const double ratio = prediction->predicted / prediction->measured;
  judged.right += ratio > 0.9 && ratio < 1.1 ? 1 : 0;
}

TEST_F(CalibrateApiTest, SamplesAreAppendedAndJudgeTheModels) {
  const std::string samples = folder_ + "/samples.jsonl";
  options_.samples_path = samples.c_str();
  ASSERT_EQ(Run(), GPUSHARE_OK) << gpushare_last_error_message();
  const auto bytes = std::filesystem::file_size(samples);
  EXPECT_GT(bytes, 10'000U);
  Judged judged;
  ASSERT_EQ(gpushare_evaluate_models(samples.c_str(), &Judge, &judged), GPUSHARE_OK)
      << gpushare_last_error_message();
  EXPECT_GT(judged.workers, 0);
  EXPECT_EQ(judged.right, judged.workers);
  EXPECT_EQ(judged.nested, GPUSHARE_FAILED_PRECONDITION);
  ASSERT_EQ(Run(), GPUSHARE_OK) << gpushare_last_error_message();
  EXPECT_NEAR(static_cast<double>(std::filesystem::file_size(samples)),
              2 * static_cast<double>(bytes), 0.1 * static_cast<double>(bytes));
}

TEST_F(CalibrateApiTest, ProfilesAreFilledFromSamplesAndFromLikeKernels) {
  const std::string samples = folder_ + "/samples.jsonl";
  options_.samples_path = samples.c_str();
  ASSERT_EQ(Run(), GPUSHARE_OK) << gpushare_last_error_message();
  gpushare_profile_train_options train = GPUSHARE_PROFILE_TRAIN_OPTIONS_INIT;
  EXPECT_EQ(gpushare_profile_train(nullptr), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_EQ(gpushare_profile_train(&train), GPUSHARE_INVALID_ARGUMENT);
  train.profile_path = train.output_path = output_.c_str();
  train.samples_path = samples.c_str();
  EXPECT_EQ(gpushare_profile_train(&train), GPUSHARE_OK) << gpushare_last_error_message();
  EXPECT_EQ(gpushare_profile_validate(output_.c_str()), GPUSHARE_OK);
  train.samples_path = output_.c_str();
  EXPECT_EQ(gpushare_profile_train(&train), GPUSHARE_INVALID_ARGUMENT);
  // The samples are never replaced, whatever name they are given by.
  const auto sample_bytes = std::filesystem::file_size(samples);
  const std::string other_name = folder_ + "/link.jsonl";
  std::filesystem::create_hard_link(samples, other_name);
  train.samples_path = samples.c_str();
  for (const std::string& path : {samples, other_name}) {
    train.output_path = path.c_str();
    EXPECT_EQ(gpushare_profile_train(&train), GPUSHARE_INVALID_ARGUMENT);
  }
  EXPECT_EQ(std::filesystem::file_size(samples), sample_bytes);
  options_.output_path = samples.c_str();
  EXPECT_EQ(Run(), GPUSHARE_INVALID_ARGUMENT);
  options_.output_path = output_.c_str();
  EXPECT_EQ(std::filesystem::file_size(samples), sample_bytes);

  const std::string like_name = items_[0].kernel->name;
  gpushare_profile_like_options like = GPUSHARE_PROFILE_LIKE_OPTIONS_INIT;
  char taken[64] = "";
  size_t size = 0;
  EXPECT_EQ(gpushare_profile_like(&like, taken, sizeof(taken), &size), GPUSHARE_INVALID_ARGUMENT);
  like.profile_path = output_.c_str();
  like.kernel = "mine";
  like.samples_path = like.output_path = samples.c_str();
  EXPECT_EQ(gpushare_profile_like(&like, taken, sizeof(taken), &size), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_EQ(std::filesystem::file_size(samples), sample_bytes);
  like.samples_path = nullptr;
  like.output_path = output_.c_str();
  EXPECT_EQ(gpushare_profile_like(&like, taken, sizeof(taken), &size),
            GPUSHARE_FAILED_PRECONDITION);  // nobody counted it
  like.like = "none";
  EXPECT_EQ(gpushare_profile_like(&like, taken, sizeof(taken), &size), GPUSHARE_NOT_FOUND);
  like.like = like_name.c_str();
  like.samples_path = samples.c_str();
  EXPECT_EQ(gpushare_profile_like(&like, taken, sizeof(taken), &size), GPUSHARE_OK)
      << gpushare_last_error_message();
  EXPECT_EQ(taken, like_name);
  EXPECT_EQ(size, like_name.size() + 1);
  EXPECT_EQ(gpushare_profile_validate(output_.c_str()), GPUSHARE_OK);
}

TEST_F(CalibrateApiTest, SamplesThatCannotBeJudgedAreErrors) {
  EXPECT_EQ(gpushare_evaluate_models(nullptr, &Judge, nullptr), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_EQ(gpushare_evaluate_models("x", nullptr, nullptr), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_EQ(gpushare_evaluate_models((folder_ + "/none").c_str(), &Judge, nullptr),
            GPUSHARE_NOT_FOUND);
  const std::string profile = std::getenv("GPUSHARE_TEST_PROFILE");
  EXPECT_EQ(gpushare_evaluate_models(profile.c_str(), &Judge, nullptr), GPUSHARE_INVALID_ARGUMENT);
  options_.samples_path = "";
  ExpectRefused(GPUSHARE_INVALID_ARGUMENT, "samples_path");
  options_.samples_path = folder_.c_str();
  EXPECT_NE(Run(), GPUSHARE_OK);
  EXPECT_FALSE(std::filesystem::exists(output_));
}

TEST_F(CalibrateApiTest, TheWholeHasABound) {
  options_.total_time_ns = 1'000'000'000;
  ASSERT_EQ(Run(), GPUSHARE_OK) << gpushare_last_error_message();
  EXPECT_THAT(told_.notes, ::testing::Contains(HasSubstr("The time of 1 s in all was over")));
  EXPECT_EQ(told_.done, told_.total);
}

TEST_F(CalibrateApiTest, AHangIsADeadline) {
  options_.sim_faults = "hang=20";
  options_.hang_limit_ns = 50'000'000;
  ExpectRefused(GPUSHARE_DEADLINE_EXCEEDED, "the limit is 50 ms");
}

TEST_F(CalibrateApiTest, BadInputIsRefused) {
  EXPECT_EQ(gpushare_calibrate(nullptr, nullptr, nullptr), GPUSHARE_INVALID_ARGUMENT);
  const gpushare_calibration_options good = options_;
  options_.output_path = nullptr;
  ExpectRefused(GPUSHARE_INVALID_ARGUMENT, "output_path is null");
  options_ = good;
  options_.item_count = 0;
  ExpectRefused(GPUSHARE_INVALID_ARGUMENT, "item_count is 0");
  options_ = good;
  options_.items = nullptr;
  ExpectRefused(GPUSHARE_INVALID_ARGUMENT, "items is null");
  options_ = good;
  options_.resume = 7;
  ExpectRefused(GPUSHARE_INVALID_ARGUMENT, "resume is 7");
  options_ = good;
  options_.evictions = 1000;
  ExpectRefused(GPUSHARE_INVALID_ARGUMENT, "1000 evictions");
  options_ = good;
  options_.kernel_time_ns = -1;
  ExpectRefused(GPUSHARE_INVALID_ARGUMENT, "kernel_time_ns is -1");
  options_ = good;
  options_.total_time_ns = -1;
  ExpectRefused(GPUSHARE_INVALID_ARGUMENT, "total_time_ns is -1");
  options_ = good;
  options_.slice_overhead_max = 2;
  ExpectRefused(GPUSHARE_INVALID_ARGUMENT, "A slice may cost 2");
  options_ = good;
  options_.fused_count = 1;
  ExpectRefused(GPUSHARE_INVALID_ARGUMENT, "fused is null");
  options_ = good;
  options_.reserved = 1;
  ExpectRefused(GPUSHARE_UNIMPLEMENTED, "reserved");
  options_ = good;
  gpushare_fused_kernel_options pair = GPUSHARE_FUSED_KERNEL_OPTIONS_INIT;
  pair.name = "pair";
  gpushare_calibration_fused fused = {&pair, 0, 7, 0, 0};
  options_.fused = &fused;
  options_.fused_count = 1;
  ExpectRefused(GPUSHARE_INVALID_ARGUMENT, "is item 7");
  fused.cuda_item = 1;
  ExpectRefused(GPUSHARE_INVALID_ARGUMENT, "has no block tasks");
  pair.opportune_load_ratio = -1;
  ExpectRefused(GPUSHARE_INVALID_ARGUMENT, "is -1");
  options_ = good;
  options_.device = "tpu";
  ExpectRefused(GPUSHARE_INVALID_ARGUMENT, "'tpu'");
  options_ = good;
  options_.device = "null";
  ExpectRefused(GPUSHARE_FAILED_PRECONDITION, "takes no time");
  options_ = good;
  kernels_[1].name = "no_such_kernel";
  ExpectRefused(GPUSHARE_INVALID_ARGUMENT, "no simulation record");
  kernels_[1].name = "decode16";
  tasks_[0].arguments_size_bytes = 5000;
  ExpectRefused(GPUSHARE_INVALID_ARGUMENT, "5000 bytes of arguments");
}

}  // namespace
