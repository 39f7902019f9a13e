// Writes one twin of a parsed and checked kernel.
//
// Where in the flow: checks -> twin writer -> the facade, which places the twins in the module.
// Threads: any; pure functions.

#ifndef GPUSHARE_SRC_PTX_TWINS_TWIN_WRITER_H_
#define GPUSHARE_SRC_PTX_TWINS_TWIN_WRITER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "src/ptx/analysis/checks.h"
#include "src/ptx/text/module.h"

namespace gpushare::ptx {

enum class TwinForm : uint8_t { kWorkers, kSlice };

// The entry of a twin as text. `registers_max` 0: as the original.
std::string WriteTwin(const Module& module, const Findings& findings, TwinForm form,
                      std::string_view name, uint32_t registers_max);

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_TWINS_TWIN_WRITER_H_
