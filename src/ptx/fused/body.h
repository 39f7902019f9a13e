// The scope of one worker of a fused twin: the worker protocol around the kernel's body, whose
// names and numbers are the fused block's.
//
// Where in the flow: below the writer of a fused twin. Each copy of a part has its own scope, so
// that its barriers and places in shared memory are constants. With a base in a register, ptxas
// kept an address for each access and wgmma's descriptors in registers of the threads: a GEMM of
// 113 registers spilled at 168. Threads: any; pure functions.

#ifndef GPUSHARE_SRC_PTX_FUSED_BODY_H_
#define GPUSHARE_SRC_PTX_FUSED_BODY_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "src/ptx/fused/layout.h"
#include "src/ptx/fused/part.h"

namespace gpushare::ptx {

// The shared memory of the whole block.
inline constexpr const char* kFusedMemory = "gpushare_memory";

enum class FusedSide : uint8_t { kTensor, kCuda };

// The name of a part's variable in the fused module: `x` is `gpushare_0_x`.
std::string RenamedFor(FusedSide side, std::string_view name);
// The parameters with the part's launch header, and with all of the kernel's own.
std::string LaunchOf(FusedSide side);
std::string ParametersOf(FusedSide side);

// The scope of copy `copy` with its braces. No thread leaves it at its end.
std::string WriteScope(const Part& part, const PartLayout& layout, FusedSide side, uint32_t copy);

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_FUSED_BODY_H_
