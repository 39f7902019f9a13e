// The text form of programs: what it says, that it survives a round trip, and its errors.

#include "src/sim/warp/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gpushare::sim::warp {
namespace {

using testing::HasSubstr;

constexpr char kHead[] = "warp-trace 1\nkernel k\n";

std::string Message(const std::string& text) {
  const auto program = ParseTrace(text, "k.trace");
  EXPECT_FALSE(program.ok()) << text;
  if (program.ok()) return "";
  EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message(program.status().message());
  EXPECT_EQ(message.back(), '.') << message;
  return message;
}

TEST(WarpTraceTest, EveryWordIsRead) {
  const auto program = ParseTrace(R"(warp-trace 1
kernel vadd   # a comment
warps 8
blocks 4
shared_bytes 2048
region a 1048576
region c 4096

loop 64
  load a warp=128 i=1024 lines=2 sectors=1 stride=256 offset=4 block=8 j=1 k=2
  loop 3
    float after=1,2 repeat=2
  end
  shared ways=1-4
  int latency=7 interval=3
  store c after=1
  barrier
end
)",
                                  "vadd.trace");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->name, "vadd");
  EXPECT_EQ(program->warps_per_block, 8);
  EXPECT_EQ(program->grid_blocks, 4);
  EXPECT_EQ(program->shared_bytes, 2048);
  ASSERT_EQ(program->ops.size(), 9u);
  const Op& load = program->ops[0];
  EXPECT_EQ(load.lines, 2);
  EXPECT_EQ(load.sectors, 1);
  EXPECT_EQ(load.line_stride, 256);
  EXPECT_EQ(load.offset, 4);
  EXPECT_EQ(load.per_block, 8);
  EXPECT_EQ(load.per_warp, 128);
  EXPECT_EQ(load.per_loop, (std::array<int64_t, 3>{1024, 1, 2}));
  EXPECT_EQ(program->ops[2].after, (std::array<uint8_t, 2>{1, 2}));
  EXPECT_EQ(program->ops[3].target, 1);
  EXPECT_EQ(program->ops[3].depth, 1);
  EXPECT_EQ(program->ops[4].ways_max, 4);
  EXPECT_EQ(program->ops[5].latency, 7);
  EXPECT_EQ(program->ops[5].interval, 3);
  EXPECT_EQ(program->ops[6].region, 1);
  EXPECT_EQ(InstructionsPerWarp(*program), 64 * (1 + 3 * 2 + 4));
  const std::string text = FormatTrace(*program);
  const auto again = ParseTrace(text, "again");
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << text;
  EXPECT_EQ(FormatTrace(*again), text);
  EXPECT_EQ(InstructionsPerWarp(*again), InstructionsPerWarp(*program));
}

TEST(WarpTraceTest, ErrorsNameTheLineTheWordAndTheLimit) {
  const std::string head = kHead;
  EXPECT_THAT(Message(""), HasSubstr("'warp-trace 1'"));
  EXPECT_THAT(Message("warp-trace 2\n"), HasSubstr("k.trace:1: The first line must be"));
  EXPECT_THAT(Message("warp-trace 1\nint\n"), HasSubstr("no line 'kernel NAME'"));
  EXPECT_THAT(Message(head), HasSubstr("The number of operations is 0"));
  EXPECT_THAT(Message(head + "fma\n"), HasSubstr("k.trace:3: The word 'fma' is unknown."));
  EXPECT_THAT(Message(head + "warps 33\n"), HasSubstr("'33', and it must be a number in 1 to 32"));
  EXPECT_THAT(Message(head + "warps\n"), HasSubstr("0 values"));
  EXPECT_THAT(Message(head + "load a\n"), HasSubstr("Region 'a' is unknown"));
  EXPECT_THAT(Message(head + "region a 1\n"), HasSubstr("in 128 to"));
  EXPECT_THAT(Message(head + "region a 128\nregion a 128\n"), HasSubstr("exists already"));
  EXPECT_THAT(Message(head + "int after=16\n"), HasSubstr("1 to 15"));
  EXPECT_THAT(Message(head + "int after=1,2,3\n"), HasSubstr("waits for 3 others"));
  EXPECT_THAT(Message(head + "int ways=2\n"), HasSubstr("The option 'ways' of 'int' is unknown"));
  EXPECT_THAT(Message(head + "shared ways=4-2\n"), HasSubstr("in 4 to 32"));
  EXPECT_THAT(Message(head + "barrier latency=2\n"), HasSubstr("'latency' of 'barrier'"));
  EXPECT_THAT(Message(head + "int repeat=4097\n"), HasSubstr("1 to 4096"));
  EXPECT_THAT(Message(head + "int repeat=4096\nint\n"), HasSubstr("more than 4096 operations"));
  EXPECT_THAT(Message(head + "end\n"), HasSubstr("no loop before it"));
  EXPECT_THAT(Message(head + "loop 2\nend\n"), HasSubstr("empty"));
  EXPECT_THAT(Message(head + "loop 2\nint\n"), HasSubstr("no 'end'"));
  EXPECT_THAT(Message(head + "loop 2\nloop 2\nloop 2\nloop 2\n"), HasSubstr("deeper than 3"));
  EXPECT_THAT(Message(head + "loop 9999999999\n"), HasSubstr("'9999999999'"));
  const std::string deep = "loop 1000000000\n";
  EXPECT_THAT(Message(head + deep + deep + "int\nend\nend\n"),
              HasSubstr("A warp executes more than"));
  EXPECT_THAT(Message(std::string((1 << 20) + 1, '#')), HasSubstr("1048577 bytes"));
}

TEST(WarpTraceTest, ALongOrBinaryWordIsCutInTheMessage) {
  const std::string message = Message(std::string(kHead) + std::string(100'000, '\x01') + "\n");
  EXPECT_LT(message.size(), 200u);
  EXPECT_THAT(message, HasSubstr("????"));
}

// Check is what stands between a program that code makes and the simulator.
TEST(WarpTraceTest, CheckRefusesLoopsThatOverlap) {
  auto program = ParseTrace(std::string(kHead) + "int repeat=4\n", "k");
  ASSERT_TRUE(program.ok());
  Op end;
  end.kind = OpKind::kLoopEnd;
  end.count = 2;
  end.target = 0;
  end.depth = 1;
  program->ops.insert(program->ops.begin() + 2, end);
  EXPECT_TRUE(Check(*program).ok());
  end.target = 1;  // begins in the first loop and ends behind it
  end.depth = 0;
  program->ops.push_back(end);
  EXPECT_THAT(std::string(Check(*program).message()), HasSubstr("overlap"));
}

}  // namespace
}  // namespace gpushare::sim::warp
