// Each reason of docs/ptx.md but syntax with the smallest text that gets it, its line and its
// sentence. The page shows the same texts and sentences, which is tested too.

#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "src/ptx/twin.h"
#include "tests/ptx/kernels.h"

namespace gpushare::ptx {
namespace {

constexpr uint32_t kFirstBodyLine = 16;  // of KernelText without directives

struct Refused {
  std::string name = {};  // of the test
  std::string_view body = {};
  Reason reason = Reason::kNone;
  uint32_t line = 0;             // of the text, from 1
  std::string_view says = {};    // the sentence, without "Line N" before it
  std::string_view page = {};    // what the page shows; empty: the line of the body
  std::string directives = {};   // of the entry
  std::string_view module = {};  // the whole text, in place of the body

  std::string Text() const {
    return module.empty() ? KernelText(body, directives) : std::string(module);
  }
  std::string Sentence() const {
    if (std::isupper(static_cast<unsigned char>(says.front())) != 0) return std::string(says);
    return "Line " + std::to_string(line) + " " + std::string(says);
  }
  std::string OnPage() const {
    if (!page.empty()) return std::string(page);
    std::istringstream lines{std::string(body)};
    std::string found;
    for (uint32_t i = kFirstBodyLine; i <= line; ++i) std::getline(lines, found);
    return found;
  }
};

std::ostream& operator<<(std::ostream& out, const Refused& row) { return out << row.name; }

// 65 exits in front of a barrier, and the last.
std::string ManyExits() {
  std::string body = "mov.u32 %r1, %tid.x;\n";
  for (int exit = 1; exit <= 65; ++exit) {
    body += "setp.eq.u32 %p1, %r1, " + std::to_string(exit) + ";\n@%p1 ret;\n";
  }
  return body + "bar.sync 0;\nret;";
}

// Rows with a body count its lines first; KernelText has 15 before it.
// Long because: it is a table.
std::vector<Refused> Rows() {
  constexpr uint32_t kBefore = kFirstBodyLine - 1;
  std::vector<Refused> rows = {
      {.name = "ClusterOfARegister",
       .body = "mov.u32 %r1, %cluster_ctaid.x;\nret;",
       .reason = Reason::kCluster,
       .line = 1,
       .says = "has '%cluster_ctaid.x'."},
      {.name = "ClusterOfABarrier",
       .body = "barrier.cluster.arrive;\nret;",
       .reason = Reason::kCluster,
       .line = 1,
       .says = "has 'barrier.cluster.arrive'."},
      {.name = "CooperativeLaunch",  // what grid.sync() is compiled to
       .body = "atom.add.release.gpu.global.u32 %r1, [%rd1], 1;\n$wait:\n"
               "ld.acquire.gpu.global.u32 %r2, [%rd1];\nxor.b32 %r3, %r2, %r1;\n"
               "setp.ge.s32 %p1, %r3, 0;\n@%p1 bra $wait;\nret;",
       .reason = Reason::kGridSync,
       .line = 3,
       .says = "reads global memory by 'ld.acquire.gpu.global.u32' in a loop that ends when "
               "another block has written it (line 21)."},
      {.name = "SpinOnAValue",
       .body = "$spin:\nld.volatile.global.u32 %r1, [%rd1];\nsetp.ne.u32 %p1, %r1, 0;\n"
               "@%p1 bra $spin;\nret;",
       .reason = Reason::kGridSync,
       .line = 2,
       .says = "reads global memory by 'ld.volatile.global.u32' in a loop that ends when another "
               "block has written it (line 19)."},
      {.name = "Lock",
       .body = "$spin:\natom.global.cas.b32 %r1, [%rd1], 0, 1;\nsetp.ne.u32 %p1, %r1, 0;\n"
               "@%p1 bra $spin;\nret;",
       .reason = Reason::kGridSync,
       .line = 2,
       .says = "reads global memory by 'atom.global.cas.b32' in a loop that ends when another "
               "block has written it (line 19)."},
      {.name = "SetMaxNReg",
       .body = "setmaxnreg.dec.sync.aligned.u32 40;\nret;",
       .reason = Reason::kSetMaxNReg,
       .line = 1,
       .says = "has 'setmaxnreg.dec.sync.aligned.u32'."},
      {.name = "MbarrierThatOutlivesItsBlockTask",
       .body = "mbarrier.init.shared.b64 [area], 1;\nret;",
       .reason = Reason::kMbarrier,
       .line = 1,
       .says = "initialises an mbarrier that is not invalidated on every way to the exit."},
      {.name = "BarrierOfSomeThreadsBehindAnExit",
       .body = "mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 3;\n@%p1 ret;\nbar.sync 1, 64;\nret;",
       .reason = Reason::kPartialBarrier,
       .line = 4,
       .says = "has a barrier for some of the threads in a kernel whose threads may end early."},
      {.name = "SeveralBarriersBehindAnExit",
       .body = "mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 3;\n@%p1 ret;\nbar.sync 0;\n"
               "bar.sync 1;\nret;",
       .reason = Reason::kPartialBarrier,
       .line = 5,
       .says = "has one of several barriers in a kernel whose threads may end early."},
      {.name = "ArrivalAtABarrier",
       .body = "bar.arrive 1, 64;\nbar.sync 1, 64;\nret;",
       .reason = Reason::kPartialBarrier,
       .line = 1,
       .says = "has arrivals at a barrier, which may outlive the block task."},
      {.name = "BarrierOfSomeThreadsByARegister",
       .body = "bar.sync %r1, 64;\nret;",
       .reason = Reason::kPartialBarrier,
       .line = 1,
       .says = "has a barrier for some of the threads whose number is in a register."},
      {.name = "ShuffleBehindAnExit",
       .body = "mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 3;\n@%p1 ret;\n"
               "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;\nret;",
       .reason = Reason::kWarpSync,
       .line = 4,
       .says = "has 'shfl.sync.bfly.b32' of a whole warp, of which some threads may have ended."},
      {.name = "SmId",
       .body = "mov.u32 %r1, %smid;\nret;",
       .reason = Reason::kSpecialRegister,
       .line = 1,
       .says = "has '%smid', whose value would be the worker's."},
      {.name = "GridId",
       .body = "mov.u64 %rd2, %gridid;\nret;",
       .reason = Reason::kSpecialRegister,
       .line = 1,
       .says = "has '%gridid', whose value would be the worker's."},
      {.name = "CallThroughAPointer",
       .body = "call.uni %rd1, (), $prototype;\nret;",
       .reason = Reason::kCall,
       .line = 1,
       .says = "has a call through a pointer."},
      {.name = "UnknownSymbol",
       .body = "mov.u32 %r1, %nowhere;\nret;",
       .reason = Reason::kUnknownSymbol,
       .line = 1,
       .says = "has '%nowhere', which nothing declares."},
      {.name = "UnknownLabel",
       .body = "bra $nowhere;\nret;",
       .reason = Reason::kUnknownSymbol,
       .line = 1,
       .says = "has a branch to '$nowhere', a label that its body does not have."},
      {.name = "UnknownOpcode",
       .body = "frobnicate.b32 %r1, %r2;\nret;",
       .reason = Reason::kUnknownOpcode,
       .line = 1,
       .says = "has 'frobnicate.b32', which the table of opcodes does not list."},
  };
  for (Refused& row : rows) row.line += kBefore;
  rows.push_back({.name = "ClusterOfADirective",
                  .body = "ret;",
                  .reason = Reason::kCluster,
                  .line = 9,
                  .says = "has '.reqnctapercluster'.",
                  .page = ".reqnctapercluster 2",
                  .directives = ".reqnctapercluster 2\n"});
  rows.push_back({.name = "CallThatIsNotInlined",
                  .reason = Reason::kCall,
                  .line = 6,
                  .says = "has a call of 'helper', which is not inlined.",
                  .page = "call.uni helper;",
                  .module = ".version 8.0\n.target sm_90a\n.address_size 64\n"
                            ".extern .func helper();\n.visible .entry k() {\ncall.uni helper;\n"
                            "ret;\n}\n"});
  rows.push_back(
      {.name = "Parameters",
       .reason = Reason::kParameters,
       .line = 4,
       .says =
           "The kernel has 4300 bytes of parameters, and with the launch header the limit is 4352.",
       .page = ".param .b8 big[4300]",
       .module = ".version 8.0\n.target sm_90a\n.address_size 64\n"
                 ".visible .entry k(.param .b8 big[4300]) { ret; }\n"});
  rows.push_back({.name = "SharedMemory",
                  .reason = Reason::kSharedMemory,
                  .line = 4,
                  .says = "A worker of the kernel has 49200 bytes of static shared memory, and the "
                          "limit is 49152.",
                  .page = ".shared .b8 all[49152]",
                  .module = ".version 8.0\n.target sm_90a\n.address_size 64\n"
                            ".visible .entry k() { .shared .b8 all[49152]; ret; }\n"});
  rows.push_back({.name = "Version",
                  .reason = Reason::kVersion,
                  .line = 1,
                  .says = "has PTX version 6.5, and twins are made from 7.0 to 9.x.",
                  .page = ".version 6.5",
                  .module = ".version 6.5\n.target sm_70\n.address_size 64\n"
                            ".visible .entry k() { ret; }\n"});
  rows.push_back({.name = "NoEntry",
                  .reason = Reason::kNoEntry,
                  .line = 0,
                  .says = "The module has no entry.",
                  .page = ".func f() { ret; }",
                  .module = ".version 8.0\n.target sm_90a\n.address_size 64\n"
                            ".visible .func f() { ret; }\n"});
  rows.push_back({.name = "AlreadyATwin",
                  .reason = Reason::kAlreadyTwin,
                  .line = 4,
                  .says = "has a name with 'gpushare_', which only twins have.",
                  .page = ".entry k_gpushare_workers()",
                  .module = ".version 8.0\n.target sm_90a\n.address_size 64\n"
                            ".visible .entry k_gpushare_workers() { ret; }\n"});
  static const std::string many_exits = ManyExits();
  rows.push_back({.name = "TooManyExits",
                  .body = many_exits,
                  .reason = Reason::kTooLarge,
                  .line = 6,
                  .says =
                      "The kernel has 66 exits, some of them in front of barriers, and the most "
                      "are 64.",
                  .page = "@%p1 ret;"});
  return rows;
}

class RefusalTest : public testing::TestWithParam<Refused> {};

TEST_P(RefusalTest, NamesTheReasonTheLineAndTheCause) {
  const Refused& row = GetParam();
  const std::string text = row.Text();
  const Refusal refusal = Check(text, {}).refusal;
  EXPECT_STREQ(Name(refusal.reason), Name(row.reason));
  EXPECT_EQ(refusal.line, row.line);
  EXPECT_EQ(refusal.message, row.Sentence());
  // The transform refuses what the check refuses, with the same words.
  const Twin twin = Transform(text, {}, {.workers = true, .slice = true});
  EXPECT_EQ(twin.refusal.message, refusal.message);
  EXPECT_TRUE(twin.text.empty());
}

INSTANTIATE_TEST_SUITE_P(Refusals, RefusalTest, testing::ValuesIn(Rows()),
                         [](const auto& row) { return row.param.name; });

// A row of the page's table: the line that is refused, the reason, the sentence.
TEST(RefusalPage, ShowsEveryTextAndItsSentence) {
  std::ifstream file(PTX_PAGE);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(page.empty()) << PTX_PAGE;
  for (const Refused& each : Rows()) {
    const std::string row =
        "| `" + each.OnPage() + "` | " + Name(each.reason) + " | " + each.Sentence() + " |\n";
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

}  // namespace
}  // namespace gpushare::ptx
