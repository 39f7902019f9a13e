// Writes the module of a fused twin from its two parts and their layout.
//
// Where in the flow: parts and layout -> writer -> the facade.
//
// Each part stands in a scope of its own, so that equal names of registers, labels and local
// variables of the two kernels are different ones. What is declared outside of bodies, and what
// both kernels number, gets a new name or number: parameters, variables, shared memory, barriers
// and threads.
// Threads: any; pure functions.

#ifndef GPUSHARE_SRC_PTX_FUSED_WRITER_H_
#define GPUSHARE_SRC_PTX_FUSED_WRITER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "src/ptx/base/refusal.h"
#include "src/ptx/fused/layout.h"
#include "src/ptx/fused/part.h"

namespace gpushare::ptx {

// What the module's first lines say.
struct FusedHeader {
  uint32_t version_major = 0;
  uint32_t version_minor = 0;
  std::string_view target;
};

// The header that has both parts, or why there is none.
Refusal JoinHeaders(const Part& tensor, const Part& cuda, bool moves_registers,
                    FusedHeader& header);

// The module with one entry, `name`. `registers_max` 0: the assembler decides.
std::string WriteFused(const Part& tensor, const Part& cuda, const FusedLayout& layout,
                       const FusedHeader& header, std::string_view name, uint32_t registers_max);

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_FUSED_WRITER_H_
