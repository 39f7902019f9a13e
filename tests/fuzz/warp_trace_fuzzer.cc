// Fuzzes the parser of warp traces and the simulator behind it: any bytes end in an error of one
// line or in a program that survives a round trip and a bounded simulation.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "src/sim/warp/simulation.h"
#include "src/sim/warp/trace.h"

namespace {

using gpushare::sim::warp::IssueRules;
using gpushare::sim::warp::ParseTrace;
using gpushare::sim::warp::Program;
using gpushare::sim::warp::WarpPolicy;

void RequireSentence(const absl::Status& status) {
  const absl::string_view message = status.message();
  const bool is_line =
      !message.empty() && message.back() == '.' && message.find('\n') == absl::string_view::npos;
  if (!is_line) std::abort();
}

void Run(const Program& program, WarpPolicy policy, IssueRules rules) {
  gpushare::sim::warp::SimulationOptions options;
  options.machine = gpushare::sim::warp::TitanV();
  options.policy = policy;
  options.rules = rules;
  options.cycles_max = 2000;
  const auto result = gpushare::sim::warp::Simulate(
      options, {{.program = &program, .resident_blocks = 2, .priority = 1},
                {.program = &program, .resident_blocks = 2, .at_cycle = 7, .priority = 4}});
  if (!result.ok()) return RequireSentence(result.status());
  const int64_t instructions = gpushare::sim::warp::InstructionsPerWarp(program) *
                               program.warps_per_block * program.grid_blocks;
  for (const auto& kernel : result->kernels) {
    if (kernel.instructions != instructions) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto program = ParseTrace(text, "fuzz.trace");
  if (!program.ok()) {
    RequireSentence(program.status());
    return 0;
  }
  const std::string formatted = FormatTrace(*program);
  const auto again = ParseTrace(formatted, "again.trace");
  if (!again.ok() || FormatTrace(*again) != formatted) std::abort();
  Run(*program, WarpPolicy::kLrr, IssueRules::Corrected());
  Run(*program, WarpPolicy::kRtPaws, IssueRules::Printed());
  Run(*again, WarpPolicy::kRtPaws, IssueRules::Corrected());
  return 0;
}
