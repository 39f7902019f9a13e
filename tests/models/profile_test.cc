// Profiles: everything that is written is read back the same, and nothing that is wrong is
// accepted.

#include "src/models/profile/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "src/core/base/limits.h"

namespace gpushare::models {
namespace {

using ::testing::HasSubstr;

// A value in every field that differs from its default.
Profile FullProfile() {
  Profile profile;
  core::DeviceProfile& device = profile.device;
  device.name = "h200";
  device.gpu_model = "NVIDIA H200";
  device.sm_count = 130;
  device.sm_granularity = 4;
  device.sm_groups = 30;
  device.remainder_for_lc = true;
  device.registers_per_sm = 60000;
  device.shared_memory_per_sm_bytes = 200000;
  device.threads_per_sm = 1024;
  device.blocks_per_sm = 24;
  device.hardware_queues = 16;
  device.launch_issue_ns = 1;
  device.launch_latency_ns = 2;
  device.graph_launch_latency_ns = 3;
  device.completion_latency_ns = 4;
  device.eviction_write_issue_ns = 5;
  device.eviction_write_latency_ns = 6;
  device.event_record_ns = 7;
  device.host_function_latency_ns = 8;
  device.submit_overhead_ns = 9;
  device.cut_node_ns = 11;
  device.pinned_bytes_per_ns = 1.1;
  device.duplex_bytes_per_ns = 2.2;
  device.pageable_h2d_bytes_per_ns = 3.3;
  device.pageable_d2h_bytes_per_ns = 4.4;
  device.copy_latency_ns = 10;
  core::KernelDesc kernel;
  kernel.name = "decode";
  kernel.code = core::GraphCode();
  kernel.resources.threads_per_block = 128;
  kernel.resources.registers_per_thread = 64;
  kernel.resources.shared_memory_bytes = 1024;
  kernel.resources.workers_per_sm_max = 3;
  kernel.evictable = true;
  kernel.confinable = false;
  kernel.resources.roomy = true;
  kernel.yield_interval_ns = 150000;
  kernel.solo_hint_ns = 543000;
  core::SimulationRecord& record = kernel.simulation;
  record.present = true;
  record.block_task_ns = 27000;
  record.block_task_spread = 0.02;
  record.worker_overhead = 0.003;
  record.memory_parallelism = 0.9;
  record.saturating_occupancy = 0.5;
  record.demand = {0.1, 0.2, 0.3, 0.4, 0.5};
  record.speed = {{8, 0.1}, {84, 0.96}, {124, 0.80}};
  record.nodes = {{34000, 64, 16, false, {0.6, 0.7, 0.8, 0.9, 1.0}, 250, "gemm"},
                  {5, 6, 7, true, {}}};
  record.node_gap_ns = 520;
  profile.kernels.push_back(kernel);
  kernel.name = "sincos";
  kernel.code = core::FunctionCode();
  kernel.simulation = {};
  profile.kernels.push_back(kernel);
  profile.learned = "{\"text\": \"with \\\"quotes\\\"\"}";
  CalibrationRecord& calibration = profile.calibration;
  calibration.kernels = {{"sincos", Intensity::kMemory, 84, 1056, 0.015, 4}};
  calibration.co_resident = {{"decode", "sincos", {{0, 2, 0.5, 0.25}, {3, 4, 0.75, 0.125}}}};
  calibration.fused = {{"one",
                        "decode",
                        "sincos",
                        2,
                        3,
                        FusedVerdict::kSlower,
                        0.8,
                        1.3,
                        0.25,
                        {{0.1, 1.05}, {1.9, 2.4}}}};
  calibration.copies = {{false, false, 4096, 9000}};
  return profile;
}

std::string ErrorOf(const std::string& text) {
  absl::StatusOr<Profile> profile = ParseProfile(text);
  EXPECT_FALSE(profile.ok()) << text.substr(0, 200);
  if (profile.ok()) return "";
  EXPECT_EQ(profile.status().code(), absl::StatusCode::kInvalidArgument);
  std::string message(profile.status().message());
  EXPECT_EQ(message.back(), '.') << message;
  return message;
}

// A profile with one kernel whose simulation record holds `fields`.
std::string WithRecord(const std::string& fields) {
  return absl::StrCat("{\"schema_version\": 1, \"device\": {}, \"kernels\": [{\"name\": \"k\", ",
                      "\"simulation\": {", fields, "}}]}");
}

TEST(ProfileTest, EveryFieldSurvivesTheRoundTrip) {
  const std::string text = FormatProfile(FullProfile());
  Profile read = ParseProfile(text).value();
  EXPECT_EQ(FormatProfile(read), text);
  const Profile full = FullProfile();
  EXPECT_EQ(read.device.copy_latency_ns, full.device.copy_latency_ns);
  EXPECT_EQ(read.device.pageable_d2h_bytes_per_ns, full.device.pageable_d2h_bytes_per_ns);
  ASSERT_EQ(read.kernels.size(), 2u);
  EXPECT_EQ(read.kernels[0].kind(), core::TaskKind::kGraph);
  ASSERT_EQ(read.kernels[0].simulation.nodes.size(), 2u);
  EXPECT_EQ(read.kernels[0].simulation.nodes[0].repeat, 16);
  EXPECT_EQ(read.kernels[0].simulation.nodes[0].demand.l2, 1.0);
  EXPECT_EQ(read.kernels[0].simulation.nodes[0].block_task_ns, 250);
  EXPECT_EQ(read.kernels[0].simulation.nodes[0].kernel, "gemm");
  EXPECT_EQ(read.kernels[0].simulation.nodes[1].kernel, "");
  ASSERT_EQ(read.kernels[0].simulation.speed.size(), 3u);
  EXPECT_EQ(read.kernels[0].simulation.speed[1].speed, 0.96);
  EXPECT_FALSE(read.kernels[1].simulation.present);
  EXPECT_EQ(read.learned, full.learned);
  ASSERT_EQ(read.calibration.kernels.size(), 1u);
  const KernelRecord& record = read.calibration.kernels[0];
  EXPECT_EQ(record.intensity, Intensity::kMemory);
  EXPECT_EQ(record.flat_from_sms, 84);
  EXPECT_EQ(record.slice_block_tasks, 1056);
  EXPECT_EQ(record.workers_per_sm_least, 4);
  ASSERT_EQ(read.calibration.co_resident.size(), 1u);
  ASSERT_EQ(read.calibration.co_resident[0].points.size(), 2u);
  EXPECT_EQ(read.calibration.co_resident[0].points[1].second_speed, 0.125);
  ASSERT_EQ(read.calibration.fused.size(), 1u);
  EXPECT_EQ(read.calibration.fused[0].verdict, FusedVerdict::kSlower);
  EXPECT_EQ(read.calibration.fused[0].cuda_blocks, 3);
  EXPECT_EQ(read.calibration.fused[0].points[1].duration_ratio, 2.4);
  ASSERT_EQ(read.calibration.copies.size(), 1u);
  EXPECT_FALSE(read.calibration.copies[0].to_device);
  EXPECT_EQ(read.calibration.copies[0].duration_ns, 9000);
}

// As they were written before there was one.
TEST(ProfileTest, WithoutACalibrationTheKeyIsNotWritten) {
  EXPECT_EQ(FormatProfile(Profile()).find("calibration"), std::string::npos);
  EXPECT_THAT(FormatProfile(FullProfile()), HasSubstr("\"calibration\""));
}

TEST(ProfileTest, WrongWordsAndValuesOfACalibrationAreRefused) {
  const auto with = [](const std::string& fields) {
    return absl::StrCat("{\"schema_version\": 1, \"device\": {}, \"calibration\": {", fields, "}}");
  };
  EXPECT_TRUE(ParseProfile(with("\"kernels\": [{\"name\": \"k\"}]")).ok());
  EXPECT_THAT(ErrorOf(with("\"kernels\": [{\"name\": \"k\", \"intensity\": \"both\"}]")),
              HasSubstr("one of unknown, compute, memory"));
  EXPECT_THAT(ErrorOf(with("\"fused\": [{\"verdict\": 7}]")), HasSubstr("one of kept, slower"));
  EXPECT_THAT(ErrorOf(with("\"co_resident\": [{\"points\": [{\"first_speed\": -1}]}]")),
              HasSubstr("calibration.co_resident[0].points[0].first_speed"));
  EXPECT_THAT(ErrorOf(with("\"copies\": {}")), HasSubstr("an array"));
  EXPECT_THAT(ErrorOf(with("\"slices\": []")), HasSubstr("is not known"));
}

// A field that is added to a struct and forgotten in its table would keep its default here.
TEST(ProfileTest, NoFieldOfTheDeviceIsForgotten) {
  const std::string defaults = FormatProfile(Profile());
  std::istringstream default_lines(defaults);
  std::istringstream full_lines(FormatProfile(FullProfile()));
  std::string default_line;
  std::string full_line;
  int compared = 0;
  while (std::getline(default_lines, default_line) && std::getline(full_lines, full_line)) {
    if (default_line.find("_ns\"") != std::string::npos ||
        default_line.find("_per_") != std::string::npos ||
        default_line.find("\"sm_") != std::string::npos ||
        default_line.find("\"remainder_for_lc\"") != std::string::npos) {
      EXPECT_NE(default_line, full_line);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 23);
}

TEST(ProfileTest, TheSideOfTheRemainderIsWrittenAndRead) {
  for (const bool for_lc : {false, true}) {
    Profile profile;
    profile.device.remainder_for_lc = for_lc;
    const std::string text = FormatProfile(profile);
    EXPECT_THAT(text, HasSubstr(absl::StrCat("\"remainder_for_lc\": ", for_lc ? "true" : "false")));
    Profile read = ParseProfile(text).value();
    EXPECT_EQ(read.device.remainder_for_lc, for_lc);
  }
  EXPECT_THAT(ErrorOf("{\"schema_version\": 1, \"device\": {\"remainder_for_lc\": 1}}"),
              HasSubstr("true or false"));
}

TEST(ProfileTest, KeysThatAreLeftOutKeepTheirDefaults) {
  Profile profile = ParseProfile("{\"schema_version\": 1, \"device\": {}}").value();
  EXPECT_EQ(profile.device.sm_count, core::DeviceProfile().sm_count);
  EXPECT_TRUE(profile.kernels.empty());
  EXPECT_EQ(profile.FindKernel("none"), nullptr);
}

TEST(ProfileTest, AnUnknownKeyIsNamedWithItsPath) {
  EXPECT_THAT(ErrorOf(WithRecord("\"block_task_us\": 27")),
              HasSubstr("'kernels[0].simulation.block_task_us' is not known"));
  EXPECT_THAT(ErrorOf("{\"schema_version\": 1, \"device\": {}, \"kernel\": []}"),
              HasSubstr("'kernel' is not known"));
}

TEST(ProfileTest, DurationsOutOfRangeAreRefusedWithValueAndLimit) {
  EXPECT_THAT(ErrorOf(WithRecord("\"block_task_ns\": -5")),
              HasSubstr("'kernels[0].simulation.block_task_ns' is -5, and it must be from 0 to "
                        "3600000000000."));
  EXPECT_THAT(ErrorOf(WithRecord("\"block_task_ns\": 3600000000001")), HasSubstr("3600000000001"));
  EXPECT_THAT(ErrorOf(WithRecord("\"block_task_ns\": 18446744073709551615")),
              HasSubstr("18446744073709551615"));
}

TEST(ProfileTest, WrongTypesAreRefused) {
  EXPECT_THAT(ErrorOf(WithRecord("\"block_task_ns\": 1.5")), HasSubstr("a whole number"));
  EXPECT_THAT(ErrorOf(WithRecord("\"block_task_ns\": \"27\"")), HasSubstr("a whole number"));
  EXPECT_THAT(ErrorOf(WithRecord("\"block_task_ns\": null")), HasSubstr("a whole number"));
  EXPECT_THAT(ErrorOf(WithRecord("\"block_task_spread\": true")), HasSubstr("a number"));
  EXPECT_THAT(ErrorOf(WithRecord("\"present\": 1")), HasSubstr("true or false"));
  EXPECT_THAT(ErrorOf(WithRecord("\"demand\": []")), HasSubstr("an object"));
  EXPECT_THAT(ErrorOf(WithRecord("\"speed\": {}")), HasSubstr("an array"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("an object"));
  EXPECT_THAT(ErrorOf("{\"schema_version\": 2, \"device\": {}}"), HasSubstr("'schema_version'"));
  // Copies and opaque work need no kernel.
  for (const std::string kind : {"kernal", "memcpy", "opaque"}) {
    EXPECT_THAT(ErrorOf("{\"schema_version\": 1, \"device\": {}, \"kernels\": [{\"name\": \"k\", "
                        "\"kind\": \"" +
                        kind + "\"}]}"),
                HasSubstr("\"kernel\", \"graph\" or \"library\""));
  }
}

TEST(ProfileTest, NumbersThatAreNotFiniteAreRefused) {
  EXPECT_THAT(ErrorOf(WithRecord("\"block_task_spread\": NaN")), HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf(WithRecord("\"block_task_spread\": 1e999")), HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf(WithRecord("\"demand\": {\"dram\": 1.01}")), HasSubstr("from 0 to 1"));
}

TEST(ProfileTest, ArraysAreBounded) {
  std::string points;
  for (int i = 1; i <= core::kMaxSpeedPoints + 1; ++i) {
    absl::StrAppend(&points, i > 1 ? "," : "", "{\"sms\": ", i, ", \"speed\": 1}");
  }
  EXPECT_THAT(ErrorOf(WithRecord(absl::StrCat("\"speed\": [", points, "]"))),
              HasSubstr("has 33 elements, and the limit is 32"));
  std::string nodes = "{}";
  for (int i = 0; i < core::kMaxGraphNodes; ++i) nodes += ",{}";
  EXPECT_THAT(ErrorOf(WithRecord(absl::StrCat("\"nodes\": [", nodes, "]"))),
              HasSubstr("the limit is 4096"));
  std::string kernels;
  for (int i = 0; i <= core::kMaxKernels; ++i) {
    absl::StrAppend(&kernels, i > 0 ? "," : "", "{\"name\": \"k", i, "\"}");
  }
  EXPECT_THAT(
      ErrorOf(absl::StrCat("{\"schema_version\":1,\"device\":{},\"kernels\":[", kernels, "]}")),
      HasSubstr("the limit is 1024"));
}

TEST(ProfileTest, SpeedPointsMustAscendAndBeComplete) {
  EXPECT_THAT(ErrorOf(WithRecord("\"speed\": [{\"sms\": 84, \"speed\": 1}, {\"sms\": 84, "
                                 "\"speed\": 1}]")),
              HasSubstr("must be above 84"));
  EXPECT_THAT(ErrorOf(WithRecord("\"speed\": [{\"sms\": 84}]")), HasSubstr("both 'sms'"));
  EXPECT_THAT(ErrorOf(WithRecord("\"speed\": [{\"sms\": 140, \"speed\": 1}]")),
              HasSubstr("140, and the limit is 132, the SMs of the device"));
}

TEST(ProfileTest, KernelsMustFitTheDevice) {
  const std::string head = "{\"schema_version\":1,\"device\":{},\"kernels\":[{\"name\":\"k\",";
  EXPECT_THAT(ErrorOf(head + "\"shared_memory_bytes\": 300000}]}"),
              HasSubstr("the shared memory of an SM"));
  EXPECT_THAT(ErrorOf(head + "\"threads_per_block\": 1024, \"registers_per_thread\": 255}]}"),
              HasSubstr("the registers of an SM"));
  EXPECT_THAT(ErrorOf(head + "\"workers_per_sm_max\": 40}]}"), HasSubstr("the blocks of an SM"));
  EXPECT_THAT(ErrorOf("{\"schema_version\":1,\"device\":{\"sm_count\":4}}"),
              HasSubstr("device.sm_granularity"));
}

TEST(ProfileTest, NamesAreUniqueAndBounded) {
  EXPECT_THAT(ErrorOf("{\"schema_version\":1,\"device\":{},\"kernels\":[{\"name\":\"k\"},"
                      "{\"name\":\"k\"}]}"),
              HasSubstr("an earlier kernel has this name"));
  EXPECT_THAT(ErrorOf("{\"schema_version\":1,\"device\":{},\"kernels\":[{}]}"),
              HasSubstr("needs a 'name'"));
  EXPECT_THAT(ErrorOf(absl::StrCat("{\"schema_version\":1,\"device\":{},\"kernels\":[{\"name\":\"",
                                   std::string(65, 'x'), "\"}]}")),
              HasSubstr("has 65 bytes"));
  EXPECT_THAT(ErrorOf("{\"schema_version\":1,\"device\":{\"sm_count\":132,\"sm_count\":8}}"),
              HasSubstr("twice in one object"));
}

// The same key in two objects of one array, and in nested objects, is fine.
TEST(ProfileTest, TheSameKeyInAnotherObjectIsNoDuplicate) {
  EXPECT_TRUE(ParseProfile("{\"schema_version\":1,\"device\":{\"name\":\"d\"},\"kernels\":["
                           "{\"name\":\"a\",\"simulation\":{\"demand\":{\"dram\":1},\"nodes\":["
                           "{\"demand\":{\"dram\":1}},{\"demand\":{\"dram\":1}}]}},"
                           "{\"name\":\"b\"}]}")
                  .ok());
}

TEST(ProfileTest, EveryTruncationIsRefused) {
  const std::string text = FormatProfile(FullProfile());
  // The last byte is the line feed after the document.
  for (size_t length = 0; length + 1 < text.size(); ++length) {
    ASSERT_FALSE(ParseProfile(text.substr(0, length)).ok()) << length;
  }
}

TEST(ProfileTest, DeepNestingAndLongTextsAreRefused) {
  EXPECT_THAT(ErrorOf(std::string(100000, '[') + std::string(100000, ']')),
              HasSubstr("nests deeper"));
  EXPECT_THAT(ErrorOf(std::string(100000, '[')), HasSubstr("The profile"));
  EXPECT_THAT(ErrorOf(std::string((16 << 20) + 1, ' ')), HasSubstr("the limit is 16777216"));
}

TEST(ProfileTest, SavingReplacesTheFileAndLeavesNoOther) {
  const std::string folder = ::testing::TempDir() + "/gpushare_profile_test";
  ASSERT_EQ(std::system(("rm -rf '" + folder + "' && mkdir '" + folder + "'").c_str()), 0);
  const std::string path = folder + "/profile.json";
  ASSERT_TRUE(SaveProfile(path, Profile()).ok());
  ASSERT_TRUE(SaveProfile(path, FullProfile()).ok());
  Profile read = LoadProfile(path).value();
  EXPECT_EQ(FormatProfile(read), FormatProfile(FullProfile()));
  EXPECT_EQ(std::system(("test \"$(ls '" + folder + "')\" = profile.json").c_str()), 0);
}

TEST(ProfileTest, SavingRefusesWhatCouldNotBeRead) {
  Profile profile = FullProfile();
  profile.kernels[0].simulation.demand.dram = 2;
  const std::string path = ::testing::TempDir() + "/gpushare_bad_profile.json";
  std::remove(path.c_str());
  EXPECT_EQ(SaveProfile(path, profile).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(std::ifstream(path).good());
}

TEST(ProfileTest, LoadingNamesTheFile) {
  EXPECT_EQ(LoadProfile("/nonexistent/profile.json").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(LoadProfile("/nonexistent/profile.json").status().message()),
              HasSubstr("/nonexistent/profile.json"));
  EXPECT_EQ(LoadProfile(::testing::TempDir()).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace gpushare::models
