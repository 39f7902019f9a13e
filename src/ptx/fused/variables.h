// Whether a kernel's variables outside of bodies may be copied into another module.
//
// Where in the flow: below the reader of a part. A fused twin is a module of its own, so that its
// variables are copies. A copy is right where nobody writes the variable: neither the kernel nor,
// through its symbol, the host. The text does not say what the host writes: `static __constant__`
// gives no linkage directive, and the host writes it by cudaMemcpyToSymbol. So two kinds alone are
// taken to be never written: CUDA's tables (`__cudart_*`), and what is only an address for
// __assertfail, as its texts are.

#ifndef GPUSHARE_SRC_PTX_FUSED_VARIABLES_H_
#define GPUSHARE_SRC_PTX_FUSED_VARIABLES_H_

#include <cstdint>
#include <vector>

#include "src/ptx/base/refusal.h"
#include "src/ptx/base/step_budget.h"
#include "src/ptx/text/module.h"
#include "src/ptx/text/outline.h"

namespace gpushare::ptx {

// Refuses all other variables by name and line. `items`: those of outline.variables that the kernel
// uses, in order.
Refusal CheckVariables(const Module& module, const Outline& outline, StepBudget& budget,
                       std::vector<uint32_t>& items);

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_FUSED_VARIABLES_H_
