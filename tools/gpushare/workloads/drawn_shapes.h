// Library calls of random shapes, drawn by fixed seeds, so the same on every call.
//
// `gpushare calibrate --drawn-shapes` measures those that models are fitted to and judged by,
// beside the shapes of networks in library_shapes.h: those alone would teach a model no width
// between the networks' widths. `--placed-shapes` measures some on every number of SMs that a split
// gives. `--blind-shapes` measures those that judge and train none. They were drawn after the
// models of library calls and their weights were chosen; their names begin with "blind.", by which
// judges know them (src/models/samples/hold_out.h). No shape is in two of the four lists. Threads:
// any.

#ifndef GPUSHARE_TOOLS_GPUSHARE_WORKLOADS_DRAWN_SHAPES_H_
#define GPUSHARE_TOOLS_GPUSHARE_WORKLOADS_DRAWN_SHAPES_H_

#include <vector>

#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {

std::vector<LibraryShape> ListDrawnShapes();
std::vector<LibraryShape> ListPlacedShapes();
std::vector<LibraryShape> ListBlindShapes();

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_WORKLOADS_DRAWN_SHAPES_H_
