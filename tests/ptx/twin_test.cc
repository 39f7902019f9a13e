// What twins keep of the text, and which kernels get none, each with its reason and line.

#include "src/ptx/twin.h"

#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "tests/ptx/kernels.h"
#include "tests/ptx/worker_structure.h"

namespace gpushare::ptx {
namespace {

constexpr uint32_t kFirstBodyLine = 16;  // of KernelText without directives

TEST(Twin, OriginalAloneComesBackByteForByte) {
  const std::string text = KernelText(kBlockSum, ".reqntid 32\n");
  EXPECT_EQ(Transform(text, "k", {}).text, text);
}

TEST(Twin, TwinsStandBehindTheUntouchedOriginal) {
  const std::string text = KernelText(kBlockSum, ".reqntid 32\n");
  const Twin twin = Transform(text, "", {.workers = true, .slice = true});
  ASSERT_TRUE(twin.ok()) << twin.refusal.message;
  EXPECT_TRUE(twin.text.starts_with(text.substr(0, text.size() - 1)));
  EXPECT_EQ(Entries(twin.text),
            (std::vector<std::string>{"k", "k_gpushare_workers", "k_gpushare_slice"}));
  const Twin alone = Transform(text, "", {.original = false, .workers = true});
  EXPECT_EQ(Entries(alone.text), std::vector<std::string>{"k_gpushare_workers"});
}

TEST(Twin, FactsSayWhatALaunchNeeds) {
  const Checked checked = Check(KernelText(kThreeDimensions, ".maxntid 64, 2\n"), "k");
  ASSERT_TRUE(checked.ok()) << checked.refusal.message;
  ASSERT_EQ(checked.facts.parameters.size(), 1u);
  EXPECT_EQ(checked.facts.parameters[0].size_bytes, 8u);
  EXPECT_EQ(checked.facts.block_max, (std::array<uint32_t, 3>{64, 2, 1}));
  EXPECT_EQ(checked.facts.static_shared_bytes, 256u);
  EXPECT_TRUE(checked.facts.uses_grid_size);
  EXPECT_FALSE(checked.facts.early_exits);
}

TEST(Twin, EarlyExitsBeforeABarrierAreFound) {
  EXPECT_TRUE(Check(KernelText(kEarlyReturn), "k").facts.early_exits);
  // The last `ret` for some threads has no barrier behind it.
  EXPECT_FALSE(Check(KernelText(kBlockSum, ".reqntid 32\n"), "k").facts.early_exits);
}

TEST(Twin, TheFirstThreadEntersItsClaimAtTheHeadAlone) {
  for (const std::string_view body : {kThreeDimensions, kEarlyReturn}) {
    const Twin twin = Transform(KernelText(body), "k", {.original = false, .workers = true});
    ASSERT_TRUE(twin.ok()) << twin.refusal.message;
    ExpectTheClaimIsEnteredAtItsHead(twin.text);
  }
}

TEST(Twin, EachEarlyExitHasADrainOfItsOwn) {
  const Twin twin = Transform(KernelText(kEarlyReturn), "k", {.original = false, .workers = true});
  ASSERT_TRUE(twin.ok()) << twin.refusal.message;
  ExpectEachExitHasADrain(twin.text, 3);
  std::string exits;
  for (int i = 0; i < 65; ++i)
    exits += "\tsetp.eq.u32 %p1, %r2, " + std::to_string(i) + ";\n\t@%p1 ret;\n";
  const std::string many =
      std::string("\tmov.u32 %r2, %tid.x;\n") + exits + "\tbar.sync 0;\n\tret;\n";
  const Twin refused = Transform(KernelText(many), "k", {.workers = true});
  EXPECT_EQ(refused.refusal.reason, Reason::kTooLarge);
  EXPECT_NE(refused.refusal.message.find("66 exits"), std::string::npos) << refused.refusal.message;
}

TEST(Twin, DynamicSharedMemoryKeepsItsAlignment) {
  const std::string text =
      ".version 8.0\n.target sm_90a\n.address_size 64\n"
      ".extern .shared .align 16 .b8 dynamic[];\n.visible .entry k() { ret; }\n";
  const Twin twin = Transform(text, "k", {.workers = true});
  ASSERT_TRUE(twin.ok()) << twin.refusal.message;
  EXPECT_EQ(twin.facts.twin_shared_bytes, 1024u);
  EXPECT_NE(twin.text.find("gpushare_shared[1024]"), std::string::npos);
}

TEST(Twin, RegistersAreBoundedOnRequest) {
  const std::string text = KernelText(kBlockSum, ".reqntid 32\n");
  const Twin twin = Transform(text, "k", {.workers = true}, {.worker_registers_max = 40});
  EXPECT_NE(twin.text.find(".maxnreg 40"), std::string::npos);
}

struct Refused {
  std::string_view body;
  Reason reason;
  uint32_t line;  // of the body, from 1; 0: any
};

TEST(Twin, RefusalsNameTheReasonAndTheLine) {
  const std::vector<Refused> rows = {
      {"frobnicate.b32 %r1, %r2;\nret;", Reason::kUnknownOpcode, 1},
      {"mov.u32 %r1, %r99;\nret;", Reason::kUnknownSymbol, 1},
      {"bra $nowhere;\nret;", Reason::kUnknownSymbol, 1},
      {"mov.u32 %r1, %smid;\nret;", Reason::kSpecialRegister, 1},
      {"add.u32 %r1, %r1, 1;\nmov.u64 %rd2, %gridid;\nret;", Reason::kSpecialRegister, 2},
      {"mov.u32 %r1, %cluster_ctaid.x;\nret;", Reason::kCluster, 1},
      {"barrier.cluster.arrive;\nret;", Reason::kCluster, 1},
      {"setmaxnreg.dec.sync.aligned.u32 40;\nret;", Reason::kSetMaxNReg, 1},
      {"mbarrier.init.shared.b64 [area], 1;\nret;", Reason::kMbarrier, 1},
      {"call.uni vprintf, (%rd1);\nret;", Reason::kCall, 1},
      {"$spin:\nld.acquire.gpu.global.u32 %r1, [%rd1];\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra "
       "$spin;\nret;",
       Reason::kGridSync, 2},
      {"$spin:\natom.global.cas.b32 %r1, [%rd1], 0, 1;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra "
       "$spin;\nret;",
       Reason::kGridSync, 2},
      {"mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 3;\n@%p1 ret;\nbar.sync 1, 64;\nret;",
       Reason::kPartialBarrier, 4},
      {"mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 3;\n@%p1 ret;\nshfl.sync.bfly.b32 %r2, %r1, "
       "1, 31, -1;\nret;",
       Reason::kWarpSync, 4},
      // Reads that wait: uncached, an addition of 0, a bit that is set or cleared, by the index.
      {"$spin:\nld.global.cv.u32 %r1, [%rd1];\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra $spin;\nret;",
       Reason::kGridSync, 2},
      {"$spin:\natom.global.add.u32 %r1, [%rd1], 0;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra "
       "$spin;\nret;",
       Reason::kGridSync, 2},
      {"mov.u32 %r2, 0;\n$spin:\natom.add.u32 %r1, [%rd1], %r2;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 "
       "bra $spin;\nret;",
       Reason::kGridSync, 3},
      {"$spin:\natom.global.or.b32 %r1, [%rd1], 1;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra "
       "$spin;\nret;",
       Reason::kGridSync, 2},
      {"$spin:\natom.global.and.b32 %r1, [%rd1], -1;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra "
       "$spin;\nret;",
       Reason::kGridSync, 2},
      {"$spin:\nld.acquire.gpu.global.u32 %r1, [%rd1];\nbrx.idx %r1, $table;\n$table: "
       ".branchtargets $out, $spin;\n$out:\nret;",
       Reason::kGridSync, 2},
      // Arrivals that nobody waits for.
      {"bar.arrive 1, 64;\nret;", Reason::kPartialBarrier, 1},
      {"bar.arrive 1, 64;\nbar.sync 1, 64;\nret;", Reason::kPartialBarrier, 1},
      // One initialisation of four mbarriers; one of them is invalidated.
      {"mov.u32 %r1, 0;\n$each:\nmad.lo.u32 %r2, %r1, 8, %r3;\nmbarrier.init.shared.b64 [%r2], "
       "1;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 4;\n@%p1 bra $each;\n"
       "mbarrier.inval.shared.b64 [%r2];\nret;",
       Reason::kMbarrier, 4},
      // What is equal in all threads may not be told of memory that another block writes.
      {"ld.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 3;\n@%p1 ret;\nbar.sync 1, 64;\nret;",
       Reason::kPartialBarrier, 4},
      // Code behind .loc is not a place.
      {".loc 1 2 3 mov.u32 %r1, 7;\nret;", Reason::kSyntax, 1},
      {".loc 1 2;\nret;", Reason::kSyntax, 1},
      // Two places of one instruction.
      {"mov.u32 %ctaid.x, %ctaid.x;\nret;", Reason::kSpecialRegister, 1},
      {"cvt.u32.u32 %r1, %nctaid.x, %nctaid.y;\nret;", Reason::kSpecialRegister, 1},
      {"mov.u32 %r1, [%r2;\nret;", Reason::kSyntax, 0},
  };
  for (const Refused& row : rows) {
    SCOPED_TRACE(row.body);
    const std::string text = KernelText(row.body);
    const Refusal refusal = Check(text, "k").refusal;
    EXPECT_STREQ(Name(refusal.reason), Name(row.reason)) << refusal.message;
    if (row.line != 0) {
      EXPECT_EQ(refusal.line, kFirstBodyLine - 1 + row.line) << refusal.message;
    }
  }
}

TEST(Twin, NeighboursOfRefusalsAreAccepted) {
  const std::vector<std::string_view> bodies = {
      // An mbarrier that is invalidated on every way.
      "mbarrier.init.shared.b64 [area], 1;\nmbarrier.inval.shared.b64 [area];\nret;",
      // An update that is tried again, not a lock.
      "$again:\nld.global.u32 %r3, [%rd1];\nadd.u32 %r4, %r3, 1;\n"
      "atom.global.cas.b32 %r1, [%rd1], %r3, %r4;\nsetp.ne.u32 %p1, %r1, %r3;\n@%p1 bra "
      "$again;\nret;",
      // A counter that takes a step is not waited for.
      "$next:\natom.global.add.u32 %r1, [%rd1], 1;\nsetp.lt.u32 %p1, %r1, 9;\n@%p1 bra "
      "$next;\nret;",
      // Places of inlined functions.
      ".loc 1 2 3\nmov.u32 %r1, 7;\n.loc 1 4 5, function_name $L__info0, inlined_at 1 2 3\n"
      ".loc 1 4 5, function_name $L__info0+12, inlined_at 1 2 3\nret;",
      // A loaded value that nobody writes is the same in all threads.
      "ld.global.nc.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 3;\n@%p1 ret;\nbar.sync 1, "
      "64;\nret;",
      // Whole warps leave before the others shuffle.
      "mov.u32 %r1, %tid.x;\nsetp.ge.u32 %p1, %r1, 64;\n@%p1 ret;\nshfl.sync.bfly.b32 %r2, %r1, "
      "1, 31, -1;\nret;",
      // A number that ends with its point, as inline assembly has it.
      "setp.gt.f32 %p1, %r1, 15.;\nmul.f32 %r2, %r1, 0.5;\nret;",
      // Video instructions.
      "vabsdiff4.u32.u32.u32 %r1, %r2, %r3, %r4;\nvadd.u32.u32.u32 %r1, %r2, %r3;\nret;",
      // All threads of the block leave together.
      "mov.u32 %r1, %ctaid.x;\nsetp.ge.u32 %p1, %r1, 64;\n@%p1 ret;\nbar.sync 1, 64;\nret;",
  };
  for (const std::string_view body : bodies) {
    SCOPED_TRACE(body);
    const Checked checked = Check(KernelText(body), "k");
    EXPECT_TRUE(checked.ok()) << checked.refusal.message;
    EXPECT_FALSE(checked.facts.early_exits);
  }
}

TEST(Twin, AWarpIsPartOfARowOnlyWhereTheBlockIsFlat) {
  constexpr std::string_view kBody =
      "mov.u32 %r1, %tid.x;\nsetp.ge.u32 %p1, %r1, 32;\n@%p1 ret;\n"
      "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;\nret;";
  EXPECT_TRUE(Check(KernelText(kBody, ".reqntid 96\n"), "k").ok());
  for (const std::string_view shape : {".reqntid 48, 2, 1\n", ".maxntid 48, 2, 1\n"}) {
    EXPECT_EQ(Check(KernelText(kBody, shape), "k").refusal.reason, Reason::kWarpSync) << shape;
  }
}

// A block of 8 x 4 threads, whose rows have one warp together: what leaves by x leaves in part.
TEST(Twin, TheTextSaysWhetherItsTwinsHoldForFlatBlocksAlone) {
  constexpr std::string_view kByWarps =
      "mov.u32 %r1, %tid.x;\nsetp.ge.u32 %p1, %r1, 32;\n@%p1 ret;\n"
      "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;\nret;";
  EXPECT_TRUE(Check(KernelText(kByWarps), "k").facts.needs_flat_block);
  EXPECT_TRUE(Check(KernelText(kByWarps, ".maxntid 256\n"), "k").facts.needs_flat_block);
  EXPECT_FALSE(Check(KernelText(kByWarps, ".reqntid 96\n"), "k").facts.needs_flat_block);
  // Each thread by itself, and all threads in all shapes.
  EXPECT_FALSE(Check(KernelText(kThreeDimensions), "k").facts.needs_flat_block);
  EXPECT_FALSE(Check(KernelText(kBlockSum), "k").facts.needs_flat_block);
  EXPECT_FALSE(Check(KernelText(kEarlyReturn), "k").facts.needs_flat_block);
}

// Seconds of the processor that checking `body` takes, for a reason that is expected.
double CheckSeconds(const std::string& body, Reason reason) {
  const std::string text = KernelText(body);
  const std::clock_t begin = std::clock();
  EXPECT_EQ(Check(text, "k").refusal.reason, reason);
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// Texts whose analyses would grow with the square of their size take little longer than a plain
// text of 40,000 statements does, on any machine and under any sanitizer.
TEST(Twin, HostileTextsEndSoon) {
  std::string plain;
  for (int i = 0; i < 40'000; ++i) plain += "add.u32 %r1, %r1, 1;\n";
  const double plain_seconds = CheckSeconds(plain + "ret;", Reason::kNone);

  std::string registers;
  for (int i = 0; i < 2000; ++i) registers += "cvt.u32.u32 %nctaid.x, %nctaid.y;\n";
  std::string table = "$table: .branchtargets $l0";
  std::string branches;
  for (int i = 0; i < 4000; ++i) {
    const std::string label = "$l" + std::to_string(i);
    if (i > 0) table += ", " + label;
    branches += label + ":\nbrx.idx %r1, $table;\n";
  }
  std::string barriers;
  for (int i = 0; i < 40'000; ++i) barriers += "bar.sync 0;ret;\n";
  // The square of their sizes would be hundreds of times the plain text.
  const double bound_seconds = 20 * plain_seconds;
  EXPECT_LT(CheckSeconds(registers + "ret;", Reason::kSpecialRegister), bound_seconds);
  EXPECT_LT(CheckSeconds(table + ";\n" + branches + "ret;", Reason::kTooLarge), bound_seconds);
  EXPECT_LT(CheckSeconds(barriers, Reason::kTooLarge), bound_seconds);
}

// What is used up is said, not that the kernel waits.
TEST(Twin, ALargeLoopIsNotCalledAWait) {
  std::string body = ".reg .b32 %q<400>;\n$spin:\nld.acquire.gpu.global.u32 %q0, [%rd1];\n";
  for (int i = 398; i >= 0; --i) {
    body += "mov.u32 %q" + std::to_string(i + 1) + ", %q" + std::to_string(i) + ";\n";
  }
  for (int i = 0; i < 5'000; ++i) body += "mov.u32 %r3, %r4;\n";
  body += "setp.eq.u32 %p1, %q399, 0;\n@%p1 bra $spin;\nret;";
  EXPECT_EQ(Check(KernelText(body), "k").refusal.reason, Reason::kTooLarge);
}

TEST(Twin, ModulesAreRefusedAsAWhole) {
  EXPECT_EQ(Check("", "k").refusal.reason, Reason::kNoEntry);
  const std::string text = KernelText("ret;");
  EXPECT_EQ(Check(text, "other").refusal.reason, Reason::kNoEntry);
  const Twin twin = Transform(text, "k", {.workers = true});
  EXPECT_EQ(Check(twin.text, "").refusal.reason, Reason::kNoEntry);  // which of the two?
  EXPECT_EQ(Check(twin.text, "k").refusal.reason, Reason::kAlreadyTwin);
  std::string old = text;
  old.replace(old.find("8.0"), 3, "6.5");
  EXPECT_EQ(Check(old, "k").refusal.reason, Reason::kVersion);
}

TEST(Twin, EveryPrefixOfATextGetsAnAnswer) {
  const std::string text = KernelText(kEarlyReturn, ".maxntid 32, 1, 1\n");
  for (size_t size = 0; size < text.size() - 2; size += 7) {
    EXPECT_FALSE(Check(std::string_view(text).substr(0, size), "k").ok()) << size;
  }
}

}  // namespace
}  // namespace gpushare::ptx
