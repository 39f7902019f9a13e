// Which tasks are accepted: each limit of a specification, from both sides.

#include "src/core/flow/entry/submit_check.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/core/base/limits.h"

namespace gpushare::core {
namespace {

using ::testing::HasSubstr;

constexpr int32_t kInt32Max = std::numeric_limits<int32_t>::max();

KernelDesc KernelOf(TaskKind kind) {
  KernelDesc kernel;
  kernel.name = "work";
  kernel.code = CodeOfKind(kind);
  return kernel;
}

TaskSpec KernelTask(int64_t block_tasks = 64) {
  TaskSpec spec;
  spec.work.block_tasks = block_tasks;
  return spec;
}

TaskSpec OpaqueTask() {
  TaskSpec spec;
  spec.work.kind = TaskKind::kOpaque;
  spec.work.host_function = [](void*, void*) {};
  return spec;
}

TaskSpec Copy(int64_t bytes, CopyDirection direction = CopyDirection::kHostToDevice) {
  TaskSpec spec;
  spec.work.kind = TaskKind::kMemcpy;
  spec.work.copy.bytes = bytes;
  spec.work.copy.direction = direction;
  return spec;
}

bool Accepts(const TaskSpec& spec) {
  const KernelDesc kernel = KernelOf(TaskKind::kKernel);
  return CheckSpec(spec, &kernel).ok();
}

TEST(SubmitCheckTest, AQueryArrivesNotFarAheadOfNow) {
  constexpr TimeNs kNowNs = 1000;
  for (const TimeNs arrival_ns : {TimeNs{0}, kNowNs, kNowNs + kMaxArrivalAheadNs}) {
    EXPECT_TRUE(CheckArrival("A task", arrival_ns, kNowNs).ok()) << arrival_ns;
  }
  for (const TimeNs arrival_ns : {TimeNs{-1}, kNowNs + kMaxArrivalAheadNs + 1, kNever - 1}) {
    EXPECT_EQ(CheckArrival("A task", arrival_ns, kNowNs).code(), absl::StatusCode::kInvalidArgument)
        << arrival_ns;
  }
}

// A CUDA device launches at most 2^31 - 1 block tasks.
TEST(SubmitCheckTest, ANextQueryIsStatedForLcWorkAndNotFarAhead) {
  TaskSpec spec = KernelTask();
  const auto code = [&](int64_t within_ns, AppClass app_class) {
    spec.next_within_ns = within_ns;
    return CheckNext(spec, app_class).code();
  };
  for (const int64_t within_ns : {kNoNextQuery, int64_t{0}, int64_t{1}, kMaxNextWithinNs}) {
    EXPECT_EQ(code(within_ns, AppClass::kLatencyCritical), absl::StatusCode::kOk) << within_ns;
  }
  for (const int64_t within_ns : {kNoNextQuery - 1, kMaxNextWithinNs + 1, kNever}) {
    EXPECT_EQ(code(within_ns, AppClass::kLatencyCritical), absl::StatusCode::kInvalidArgument)
        << within_ns;
  }
  EXPECT_EQ(code(0, AppClass::kBestEffort), absl::StatusCode::kOk);
  EXPECT_EQ(code(1, AppClass::kBestEffort), absl::StatusCode::kInvalidArgument);
}

TEST(SubmitCheckTest, AKernelHasNoMoreBlockTasksThanTheDeviceTakes) {
  const KernelDesc kernel = KernelOf(TaskKind::kKernel);
  EXPECT_TRUE(CheckSpec(KernelTask(kInt32Max), &kernel, kInt32Max).ok());
  const absl::Status beyond = CheckSpec(KernelTask(int64_t{kInt32Max} + 1), &kernel, kInt32Max);
  EXPECT_EQ(beyond.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(beyond.message().find("2147483648 block tasks"), std::string::npos) << beyond;
  EXPECT_NE(beyond.message().find("1 to 2147483647"), std::string::npos) << beyond;
}

TEST(SubmitCheckTest, AKernelHasABoundedNumberOfBlockTasks) {
  for (const int64_t blocks : {int64_t{1}, kMaxBlockTasks}) {
    EXPECT_TRUE(Accepts(KernelTask(blocks))) << blocks;
  }
  for (const int64_t blocks : {int64_t{0}, int64_t{-1}, kMaxBlockTasks + 1}) {
    EXPECT_FALSE(Accepts(KernelTask(blocks))) << blocks;
  }
}

TEST(SubmitCheckTest, AGridHasAsManyBlocksAsTheTask) {
  struct Case {
    std::array<int32_t, 3> grid;
    int64_t blocks;
    bool accepted;
  };
  for (const auto& [grid, blocks, accepted] : std::vector<Case>{
           {{0, 0, 0}, 64, true},
           {{64, 1, 1}, 64, true},
           {{4, 4, 4}, 64, true},
           {{2, 4, 8}, 64, true},
           {{2, 4, 8}, 63, false},
           {{64, 0, 0}, 64, false},
           {{0, 64, 1}, 64, false},
           {{0, 0, 64}, 64, false},
           {{64, 1, 0}, 64, false},
           {{64, 0, 1}, 64, false},
           {{0, 0, 1}, 64, false},
           {{0, 1, 0}, 64, false},
           {{-8, -8, 1}, 64, false},
           {{-1, 0, 0}, 64, false},
           {{0, -1, 0}, 64, false},
           {{0, 0, -1}, 64, false},
           {{kInt32Max, 1, 1}, kInt32Max, true},
           {{1, 65535, 1}, 65535, true},
           {{1, 65536, 1}, 65536, false},
           {{1, 1, 65535}, 65535, true},
           {{1, 1, 65536}, 65536, false},
       }) {
    TaskSpec spec = KernelTask(blocks);
    spec.work.grid = grid;
    EXPECT_EQ(Accepts(spec), accepted)
        << grid[0] << " x " << grid[1] << " x " << grid[2] << ", " << blocks << " blocks";
  }
}

TEST(SubmitCheckTest, ArgumentsAreBoundedAndPointedTo) {
  TaskSpec spec = KernelTask();
  const char argument = 0;
  for (const size_t bytes : {size_t{0}, size_t{1}, kMaxArgumentBytes, kMaxArgumentBytes + 1}) {
    spec.work.arguments_bytes = bytes;
    spec.work.arguments = &argument;
    EXPECT_EQ(Accepts(spec), bytes <= kMaxArgumentBytes) << bytes;
    spec.work.arguments = nullptr;
    EXPECT_EQ(Accepts(spec), bytes == 0) << bytes;
  }
}

TEST(SubmitCheckTest, ATaskWaitsForABoundedNumberOfTicketsAndEvents) {
  const std::vector<TicketId> tickets(kMaxWaitsPerTask + 1);
  const std::vector<void*> events(kMaxWaitsPerTask + 1);
  for (const size_t count : {size_t{kMaxWaitsPerTask}, tickets.size()}) {
    const bool accepted = count == size_t{kMaxWaitsPerTask};
    TaskSpec waits = KernelTask();
    waits.wait_tickets = absl::MakeConstSpan(tickets).first(count);
    EXPECT_EQ(Accepts(waits), accepted) << count;
    TaskSpec events_only = KernelTask();
    events_only.wait_events = absl::MakeConstSpan(events).first(count);
    EXPECT_EQ(Accepts(events_only), accepted) << count;
  }
}

TEST(SubmitCheckTest, TimesLieWithinTheirLimits) {
  for (const int64_t ns : {int64_t{0}, kMaxDurationNs, int64_t{-1}, kMaxDurationNs + 1}) {
    TaskSpec spec = OpaqueTask();
    spec.work.declared_ns = ns;
    EXPECT_EQ(Accepts(spec), ns >= 0 && ns <= kMaxDurationNs) << ns;
  }
}

TEST(SubmitCheckTest, AKernelIsSubmittedAsTheKindThatItIs) {
  for (const TaskKind registered : {TaskKind::kKernel, TaskKind::kGraph, TaskKind::kLibrary}) {
    const KernelDesc kernel = KernelOf(registered);
    for (const TaskKind submitted : {TaskKind::kKernel, TaskKind::kGraph, TaskKind::kLibrary}) {
      TaskSpec spec = KernelTask();
      spec.work.kind = submitted;
      EXPECT_EQ(CheckSpec(spec, &kernel).ok(), registered == submitted);
      EXPECT_FALSE(CheckSpec(spec, nullptr).ok()) << "no kernel is registered";
    }
  }
}

TEST(SubmitCheckTest, TheOperandsOfALibraryCallAreOneStruct) {
  const LibraryArguments operands;
  TaskSpec spec = KernelTask();
  spec.work.kind = TaskKind::kLibrary;
  spec.work.arguments = &operands;
  KernelDesc call = KernelOf(TaskKind::kLibrary);
  const KernelDesc own = KernelOf(TaskKind::kLibrary);  // of the application's own
  call.library_call()->operation = LibraryOperation::kMatmul;
  for (const size_t bytes : {sizeof(operands) - 1, sizeof(operands), sizeof(operands) + 1}) {
    spec.work.arguments_bytes = bytes;
    EXPECT_EQ(CheckSpec(spec, &call).ok(), bytes == sizeof(operands)) << bytes;
    EXPECT_TRUE(CheckSpec(spec, &own).ok()) << bytes;
  }
}

TEST(SubmitCheckTest, ACopyHasADirectionAndABoundedSize) {
  for (const int64_t bytes : {int64_t{1}, kMaxCopyBytes}) EXPECT_TRUE(Accepts(Copy(bytes)));
  for (const int64_t bytes : {int64_t{0}, int64_t{-1}, kMaxCopyBytes + 1}) {
    EXPECT_FALSE(Accepts(Copy(bytes))) << bytes;
  }
  for (const CopyDirection direction :
       {CopyDirection::kHostToDevice, CopyDirection::kDeviceToHost, CopyDirection::kPeer}) {
    EXPECT_TRUE(Accepts(Copy(1, direction)));
  }
  EXPECT_FALSE(Accepts(Copy(1, CopyDirection::kNone)));
  const int beyond = static_cast<int>(CopyDirection::kPeer) + 1;
  EXPECT_FALSE(Accepts(Copy(1, static_cast<CopyDirection>(beyond))));
}

TEST(SubmitCheckTest, OpaqueWorkHasAFunction) {
  TaskSpec spec = OpaqueTask();
  EXPECT_TRUE(Accepts(spec));
  spec.work.host_function = nullptr;
  EXPECT_FALSE(Accepts(spec));
}

TEST(SubmitCheckTest, NoOtherKindOfTaskExists) {
  TaskSpec spec = KernelTask();
  spec.work.kind = static_cast<TaskKind>(static_cast<int>(TaskKind::kOpaque) + 1);
  EXPECT_FALSE(Accepts(spec));
}

TEST(SubmitCheckTest, AnInputSizeIsOfAQueryOfItsOwn) {
  const auto refusal = [](const TaskSpec& spec, AppClass app_class) {
    return std::string(CheckOwnInput(spec, app_class).message());
  };
  TaskSpec spec;
  EXPECT_EQ(refusal(spec, AppClass::kBestEffort), "");
  spec.input_size = kMaxInputSize;
  EXPECT_EQ(refusal(spec, AppClass::kLatencyCritical), "");
  EXPECT_THAT(refusal(spec, AppClass::kBestEffort), HasSubstr("best-effort work has no queries"));
  spec.query = QueryId{1};
  EXPECT_THAT(refusal(spec, AppClass::kLatencyCritical), HasSubstr("its query states that"));
  spec.query = QueryId();
  for (const double size : {-1.0, 2 * kMaxInputSize, std::nan("")}) {
    spec.input_size = size;
    EXPECT_THAT(refusal(spec, AppClass::kLatencyCritical), HasSubstr("must lie between 0 and"));
  }
}

}  // namespace
}  // namespace gpushare::core
