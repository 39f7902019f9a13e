// What the library refuses, with a clear sentence, and how refusals are counted.

#include <gpushare/gpushare.h>

#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"
#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

class RefusalsTest : public testing::Test {
 protected:
  void SetUp() override { api_.Open({"sim", GPUSHARE_DRIVE_POLL}); }
  void TearDown() override { api_.Close(); }

  gpushare_status CreateApp(const gpushare_app_options& options) {
    gpushare_app* app = nullptr;
    const gpushare_status status = gpushare_app_create(api_.runtime, &options, &app);
    EXPECT_OK(gpushare_app_release(app));
    return status;
  }
  int64_t RejectedOf(gpushare_app* app) { return Api::AppStats(app).rejected; }

  Api api_;
};

TEST_F(RefusalsTest, ABeAppStatesNoTarget) {
  const gpushare_app_options plain = AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, "batch");
  gpushare_app_options bad = plain;
  bad.target_ns = 2000000;
  EXPECT_FAILS(CreateApp(bad), GPUSHARE_INVALID_ARGUMENT, "BE app 'batch' states a target");
  bad = plain;
  bad.p99_bound = 1.05;
  EXPECT_EQ(CreateApp(bad), GPUSHARE_INVALID_ARGUMENT);
  bad = plain;
  bad.p99_alone_ns = 1000;
  EXPECT_EQ(CreateApp(bad), GPUSHARE_INVALID_ARGUMENT);
  bad = plain;
  bad.solo_ns = 1000;
  EXPECT_EQ(CreateApp(bad), GPUSHARE_INVALID_ARGUMENT);
  bad = plain;
  bad.drop_late = 1;
  EXPECT_EQ(CreateApp(bad), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_EQ(CreateApp(plain), GPUSHARE_OK);
}

// Names stand in JSON reports and profiles, which are UTF-8.
TEST_F(RefusalsTest, ANameIsUtf8) {
  for (const char* const name : {"\xff", "caf\xe9", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                 "\xe2\x82", "\xf0\x8f\xbf\xbf", "\xe0\x9f\xbf", "a\x80"}) {
    EXPECT_FAILS(CreateApp(AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, name)),
                 GPUSHARE_INVALID_ARGUMENT, "app_options.name is not UTF-8");
    gpushare_kernel_options kernel = GPUSHARE_KERNEL_OPTIONS_INIT;
    kernel.name = name;
    gpushare_kernel* registered = nullptr;
    EXPECT_FAILS(gpushare_kernel_register(api_.runtime, &kernel, &registered),
                 GPUSHARE_INVALID_ARGUMENT, "kernel_options.name is not UTF-8");
  }
  for (const char* const name : {"caf\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x9a\x80", "\xed\x9f\xbf",
                                 "\xf4\x8f\xbf\xbf", "\xee\x80\x80"}) {
    EXPECT_EQ(CreateApp(AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, name)), GPUSHARE_OK) << name;
  }
}

TEST_F(RefusalsTest, APackedQuotaBelowTheSmallestBeSideIsRefusedWithBothNumbers) {
  gpushare_reservation_options quota = GPUSHARE_RESERVATION_OPTIONS_INIT;
  quota.packed = 1;
  quota.capsms = 1;
  EXPECT_FAILS(gpushare_reserve_capsm(api_.be_app, &quota), GPUSHARE_INVALID_ARGUMENT,
               "asks for a packed quota of 1 CapSMs, and the smallest BE side");
  quota.packed = 0;  // a spread one needs no side
  EXPECT_OK(gpushare_reserve_capsm(api_.be_app, &quota));
}

// Whatever refuses it: the C layer, the check of the task, its query, its tickets, a full app, the
// wrong class, a shutdown.
TEST_F(RefusalsTest, EveryRefusedSubmitIsCounted) {
  int64_t refused = 0;
  const auto refuse = [&](const gpushare_task_options& task) {
    gpushare_ticket ticket = {0};
    EXPECT_NE(gpushare_submit_be(api_.be_queue, &task, &ticket), GPUSHARE_OK);
    EXPECT_EQ(RejectedOf(api_.be_app), ++refused) << gpushare_last_error_message();
  };
  gpushare_task_options task = api_.BeTask();
  task.reserved = 1;
  refuse(task);
  task = api_.BeTask();
  task.copy_size_bytes = 4;
  refuse(task);
  task = api_.BeTask(-1);
  refuse(task);
  task = api_.BeTask();
  task.query.value = 77;
  refuse(task);
  task = api_.BeTask();
  const gpushare_ticket stale = {12345};
  task.wait_tickets = &stale;
  task.wait_ticket_count = 1;
  refuse(task);
  gpushare_ticket ticket = {0};
  const gpushare_task_options good = api_.BeTask();
  EXPECT_NE(gpushare_submit_lc(api_.be_queue, &good, &ticket), GPUSHARE_OK);
  EXPECT_EQ(RejectedOf(api_.be_app), ++refused);
  EXPECT_NE(gpushare_submit_be(api_.be_queue, nullptr, &ticket), GPUSHARE_OK);
  EXPECT_EQ(RejectedOf(api_.be_app), ++refused);
  while (gpushare_submit_be(api_.be_queue, &good, nullptr) == GPUSHARE_OK) {
  }
  EXPECT_EQ(RejectedOf(api_.be_app), ++refused);
  ASSERT_OK(gpushare_runtime_shutdown(api_.runtime, GPUSHARE_NEVER));
  refuse(good);
  EXPECT_EQ(RejectedOf(api_.lc_app), 0);
}

// A profile whose `learned` text is damaged, everything else being right.
TEST(ProfileValidationTest, RefusesTheLearnedTextThatCreateRefuses) {
  Api api;
  api.Open({"sim", GPUSHARE_DRIVE_POLL});
  EXPECT_EQ(api.Finish(api.Submit(api.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
  const std::string path = testing::TempDir() + "/refusals_learned.json";
  ASSERT_OK(gpushare_profile_save(api.runtime, path.c_str()));
  EXPECT_OK(gpushare_profile_validate(path.c_str()));
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const size_t learned = text.find("\"learned\"");
  ASSERT_NE(learned, std::string::npos);
  const size_t version = text.find("schema_version", learned);
  ASSERT_NE(version, std::string::npos);
  text.replace(version, 6, "broken");
  std::ofstream(path) << text;
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.device = "sim";
  options.profile_path = path.c_str();
  gpushare_runtime* runtime = nullptr;
  const gpushare_status of_create = gpushare_runtime_create(&options, &runtime);
  EXPECT_NE(of_create, GPUSHARE_OK);
  const std::string message = gpushare_last_error_message();
  EXPECT_EQ(gpushare_profile_validate(path.c_str()), of_create);
  // Creating names the file as well.
  EXPECT_NE(message.find(gpushare_last_error_message()), std::string::npos) << message;
  api.Close();
}

}  // namespace
}  // namespace gpushare_test
