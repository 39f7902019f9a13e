// The words of a warp trace for instructions and their options: one table for reader and writer.
//
// Threads: any.

#ifndef GPUSHARE_SRC_SIM_WARP_OP_WORDS_H_
#define GPUSHARE_SRC_SIM_WARP_OP_WORDS_H_

#include <array>

#include "absl/strings/string_view.h"
#include "src/sim/warp/program.h"

namespace gpushare::sim::warp {

// By OpKind.
inline constexpr std::array<absl::string_view, kOpKinds> kOpWords = {
    "int",    "float", "double", "special", "tensor", "control",
    "shared", "load",  "store",  "barrier", "end"};

// Options of loads and stores whose value is a number of bytes.
struct ByteOption {
  absl::string_view word;
  int64_t& (*field)(Op& op);
  int64_t otherwise;
};

inline constexpr std::array<ByteOption, 7> kByteOptions = {{
    {"stride", [](Op& op) -> int64_t& { return op.line_stride; }, 128},
    {"offset", [](Op& op) -> int64_t& { return op.offset; }, 0},
    {"block", [](Op& op) -> int64_t& { return op.per_block; }, 0},
    {"warp", [](Op& op) -> int64_t& { return op.per_warp; }, 0},
    {"i", [](Op& op) -> int64_t& { return op.per_loop[0]; }, 0},
    {"j", [](Op& op) -> int64_t& { return op.per_loop[1]; }, 0},
    {"k", [](Op& op) -> int64_t& { return op.per_loop[2]; }, 0},
}};

inline bool IsMemoryAccess(OpKind kind) { return kind == OpKind::kLoad || kind == OpKind::kStore; }

}  // namespace gpushare::sim::warp

#endif  // GPUSHARE_SRC_SIM_WARP_OP_WORDS_H_
