// Durations of library calls that nobody measured: samples of other calls train a profile, and a
// runtime with that profile predicts the call when it is registered.

#include <gpushare/gpushare.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/abi/api_fixture.h"
#include "tests/temporary_folder.h"

namespace {

using gpushare_test::Api;

// Of a product in half precision, ns: a power of the sizes above what the device needs at least.
double Truth(int64_t m, int64_t n, int64_t k) {
  const double flops =
      2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  return (2000 + flops / 690e3) * 1.4 * std::pow(static_cast<double>(m) / 1000, -0.1);
}

std::string Row(int64_t m, int64_t n, int64_t k) {
  const std::string shape = std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  return R"({"what":"solo","kernel":"matmul.)" + shape +
         R"(","form":"library","block_tasks":0,"sms":132,"workers_per_sm":0,"call":{"operation":)"
         R"("matmul","type":"float16","m":)" +
         std::to_string(m) + R"(,"n":)" + std::to_string(n) + R"(,"k":)" + std::to_string(k) +
         R"(},"ns":[)" + std::to_string(Truth(m, n, k)) + "]}\n";
}

class LibraryCallTest : public ::testing::Test {
 protected:
  void SetUp() override {
    profile_ = folder_ + "/trained.json";
    Train();
    api_.opening.profile_path = profile_.c_str();
    api_.Open({"sim", GPUSHARE_DRIVE_POLL});
  }
  void TearDown() override { api_.Close(); }

  void Train() {
    const std::string samples = folder_ + "/samples.jsonl";
    {
      std::ofstream file(samples);
      file << R"({"samples_version":1,"gpu_model":"NVIDIA H200","sm_count":132,"simulated":true})"
           << '\n';
      for (const int64_t m : {512, 1024, 2048, 4096, 8192}) {
        for (const int64_t n : {1024, 2048, 4096, 8192}) {
          for (const int64_t k : {1024, 4096}) file << Row(m, n, k);
        }
      }
    }
    gpushare_profile_train_options options = GPUSHARE_PROFILE_TRAIN_OPTIONS_INIT;
    options.profile_path = std::getenv("GPUSHARE_TEST_PROFILE");
    options.samples_path = samples.c_str();
    options.output_path = profile_.c_str();
    ASSERT_OK(gpushare_profile_train(&options));
  }

  // Registers the call with nothing measured, and runs it once.
  gpushare_completion_record FirstRun(const char* name, gpushare_library_call call,
                                      int64_t solo_ns = 0) {
    gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
    gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
    options.name = name;
    options.kind = GPUSHARE_TASK_LIBRARY;
    options.library = &call;
    options.simulation = &record;
    options.solo_ns = solo_ns;
    gpushare_kernel* kernel = nullptr;
    EXPECT_OK(gpushare_kernel_register(api_.runtime, &options, &kernel));
    gpushare_library_arguments arguments = {};
    gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
    task.kernel = kernel;
    task.arguments = &arguments;
    task.arguments_size_bytes = sizeof(arguments);
    const gpushare_completion_record out = api_.Finish(api_.Submit(task, true));
    EXPECT_OK(gpushare_kernel_release(kernel));
    return out;
  }

  static gpushare_library_call Matmul(int64_t m, int64_t n, int64_t k) {
    gpushare_library_call call = GPUSHARE_LIBRARY_CALL_INIT;
    call.operation = GPUSHARE_LIBRARY_MATMUL;
    call.type = GPUSHARE_FLOAT16;
    call.m = m;
    call.n = n;
    call.k = k;
    return call;
  }

  const gpushare::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  std::string profile_;
  Api api_;
};

TEST_F(LibraryCallTest, ACallThatNobodyMeasuredIsPredictedWithItsErrorBar) {
  int number = 0;
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{768, 3072, 2048}, {3000, 1536, 1024}, {6144, 6144, 2048}}) {
    const gpushare_completion_record run =
        FirstRun(("call" + std::to_string(++number)).c_str(), Matmul(m, n, k));
    const double error = static_cast<double>(run.predicted_error_ns);
    EXPECT_NEAR(static_cast<double>(run.predicted_ns), Truth(m, n, k), 3 * error);
    EXPECT_GT(error, 0);
    EXPECT_LT(error, 0.1 * static_cast<double>(run.predicted_ns));
  }
}

// At 50 TFLOP/s in single precision.
TEST_F(LibraryCallTest, OfAnUntrainedClassTheLeastTimeIsKnownWithAnErrorBarOfItsOwnSize) {
  gpushare_library_call call = Matmul(4096, 4096, 4096);
  call.type = GPUSHARE_FLOAT32;
  const gpushare_completion_record run = FirstRun("single", call);
  EXPECT_GT(run.predicted_ns, 2.0 * 4096 * 4096 * 4096 / 50e3);
  EXPECT_LT(run.predicted_ns, 2 * 2.0 * 4096 * 4096 * 4096 / 50e3);
  EXPECT_EQ(run.predicted_error_ns, run.predicted_ns);
}

TEST_F(LibraryCallTest, WhatTheCallerStatesCountsForMore) {
  EXPECT_EQ(FirstRun("stated", Matmul(2048, 2048, 2048), 77'000).predicted_ns, 77'000);
}

TEST_F(LibraryCallTest, ASavedProfileKeepsTheFit) {
  const std::string saved = folder_ + "/saved.json";
  ASSERT_OK(gpushare_profile_save(api_.runtime, saved.c_str()));
  api_.Close();
  api_ = Api();
  api_.opening.profile_path = saved.c_str();
  api_.Open({"sim", GPUSHARE_DRIVE_POLL});
  const gpushare_completion_record run = FirstRun("again", Matmul(3000, 1536, 1024));
  EXPECT_NEAR(static_cast<double>(run.predicted_ns), Truth(3000, 1536, 1024),
              0.1 * Truth(3000, 1536, 1024));
}

}  // namespace
