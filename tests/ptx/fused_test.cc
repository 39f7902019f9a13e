// What fused twins keep and rename, where their parts lie, and which pairs are refused.

#include "src/ptx/fused.h"

#include <gpushare/device/launch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/ptx/twin.h"
#include "tests/ptx/fused_kernels.h"
#include "tests/ptx/kernels.h"
#include "tests/ptx/worker_structure.h"

namespace gpushare::ptx {
namespace {

constexpr std::array<uint32_t, 3> kWarp = {32, 1, 1};

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

size_t Count(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// A module with variables outside of its one kernel, which has `threads` threads.
std::string Module(std::string_view outside, std::string_view body, uint32_t threads = 64,
                   std::string_view head = ".version 8.0\n.target sm_90a\n") {
  return std::string(head) + ".address_size 64\n" + std::string(outside) +
         "\n.visible .entry m(.param .u64 out)\n.reqntid " + std::to_string(threads) +
         "\n{\n.reg .pred %p<5>;\n.reg .b16 %h<5>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n" +
         std::string(body) + "\nret;\n}\n";
}

TEST(Fused, TheEntryTakesTheFirstKernelsHeaderAndParametersFirst) {
  const std::string sum = KernelText(kBlockSum, ".reqntid 32\n");
  const FusedTwin twin = Fuse({.text = kTurnRound, .dynamic_shared_bytes = 256}, {.text = sum});
  ASSERT_TRUE(twin.ok()) << twin.refusal.message;
  EXPECT_EQ(twin.entry, "turn_with_k_gpushare_fused");
  EXPECT_EQ(Entries(twin.text), std::vector<std::string>{twin.entry});
  std::vector<size_t> places;
  for (const char* const name :
       {"gpushare_launch_0[128]", "gpushare_parameters_0[12]", "gpushare_launch_1[128]",
        "gpushare_parameters_1[8]", ".reqntid 96\n"}) {
    places.push_back(twin.text.find(name));
    EXPECT_NE(places.back(), std::string::npos) << name;
  }
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
  EXPECT_TRUE(Has(twin.text, "ld.param.u32 %r1, [gpushare_parameters_0+8];"));
  EXPECT_EQ(twin.tensor_parameters_bytes, 12u);
  EXPECT_EQ(twin.cuda_parameters_bytes, 8u);
  // The newer version; what is dropped, and what stands once.
  EXPECT_TRUE(Has(twin.text, ".version 8.6\n.target sm_90a\n"));
  EXPECT_FALSE(Has(twin.text, "words"));
  EXPECT_EQ(Count(twin.text, ".shared .align"), 1u);
}

TEST(Fused, TheSameTextsGiveTheSameModule) {
  const std::string text = KernelText(kEarlyReturn);
  const FusedPart part = {.text = text, .block = kWarp, .copies = 2};
  const FusedTwin twin = Fuse(part, part);
  ASSERT_TRUE(twin.ok()) << twin.refusal.message;
  EXPECT_EQ(twin.text, Fuse(part, part).text);
}

TEST(Fused, BarriersGetDisjointNumbersAndCounts) {
  const FusedTwin twin = Fuse({.text = kTurnRound, .dynamic_shared_bytes = 256, .copies = 2},
                              {.text = kDeepBlock, .copies = 1});
  ASSERT_TRUE(twin.ok()) << twin.refusal.message;
  // Two copies with the barriers 0 and 2, then 0 of the loop and 7 of the body.
  EXPECT_EQ(twin.layout.barriers, 6u);
  for (const char* const barrier :
       {"bar.sync 0, 64;", "bar.sync 1, 64;", "bar.sync 2, 64;", "bar.sync 3, 64;",
        "bar.sync 4, 64;", "barrier.sync 5, 64;", "bar.red.or.pred %p2, 5, 64, %p1;"}) {
    EXPECT_TRUE(Has(twin.text, barrier)) << barrier;
  }
}

// A launch with a host word in either header has a leader, and one worker less of both parts.
TEST(Fused, EitherHostWordMakesTheFirstBlockTheLeader) {
  const std::string sum = KernelText(kBlockSum, ".reqntid 32\n");
  const FusedTwin twin = Fuse({.text = sum}, {.text = sum});
  const std::string offset = std::to_string(offsetof(gpushare_worker_launch, host_eviction_word));
  for (const char* const own : {"0", "1"}) {
    const std::string other = own[0] == '0' ? "1" : "0";
    EXPECT_TRUE(Has(twin.text, "\tld.param.u64 %gpushare_d0, [gpushare_launch_" + std::string(own) +
                                   "+" + offset + "];\n\tld.param.u64 %gpushare_d1, " +
                                   "[gpushare_launch_" + other + "+" + offset +
                                   "];\n\tor.b64 %gpushare_d0, %gpushare_d0, %gpushare_d1;"));
  }
}

TEST(Fused, SharedMemoryIsCarvedWithAlignment) {
  const std::string sum = KernelText(kBlockSum, ".reqntid 32\n");
  const FusedTwin both = Fuse({.text = kTurnRound, .dynamic_shared_bytes = 260}, {.text = sum});
  ASSERT_TRUE(both.ok()) << both.refusal.message;
  // 260 bytes of dynamic memory, 16 at the next 16, 48 at the next 32: 368; then 256 and 48 bytes.
  EXPECT_TRUE(both.layout.dynamic_shared);
  EXPECT_EQ(both.layout.shared_align, 1024u);
  EXPECT_EQ(both.layout.tensor.shared_stride, 1024u);
  EXPECT_EQ(both.layout.cuda.shared_begin, 1024u);
  EXPECT_EQ(both.layout.shared_bytes, 1024u + 384u);
  EXPECT_TRUE(Has(both.text, "[gpushare_memory+272+4];"));  // sum+4
  // An array that asks for more than 1,024.
  std::string aligned(kTurnRound);
  aligned.replace(aligned.find(".align 16 .b8 words"), 9, ".align 4096");
  const FusedTwin far = Fuse({.text = sum}, {.text = aligned, .dynamic_shared_bytes = 256});
  ASSERT_TRUE(far.ok()) << far.refusal.message;
  EXPECT_EQ(far.layout.shared_align, 4096u);
  EXPECT_EQ(far.layout.cuda.shared_begin, 4096u);
  EXPECT_TRUE(Has(far.text, ".extern .shared .align 4096 .b8 gpushare_memory[];"));
  const FusedTwin small = Fuse({.text = sum}, {.text = sum, .copies = 2});
  ASSERT_TRUE(small.ok()) << small.refusal.message;
  EXPECT_FALSE(small.layout.dynamic_shared);
  EXPECT_TRUE(Has(small.text, ".shared .align 128 .b8 gpushare_memory[1152];"));
  EXPECT_TRUE(Has(small.text, "mov.u32 %r5, gpushare_memory+768;"));
}

TEST(Fused, MuchStaticMemoryBecomesDynamic) {
  const std::string text = Module(".shared .align 8 .b8 room[40000];", "mov.u32 %r1, room;");
  const FusedTwin twin = Fuse({.text = text}, {.text = text});
  ASSERT_TRUE(twin.ok()) << twin.refusal.message;
  EXPECT_TRUE(twin.layout.dynamic_shared);
  EXPECT_GT(twin.layout.shared_bytes, 80000u);
}

TEST(Fused, PartsWithWgmmaStartAtAWarpgroup) {
  const std::string one = KernelText(kBlockSum, ".reqntid 32\n");
  const std::string groups = Module("", "wgmma.fence.sync.aligned;", 128);
  const FusedTwin twin = Fuse({.text = one}, {.text = groups, .copies = 2});
  ASSERT_TRUE(twin.ok()) << twin.refusal.message;
  EXPECT_EQ(twin.layout.cuda.first_thread, 128u);
  EXPECT_EQ(twin.layout.threads, 384u);
  // Threads 32 to 127 are nobody's.
  EXPECT_TRUE(Has(twin.text, "setp.ge.u32 %gpushare_p1, %gpushare_r0, 32;\n\t@%gpushare_p1 ret;"));
}

TEST(Fused, RegistersMoveWhereTheyAddUp) {
  const std::string groups = Module("", "wgmma.fence.sync.aligned;", 128);
  const FusedPart gemm = {.text = groups, .copies = 2, .registers = 200};
  const FusedPart other = {.text = groups, .registers = 50};
  const FusedTwin twin = Fuse(gemm, other, {.move_registers = true});
  ASSERT_TRUE(twin.ok()) << twin.refusal.message;
  EXPECT_EQ(twin.layout.registers, 168u);         // 65536 / 384, rounded down to 8
  EXPECT_EQ(twin.layout.cuda.registers, 56u);     // 50, rounded up
  EXPECT_EQ(twin.layout.tensor.registers, 224u);  // (168 * 384 - 56 * 128) / 256
  EXPECT_TRUE(Has(twin.text, ".maxnreg 168\n"));
  EXPECT_EQ(Count(twin.text, "setmaxnreg.inc.sync.aligned.u32 224;"), 2u);
  EXPECT_EQ(Count(twin.text, "setmaxnreg.dec.sync.aligned.u32 56;"), 1u);
  const FusedTwin plain = Fuse(gemm, other, {.registers_max = 120});
  EXPECT_TRUE(Has(plain.text, ".maxnreg 120\n"));
}

// The text of each worker: up to the label of the next one.
std::vector<std::string> Workers(const FusedTwin& twin) {
  std::vector<std::string> workers;
  size_t begin = twin.text.find("mov.u32 %gpushare_thread, %tid.x;");
  for (uint32_t next = 1; begin != std::string::npos; ++next) {
    const std::string label = "$gpushare_worker_" + std::to_string(next) + ":";
    const size_t end = twin.text.find(label, begin);
    workers.push_back(twin.text.substr(begin, end - begin));
    begin = end;
  }
  return workers;
}

// Two copies of each part, padding up to warpgroups, and registers that move.
TEST(Fused, EachScopeIsBuiltLikeAWorkerTwin) {
  struct Row {
    std::string_view body;
    uint32_t early_exits;
  };
  for (const Row& row : {Row{kThreeDimensions, 0}, Row{kEarlyReturn, 3}}) {
    const std::string text = KernelText(row.body);
    const FusedTwin twin = Fuse({.text = text, .block = kWarp, .copies = 2, .registers = 46},
                                {.text = text, .block = kWarp, .copies = 2, .registers = 32},
                                {.move_registers = true, .blocks_per_sm = 3});
    ASSERT_TRUE(twin.ok()) << twin.refusal.message;
    EXPECT_EQ(twin.layout.tensor.stride, 128u);
    const std::vector<std::string> workers = Workers(twin);
    ASSERT_EQ(workers.size(), 4u);
    for (const std::string& worker : workers) {
      EXPECT_EQ(Count(worker, "setmaxnreg."), 1u);
      EXPECT_EQ(Count(worker, "$gpushare_head:"), 1u);
      ExpectTheClaimIsEnteredAtItsHead(worker);
      ExpectEachExitHasADrain(worker, row.early_exits);
      // Each barrier of the body reads its result, without which the drains would never get theirs.
      const size_t joined = row.early_exits > 0 ? 3 : 0;
      EXPECT_EQ(Count(worker, "barrier.red.or.pred %gpushare_p3"), joined);
      EXPECT_EQ(Count(worker, ", %gpushare_p2;\n\t@!%gpushare_p3 bra $gpushare_done;"), joined);
    }
  }
}

TEST(Fused, ReadOnlyVariablesComeAlongUnderNewNames) {
  constexpr std::string_view kOutside =
      ".extern .func __assertfail\n(\n.param .b64 a\n)\n;\n"
      ".global .align 1 .b8 _$_text[3] = {65, 66, 0}, %more = 7;\n"
      ".const .b32 __cudart_odd = 7, __cudart_even = 8;\n"
      ".global .align 4 .b8 unused[4];\n";
  constexpr std::string_view kBody =
      "mov.u64 %rd1, _$_text;\ncvta.global.u64 %rd2, %rd1;\nld.const.b32 %r1, [__cudart_odd];\n"
      "{\n.param .b64 a;\nst.param.b64 [a], %rd2;\ncall.uni __assertfail, (a);\n}";
  const std::string text = Module(kOutside, kBody);
  const FusedTwin twin = Fuse({.text = text}, {.text = text});
  ASSERT_TRUE(twin.ok()) << twin.refusal.message;
  EXPECT_TRUE(Has(twin.text, "b8 gpushare_0__$_text[3] = {65, 66, 0}, %gpushare_0_more = 7;"));
  EXPECT_TRUE(Has(twin.text, "mov.u64 %rd1, gpushare_1__$_text;"));
  EXPECT_TRUE(
      Has(twin.text, ".const .b32 gpushare_1___cudart_odd = 7, gpushare_1___cudart_even = 8;"));
  EXPECT_EQ(Count(twin.text, ".extern .func __assertfail"), 1u);
  EXPECT_FALSE(Has(twin.text, "unused"));
}

struct Refused {
  std::string text;
  Reason reason;
  std::string_view says;
};

TEST(Fused, KernelsThatCannotBeAPartAreRefusedByName) {
  const std::string other = KernelText(kBlockSum, ".reqntid 32\n");
  const std::vector<Refused> rows = {
      {KernelText("ret;"), Reason::kBlockShape, "none is stated"},
      {Module("", "", 48), Reason::kBlockShape, "48 threads is not made of whole warps"},
      {Module("", "", 2048), Reason::kBlockShape, "2048 threads"},
      {Module("", "mov.u32 %r1, %nwarpid;"), Reason::kSpecialRegister, "'%nwarpid'"},
      {Module("", "mov.u16 %h1, %tid.x;"), Reason::kSpecialRegister, "register of 32 bits"},
      {Module("", "mov.u32 %r1, 3;\nbar.sync %r1;"), Reason::kPartialBarrier, "not a constant"},
      {Module("", "bar.sync 16;"), Reason::kBarriers, "barrier 16"},
      {Module(".shared .b32 a;", "add.u32 %r1, a, 4;"), Reason::kSharedMemory, "'a' in 'add.u32'"},
      {std::string(kTurnRound), Reason::kSharedMemory,
       "Line 18 has 'words', dynamic shared memory, and 0 bytes of it are stated; state the bytes"},
      {Module(".global .b32 v;", "ld.global.b32 %r1, [v];"), Reason::kVariable, "no value"},
      {Module(".visible .global .b32 v = 1;", "ld.global.b32 %r1, [v];"), Reason::kVariable,
       "other code"},
      {Module(".extern .global .b32 v;", "ld.global.b32 %r1, [v];"), Reason::kVariable,
       "other code"},
      {Module(".global .b32 v = 1;", "st.global.b32 [v], %r1;"), Reason::kVariable, "may write"},
      {Module(".global .b32 v = 1;",
              "mov.u64 %rd1, v;\nadd.u64 %rd2, %rd1, 4;\natom.global.add.u32 "
              "%r1, [%rd2], 1;"),
       Reason::kVariable, "may write"},
      {Module(".global .b32 v = 1;", "mov.u64 %rd1, v;\nst.global.b64 [%rd3], %rd1;"),
       Reason::kVariable, "may write"},
      // `static __constant__`, `__managed__` and `__device__`: no linkage, and the host writes
      // them.
      {Module(".const .align 4 .u32 c = 5;", "ld.const.u32 %r1, [c];"), Reason::kVariable,
       "Line 12 uses the variable 'c', whose value it reads in 'ld.const.u32'"},
      {Module(".global .attribute(.managed) .align 4 .u32 m = 7;", "ld.global.u32 %r1, [m];"),
       Reason::kVariable, "'m', which has an .attribute"},
      {Module(".global .align 4 .u32 d = 9;",
              "mov.u64 %rd1, d;\ncvta.global.u64 %rd2, %rd1;\nld.u32 %r1, [%rd2+0];"),
       Reason::kVariable, "the variable 'd', whose value it reads in 'ld.u32'"},
      // An address that may be of either.
      {Module(".global .b32 __cudart_t = 1;\n.global .b32 d = 9;",
              "mov.u64 %rd1, d;\nmov.u64 %rd2, __cudart_t;\nselp.b64 %rd2, %rd2, %rd1, %p1;\n"
              "ld.global.u32 %r1, [%rd2];"),
       Reason::kVariable, "the variable 'd', whose value it reads in 'ld.global.u32'"},
      {Module(".global .b32 __cudart_t = 1;", "st.global.b32 [__cudart_t], %r1;"),
       Reason::kVariable, "may write"},
      {Module(".global .b32 v = 1;\n.global .u64 w = v;", "ld.global.b64 %rd1, [w];"),
       Reason::kVariable, "its own module"},
      {Module("", "mov.u32 %r1, %smid;"), Reason::kSpecialRegister, "'%smid'"},
      {Module("", "setmaxnreg.dec.sync.aligned.u32 40;"), Reason::kSetMaxNReg, "setmaxnreg"},
      {Module("", "frob.b32 %r1;"), Reason::kUnknownOpcode, "'frob.b32'"},
      {Module("", ".reg .b32 gpushare_x;"), Reason::kAlreadyTwin, "only twins have"},
  };
  for (const Refused& row : rows) {
    SCOPED_TRACE(row.says);
    const FusedTwin first = Fuse({.text = row.text}, {.text = other});
    EXPECT_STREQ(Name(first.refusal.reason), Name(row.reason)) << first.refusal.message;
    EXPECT_TRUE(first.refused_part == RefusedPart::kTensor);
    EXPECT_TRUE(first.text.empty());
    const FusedTwin second = Fuse({.text = other}, {.text = row.text});
    EXPECT_TRUE(second.refused_part == RefusedPart::kCuda);
    EXPECT_TRUE(Has(second.refusal.message, "The second kernel cannot be fused. "));
    EXPECT_TRUE(Has(second.refusal.message, row.says)) << second.refusal.message;
    EXPECT_FALSE(CheckFused({.text = row.text}, {.text = other}).ok());
  }
  // Dynamic memory that the module declares and the kernel does not use needs no bytes.
  const std::string declared = Module(".extern .shared .align 16 .b8 words[];", "");
  EXPECT_TRUE(Fuse({.text = declared}, {.text = other}).ok());
  const FusedPart stated = {.text = other, .block = {64, 1, 1}};
  EXPECT_TRUE(Has(Fuse(stated, stated).refusal.message, "requires blocks of 32x1x1"));
  const FusedPart partly = {.text = other, .block = {32, 0, 0}};
  EXPECT_TRUE(Has(Fuse(partly, partly).refusal.message, "32x0x0 threads is stated; state all"));
  // The product of these is 0 in 64 bits.
  const std::string open = KernelText("ret;");
  const FusedPart wide = {.text = open, .block = {1u << 31, 1u << 31, 4}};
  EXPECT_TRUE(Has(Fuse(wide, wide).refusal.message, "is not made of whole warps, up to 1,024"));
}

TEST(Fused, PairsBeyondALimitAreRefusedWithFigureAndLimit) {
  const std::string sum = KernelText(kBlockSum, ".reqntid 32\n");
  const std::string large = Module("", "", 768);
  const std::string newer = Module("", "", 64, ".version 9.0\n.target sm_100\n");
  const std::string older = Module("", "", 64, ".version 7.8\n.target sm_80\n");
  const std::string many = Module("", "", 64,
                                  ".version 8.0\n.target sm_90a\n.address_size 64\n"
                                  ".visible .entry p(.param .b8 x[4200])\n.reqntid 32\n{ ret; }\n");
  const FusedPart part = {.text = sum, .registers = 64};
  struct Pair {
    FusedPart tensor;
    FusedPart cuda;
    FuseOptions options;
    Reason reason;
    std::string_view says;
  };
  const std::vector<Pair> rows = {
      {{.text = large},
       {.text = large},
       {},
       Reason::kThreads,
       "1536 threads, and a block has at "
       "most 1024"},
      {{.text = sum, .copies = 9},
       {.text = sum, .copies = 8},
       {},
       Reason::kBarriers,
       "17 named barriers, and a block has at most 16"},
      {{.text = sum, .dynamic_shared_bytes = 150000},
       {.text = sum, .dynamic_shared_bytes = 90000},
       {},
       Reason::kSharedMemory,
       "and a block has at most 232448"},
      {{.text = sum, .dynamic_shared_bytes = 240000},
       part,
       {},
       Reason::kSharedMemory,
       "and a block has at most 232448"},
      {{.text = sum, .copies = 0}, part, {}, Reason::kThreads, "0 blocks of 32"},
      {{.text = sum, .copies = 2000000000}, part, {}, Reason::kThreads, "2000000000 blocks of 32"},
      {part, {.text = newer}, {}, Reason::kVersion, "sm_90a and sm_100"},
      {{.text = older, .registers = 200},
       {.text = older, .registers = 32},
       {.move_registers = true},
       Reason::kVersion,
       "needs target sm_90a"},
      {part, {.text = sum}, {.move_registers = true}, Reason::kRegisters, "one is not stated"},
      {part,
       part,
       {.move_registers = true},
       Reason::kRegisters,
       "a thread has 248 at launch, and the parts need 64 and 64"},
      {part,
       part,
       {.move_registers = true, .blocks_per_sm = 5},
       Reason::kRegisters,
       "With 48 registers at launch and 64 for the second part"},
      {{.text = many, .entry = "p"}, part, {}, Reason::kParameters, "the limit is 4352"},
      {{.text = sum, .registers = 16'777'216},
       part,
       {},
       Reason::kRegisters,
       "The first kernel cannot be fused. 16777216 registers a thread are stated, and a thread has "
       "at most 255"},
      {part,
       {.text = sum, .registers = 0xFFFFFFFF},
       {.move_registers = true},
       Reason::kRegisters,
       "The second kernel cannot be fused. 4294967295 registers"},
      {part,
       part,
       {.move_registers = true, .blocks_per_sm = 16'777'216},
       Reason::kRegisters,
       "16777216 fused blocks an SM are asked for, and an SM holds at most 32"},
      {part, part, {.registers_max = 256}, Reason::kRegisters, "256 registers a thread"},
  };
  for (const Pair& row : rows) {
    SCOPED_TRACE(row.says);
    const FusedTwin twin = Fuse(row.tensor, row.cuda, row.options);
    EXPECT_STREQ(Name(twin.refusal.reason), Name(row.reason)) << twin.refusal.message;
    EXPECT_TRUE(Has(twin.refusal.message, row.says)) << twin.refusal.message;
  }
  const FusedTwin mixed = Fuse(part, {.text = older});
  EXPECT_TRUE(Has(mixed.text, ".version 8.0\n.target sm_90a\n"));
}

TEST(Fused, FeasibleRatiosKeepTheLimitsOfAnSm) {
  const PartNeeds gemm = {.threads = 128,
                          .warpgroups = true,
                          .barriers = 1,
                          .shared_bytes = 60000,
                          .shared_align = 1024,
                          .dynamic_shared = true,
                          .registers = 168};
  const PartNeeds norm = {.threads = 256, .barriers = 2, .shared_bytes = 2000, .registers = 40};
  const std::vector<FusedRatio> ratios = FeasibleRatios(gemm, norm, {}, true);
  ASSERT_EQ(ratios.size(), 8u);
  EXPECT_EQ(ratios[0].tensor_copies, 1u);
  EXPECT_EQ(ratios[0].cuda_copies, 1u);
  EXPECT_EQ(ratios[0].threads, 384u);
  EXPECT_EQ(ratios[0].barriers, 3u);
  EXPECT_EQ(ratios[0].registers, 168u);
  EXPECT_EQ(ratios[0].blocks_per_sm, 1u);
  std::vector<std::array<uint32_t, 2>> pairs;
  for (const FusedRatio& ratio : ratios) {
    EXPECT_LE(ratio.threads * ratio.registers, 65536u);
    EXPECT_LE(ratio.shared_bytes, 227u * 1024u);
    // 168 registers let 390 threads into an SM: one block of each. The others get what is there.
    EXPECT_EQ(ratio.capped || ratio.move_registers, ratio.threads > 384) << ratio.threads;
    // Of 768 threads two GEMMs could get 160 each, of 512 threads 216, and they need 168.
    const bool moves = ratio.threads > 384 && (ratio.tensor_copies == 1 || ratio.threads == 512);
    EXPECT_EQ(ratio.move_registers, moves) << ratio.threads;
    EXPECT_GE(ratio.blocks_per_sm, 1u);
    pairs.push_back({ratio.tensor_copies, ratio.cuda_copies});
  }
  EXPECT_EQ(pairs, (std::vector<std::array<uint32_t, 2>>{
                       {1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2}, {2, 3}, {3, 1}, {3, 2}}));
  EXPECT_EQ(ratios[1].registers, 96u);  // of 640 threads
  // Elsewhere than on sm_90a none can move.
  for (const FusedRatio& ratio : FeasibleRatios(gemm, norm)) {
    EXPECT_FALSE(ratio.move_registers);
    EXPECT_EQ(ratio.capped, ratio.threads > 384) << ratio.threads;
  }
  EXPECT_EQ(ratios[2].registers, 72u);  // of 896
  PartNeeds thin = gemm;
  thin.registers = 64;
  EXPECT_EQ(FeasibleRatios(thin, norm).size(), 8u);
  for (const FusedRatio& ratio : FeasibleRatios(thin, norm)) EXPECT_FALSE(ratio.capped);
  EXPECT_TRUE(FeasibleRatios({.threads = 48}, norm).empty());
}

TEST(Fused, CappedRatiosHaveAFloorOfRegisters) {
  PartNeeds thin = {.threads = 256, .registers = 168};
  const PartNeeds warp = {.threads = 32, .registers = 32};
  // 9 warps take the registers of 12, as ptxas counts them: 168 and not 224 a thread.
  EXPECT_EQ(FeasibleRatios(thin, warp)[0].registers, 168u);
  EXPECT_FALSE(FeasibleRatios(thin, warp)[0].capped);
  thin.registers = 176;
  // With the warp padded up to a warpgroup: 168 at launch, 32 for it and 236 for the other.
  const FusedRatio moved = FeasibleRatios(thin, warp, {}, true)[0];
  EXPECT_EQ(moved.registers, 168u);
  EXPECT_EQ(moved.threads, 384u);
  EXPECT_TRUE(moved.move_registers);
  EXPECT_FALSE(moved.capped);
  EXPECT_TRUE(FeasibleRatios(thin, warp)[0].capped);
  EXPECT_EQ(FeasibleRatios(thin, warp)[0].threads, 288u);
  // The GEMM and layer norm that an SM has no registers for, at 255 a thread each.
  const PartNeeds wide = {.threads = 256, .registers = 255};
  ASSERT_FALSE(FeasibleRatios(wide, wide).empty());
  EXPECT_EQ(FeasibleRatios(wide, wide)[0].registers, 128u);
  EXPECT_TRUE(FeasibleRatios(wide, wide)[0].capped);
  // An SM of half the registers has 64 for a thread of 512, and 40 for one of 768.
  const std::vector<FusedRatio> half = FeasibleRatios(wide, wide, {.registers = 32768});
  ASSERT_EQ(half.size(), 1u);
  EXPECT_EQ(half[0].registers, 64u);
  // Parts that need fewer are not capped.
  const PartNeeds slim = {.threads = 256, .registers = 32};
  EXPECT_FALSE(FeasibleRatios(slim, slim, {}, true)[0].move_registers);
  EXPECT_EQ(FeasibleRatios(slim, slim, {.registers = 32768}).size(), 6u);
  // Without both counts nothing is capped.
  EXPECT_EQ(FeasibleRatios(wide, {.threads = 256})[0].registers, 0u);
  EXPECT_FALSE(FeasibleRatios(wide, {.threads = 256})[0].capped);
}

TEST(Fused, LayoutsOfAbsurdNumbersAreRefused) {
  PartNeeds thin = {.threads = 256};
  const PartNeeds warp = {.threads = 32, .registers = 32};
  // Numbers whose products leave 32 bits.
  for (const uint32_t registers : {256u, 16'777'216u, 0xFFFFFFFFu}) {
    thin.registers = registers;
    EXPECT_TRUE(FeasibleRatios(thin, warp).empty()) << registers;
    EXPECT_TRUE(FeasibleRatios(warp, thin).empty()) << registers;
  }
  const PartNeeds crowded = {.threads = 32, .barriers = 0x80000000};
  FusedLayout layout;
  const LayoutChoices twice = {.tensor_copies = 2, .cuda_copies = 2};
  EXPECT_TRUE(LayOut(crowded, crowded, twice, {}, layout).reason == Reason::kBarriers);
}

TEST(Fused, EveryPrefixOfATextGetsAnAnswer) {
  const std::string sum = KernelText(kBlockSum, ".reqntid 32\n");
  for (size_t size = 0; size < kTurnRound.size() - 2; size += 7) {
    EXPECT_FALSE(Fuse({.text = kTurnRound.substr(0, size)}, {.text = sum}).ok()) << size;
  }
}

}  // namespace
}  // namespace gpushare::ptx
