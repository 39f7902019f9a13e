// Library calls that judge models and train none: `gpushare calibrate --blind-shapes` measures
// them.
//
// They were drawn at random, by a seed, after the models of library calls and their weights were
// chosen, and none is in the list of library_shapes.h. Their names begin with "blind.", by which
// judges know them (src/models/samples/hold_out.h). The same on every call. Threads: any.

#ifndef GPUSHARE_TOOLS_GPUSHARE_WORKLOADS_BLIND_SHAPES_H_
#define GPUSHARE_TOOLS_GPUSHARE_WORKLOADS_BLIND_SHAPES_H_

#include <vector>

#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {

std::vector<LibraryShape> ListBlindShapes();

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_WORKLOADS_BLIND_SHAPES_H_
