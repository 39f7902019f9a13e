// The range of every number of a profile: its ends are accepted, and the next number is refused.

#include "src/models/profile/profile_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "src/models/profile/profile.h"

namespace gpushare::models {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The message of a text in which `object`, a profile with $0 in the place of a key and its value,
// has the number. "" if it is accepted.
std::string MessageOf(const std::string& object, const std::string& key, const std::string& value) {
  const absl::StatusOr<Profile> profile =
      ParseProfile(absl::Substitute(object, absl::StrCat("\"", key, "\": ", value)));
  return profile.ok() ? "" : std::string(profile.status().message());
}

struct Range {
  const char* key;
  const char* below;
  const char* least;
  const char* most;
  const char* above;
};

void ExpectRanges(const std::string& object, const std::string& path,
                  std::initializer_list<Range> ranges) {
  for (const Range& range : ranges) {
    const std::string name = absl::StrCat("'", path, range.key, "' is ");
    for (const char* value : {range.below, range.above}) {
      const std::string message = MessageOf(object, range.key, value);
      EXPECT_THAT(message, HasSubstr(name)) << value;
      EXPECT_THAT(message, HasSubstr("it must be from ")) << value;
    }
    // Another rule may refuse it: an SM must hold a block.
    for (const char* value : {range.least, range.most}) {
      EXPECT_THAT(MessageOf(object, range.key, value), Not(HasSubstr("it must be from"))) << name;
    }
  }
}

TEST(ProfileLimitsTest, OfTheDevice) {
  const std::string object = R"({"schema_version": 1, "device": {$0}})";
  ExpectRanges(object, "device.",
               {{"sm_count", "0", "1", "4096", "4097"},
                {"sm_granularity", "0", "1", "4096", "4097"},
                {"sm_groups", "-1", "0", "4096", "4097"},
                {"registers_per_sm", "0", "1", "16777216", "16777217"},
                {"shared_memory_per_sm_bytes", "-1", "0", "268435456", "268435457"},
                {"threads_per_sm", "0", "1", "65536", "65537"},
                {"blocks_per_sm", "0", "1", "4096", "4097"},
                {"hardware_queues", "0", "1", "1024", "1025"}});
  for (const char* latency :
       {"launch_issue_ns", "launch_latency_ns", "graph_launch_latency_ns", "completion_latency_ns",
        "eviction_write_issue_ns", "eviction_write_latency_ns", "event_record_ns",
        "host_function_latency_ns", "submit_overhead_ns", "cut_node_ns", "copy_latency_ns"}) {
    ExpectRanges(object, "device.", {{latency, "-1", "0", "1000000000", "1000000001"}});
  }
  for (const char* rate : {"pinned_bytes_per_ns", "duplex_bytes_per_ns",
                           "pageable_h2d_bytes_per_ns", "pageable_d2h_bytes_per_ns"}) {
    ExpectRanges(object, "device.", {{rate, "0", "0.000001", "1000000", "1000001"}});
  }
}

TEST(ProfileLimitsTest, OfAKernel) {
  ExpectRanges(R"({"schema_version": 1, "device": {}, "kernels": [{"name": "k", $0}]})",
               "kernels[0].",
               {{"threads_per_block", "0", "1", "65536", "65537"},
                {"registers_per_thread", "-1", "0", "1024", "1025"},
                {"shared_memory_bytes", "-1", "0", "268435456", "268435457"},
                {"workers_per_sm_max", "0", "1", "4096", "4097"},
                {"yield_interval_ns", "-1", "0", "3600000000000", "3600000000001"},
                {"solo_hint_ns", "-1", "0", "3600000000000", "3600000000001"}});
}

TEST(ProfileLimitsTest, OfASimulationRecord) {
  const std::string kernel =
      R"({"schema_version": 1, "device": {}, "kernels": [{"name": "k", "simulation": {$0}}]})";
  const std::string path = "kernels[0].simulation.";
  ExpectRanges(kernel, path,
               {{"block_task_ns", "-1", "0", "3600000000000", "3600000000001"},
                {"block_task_spread", "-0.1", "0", "10", "10.1"},
                {"worker_overhead", "-1", "-0.5", "10", "11"},
                {"memory_parallelism", "-1", "0", "1000", "1001"},
                {"saturating_occupancy", "0.0009", "0.001", "1", "1.1"},
                {"node_gap_ns", "-1", "0", "1000000000", "1000000001"}});
  const auto inside = [&](const std::string& element) { return absl::Substitute(kernel, element); };
  for (const char* demand : {"issue", "tensor", "special", "dram", "l2"}) {
    ExpectRanges(inside(R"("demand": {$0})"), path + "demand.",
                 {{demand, "-0.1", "0", "1", "1.1"}});
  }
  ExpectRanges(inside(R"("speed": [{"speed": 1, $0}])"), path + "speed[0].",
               {{"sms", "0", "1", "4096", "4097"}});
  ExpectRanges(inside(R"("speed": [{"sms": 1, $0}])"), path + "speed[0].",
               {{"speed", "0", "0.000001", "100", "101"}});
  ExpectRanges(inside(R"("nodes": [{$0}])"), path + "nodes[0].",
               {{"duration_ns", "-1", "0", "3600000000000", "3600000000001"},
                {"blocks", "-1", "0", "2147483647", "2147483648"},
                {"repeat", "0", "1", "1048576", "1048577"},
                {"block_task_ns", "-1", "0", "3600000000000", "3600000000001"}});
}

// With the gap after each, as often as it is repeated.
TEST(ProfileLimitsTest, TheNodesOfAGraphTakeAtMostTheLongestDurationTogether) {
  const auto message = [](const std::string& nodes, int gap_ns) {
    const absl::StatusOr<Profile> profile = ParseProfile(absl::StrCat(
        R"({"schema_version": 1, "device": {}, "kernels": [{"name": "k", "kind": "graph",)"
        R"( "simulation": {"node_gap_ns": )",
        gap_ns, R"(, "nodes": [)", nodes, "]}}]}"));
    return profile.ok() ? std::string() : std::string(profile.status().message());
  };
  const std::string half = R"({"duration_ns": 1800000000000})";
  EXPECT_EQ(message(absl::StrCat(half, ",", half), 0), "");
  EXPECT_THAT(message(absl::StrCat(half, ",", half), 1), HasSubstr("the limit is 3600000000000"));
  EXPECT_THAT(message(absl::StrCat(half, ",", half, R"(,{"duration_ns": 1})"), 0),
              HasSubstr("kernels[0].simulation.nodes"));
  EXPECT_EQ(message(R"({"duration_ns": 1199999999999, "repeat": 3})", 1), "");
  EXPECT_THAT(message(R"({"duration_ns": 1200000000000, "repeat": 3})", 1),
              HasSubstr("the limit is 3600000000000"));
}

TEST(ProfileLimitsTest, WhatADeviceHoldsIsAcceptedToItsLastAndRefusedAboveIt) {
  const std::string device = R"("device": {"sm_count": 10, "sm_granularity": 5, "sm_groups": $0,)"
                             R"( "threads_per_sm": 64, "registers_per_sm": 640,)"
                             R"( "shared_memory_per_sm_bytes": 100, "blocks_per_sm": 3})";
  const auto message = [&](int groups, int threads, int registers, int shared, int workers,
                           int sms) {
    const absl::StatusOr<Profile> profile = ParseProfile(
        absl::StrCat(R"({"schema_version": 1, )", absl::Substitute(device, groups),
                     R"(, "kernels": [{"name": "k", "threads_per_block": )", threads,
                     R"(, "registers_per_thread": )", registers, R"(, "shared_memory_bytes": )",
                     shared, R"(, "workers_per_sm_max": )", workers,
                     R"(, "simulation": {"speed": [{"sms": )", sms, R"(, "speed": 1}]}}]})"));
    return profile.ok() ? std::string() : std::string(profile.status().message());
  };
  EXPECT_EQ(message(2, 64, 10, 100, 3, 10), "");
  EXPECT_THAT(message(3, 64, 10, 100, 3, 10), HasSubstr("device.sm_groups"));
  EXPECT_THAT(message(2, 65, 1, 100, 3, 10), HasSubstr("the threads of an SM"));
  EXPECT_THAT(message(2, 64, 11, 100, 3, 10), HasSubstr("the registers of an SM"));
  EXPECT_THAT(message(2, 64, 10, 101, 3, 10), HasSubstr("the shared memory of an SM"));
  EXPECT_THAT(message(2, 64, 10, 100, 4, 10), HasSubstr("the blocks of an SM"));
  EXPECT_THAT(message(2, 64, 10, 100, 3, 11), HasSubstr("the SMs of the device"));
}

}  // namespace
}  // namespace gpushare::models
