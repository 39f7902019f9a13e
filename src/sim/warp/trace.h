// Warp traces: programs as text, so that a kernel can be written down or printed by another tool.
//
//   warp-trace 1
//   kernel vadd
//   warps 8              # of a block
//   blocks 4             # on this SM
//   region a 1048576     # name and bytes
//   loop 64              # counters i, j, k from the outside
//     load a warp=128 i=1024
//     float after=1      # needs the result of the instruction before
//   end
//
// docs/warp-simulator.md has every word. Threads: any.

#ifndef GPUSHARE_SRC_SIM_WARP_TRACE_H_
#define GPUSHARE_SRC_SIM_WARP_TRACE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/sim/warp/program.h"

namespace gpushare::sim::warp {

inline constexpr size_t kMaxTraceBytes = 1 << 20;
inline constexpr size_t kMaxTraceNameBytes = 64;

// `name` stands in errors, before the line's number. Every program that it returns passes Check.
// Errors: INVALID_ARGUMENT with the line, the word and the limit.
absl::StatusOr<Program> ParseTrace(absl::string_view text, absl::string_view name);

// The text of a program that Check accepts; ParseTrace gives the program back.
std::string FormatTrace(const Program& program);

}  // namespace gpushare::sim::warp

#endif  // GPUSHARE_SRC_SIM_WARP_TRACE_H_
