// Decides whether a kernel may have twins, and collects what the transforms need to know.
//
// Where in the flow: parser -> checks -> transforms. Every refusal of a kernel that parses is here
// or in what is called from here; docs/ptx.md lists them.
// Threads: any; pure functions.

#ifndef GPUSHARE_SRC_PTX_ANALYSIS_CHECKS_H_
#define GPUSHARE_SRC_PTX_ANALYSIS_CHECKS_H_

#include <cstdint>

#include "src/ptx/analysis/barriers.h"
#include "src/ptx/base/refusal.h"
#include "src/ptx/text/module.h"

namespace gpushare::ptx {

struct Findings {
  BarrierPlan barriers;
  bool copies = false;       // cp.async
  bool bulk_copies = false;  // cp.async.bulk
  bool reads_grid_size = false;
  bool needs_flat_block = false;  // the barriers are right for blocks of one dimension alone
  uint32_t instructions = 0;
  uint32_t parameters_bytes = 0;
};

// Static shared memory that a worker twin adds. A kernel with dynamic shared memory gets a multiple
// of 1,024 bytes, so that the dynamic part keeps its alignment: 16 bytes moved it off.
uint32_t TwinSharedBytes(const Module& module);

Refusal CheckKernel(const Module& module, Findings& findings);

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_ANALYSIS_CHECKS_H_
