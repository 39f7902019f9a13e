// The example of thesis 4.4.3 (figure 4.1): two kernels of two warps on one scheduler, six
// instructions a warp. The thesis states the averages of the last issue cycles: 25 under LRR, 21.5
// under GTO, 22.5 under RT-PAWS. The program and the reading that reach all three are from
// docs/errata.md.

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "src/sim/warp/simulation.h"
#include "src/sim/warp/trace.h"

namespace gpushare::sim::warp {
namespace {

// Every instruction needs the one before it; the third takes 7 cycles.
constexpr char kTrace[] = R"(warp-trace 1
kernel example
warps 2
int
int after=1
int after=1 latency=7
int after=1 repeat=3
)";

struct Outcome {
  int64_t k1 = 0;  // last issue cycles
  int64_t k2 = 0;
  std::string order;  // the warp of each cycle, '-' for none
  bool operator==(const Outcome&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << "K1 " << outcome.k1 << ", K2 " << outcome.k2 << ", " << outcome.order;
}

double Average(const Outcome& outcome) { return static_cast<double>(outcome.k1 + outcome.k2) / 2; }

Outcome RunExample(WarpPolicy policy, IssueRules rules, int64_t k2_priority = 2) {
  const auto program = ParseTrace(kTrace, "example");
  EXPECT_TRUE(program.ok()) << program.status();
  std::vector<IssueRecord> log;
  SimulationOptions options;
  options.machine = ExampleMachine();
  options.policy = policy;
  options.rules = rules;
  options.log = &log;
  options.log_max = 100;
  const auto result =
      Simulate(options, {{.program = &*program, .at_cycle = 0, .priority = 1},
                         {.program = &*program, .at_cycle = 1, .priority = k2_priority}});
  EXPECT_TRUE(result.ok()) << result.status();
  Outcome outcome = {result->kernels[0].last_issue_cycle, result->kernels[1].last_issue_cycle, ""};
  outcome.order.assign(static_cast<size_t>(result->cycles), '-');
  for (const IssueRecord& issue : log) {
    outcome.order[static_cast<size_t>(issue.cycle)] = static_cast<char>('0' + issue.warp);
  }
  return outcome;
}

TEST(WorkedExampleTest, LrrAveragesTwentyFive) {
  const Outcome lrr = RunExample(WarpPolicy::kLrr, IssueRules::Printed());
  EXPECT_EQ(lrr, (Outcome{24, 26, "012301230123---012301230123"}));
  EXPECT_DOUBLE_EQ(Average(lrr), 25);
  EXPECT_EQ(RunExample(WarpPolicy::kLrr, IssueRules::Corrected()), lrr);
}

TEST(WorkedExampleTest, GtoAveragesTwentyOneAndAHalf) {
  const Outcome gto = RunExample(WarpPolicy::kGto, IssueRules::Printed());
  EXPECT_EQ(gto, (Outcome{14, 29, "000111222000111222333------333"}));
  EXPECT_DOUBLE_EQ(Average(gto), 21.5);
  EXPECT_EQ(RunExample(WarpPolicy::kGto, IssueRules::Corrected()), gto);
}

TEST(WorkedExampleTest, RtPawsAsPrintedAveragesTwentyTwoAndAHalf) {
  const Outcome paws = RunExample(WarpPolicy::kRtPaws, IssueRules::Printed());
  EXPECT_EQ(paws, (Outcome{22, 23, "020202131313020202131313"}));
  EXPECT_DOUBLE_EQ(Average(paws), 22.5);
}

// The least of the three for the later kernel, as the thesis says.
TEST(WorkedExampleTest, RtPawsAsPrintedHasTheShortestMakespan) {
  const auto makespan = [](const Outcome& outcome) { return std::max(outcome.k1, outcome.k2); };
  const int64_t paws = makespan(RunExample(WarpPolicy::kRtPaws, IssueRules::Printed()));
  EXPECT_LT(paws, makespan(RunExample(WarpPolicy::kLrr, IssueRules::Printed())));
  EXPECT_LT(paws, makespan(RunExample(WarpPolicy::kGto, IssueRules::Printed())));
}

// g0 is always K1 there, so K2's budget is never read: no priority of K2 changes anything.
TEST(WorkedExampleTest, AsPrintedThePriorityOfK2HasNoEffect) {
  const Outcome two = RunExample(WarpPolicy::kRtPaws, IssueRules::Printed(), 2);
  EXPECT_EQ(RunExample(WarpPolicy::kRtPaws, IssueRules::Printed(), 4), two);
  EXPECT_EQ(RunExample(WarpPolicy::kRtPaws, IssueRules::Printed(), 8), two);
}

// Each correction alone leaves the printed figures. With all of them K2 ends before K1 by far,
// which is what its priority asks for.
TEST(WorkedExampleTest, NoCorrectedFormReachesThePrintedFigures) {
  const IssueRules queue_behind_loop = {
      .remembers_in_loop = false, .keeps_greedy = true, .fixed_first_group = true};
  EXPECT_EQ(RunExample(WarpPolicy::kRtPaws, queue_behind_loop),
            (Outcome{16, 29, "000121212000331112223------333"}));
  const IssueRules group_from_queue = {
      .remembers_in_loop = true, .keeps_greedy = true, .fixed_first_group = false};
  EXPECT_EQ(RunExample(WarpPolicy::kRtPaws, group_from_queue),
            (Outcome{29, 19, "020202133130202203331------111"}));
  EXPECT_EQ(RunExample(WarpPolicy::kRtPaws, IssueRules::Corrected()),
            (Outcome{29, 18, "000122233300022233311------111"}));
}

}  // namespace
}  // namespace gpushare::sim::warp
