// Parameters of pooling: the maximum or the average of 3x3 windows at a stride of 2, over the
// planes of an NCHW tensor of even height and width, padded by one value above and left (and
// nothing is needed below and right). Padding takes no part: the average is over what lies inside.
//
// The rows of results are cut into strips of `rows`; strips never cross planes. A thread walks down
// a strip with two columns of results, and so four of the input: an item. A lane that has no item
// of its own repeats the block task's last one and writes nothing, because the lanes of a warp hand
// each other their neighbours.

#ifndef GPUSHARE_KERNELS_DNN_POOLING_H_
#define GPUSHARE_KERNELS_DNN_POOLING_H_

#include <cstdint>

#include "kernels/dnn/divider.h"

namespace gpushare::kernels {

struct PoolingParams {
  const float* in;  // aligned to 16 bytes, as out
  float* out;
  uint32_t ring;     // block task b pools the strips of slot b % ring
  uint32_t strips;   // of a block task
  uint32_t rows;     // of results in a strip
  uint32_t width;    // of the input; a multiple of 4
  uint32_t height;   // of the input: 2 * rows * the strips of a plane
  uint32_t average;  // 0: the maximum
  Divider groups;    // by width / 4, the items of a strip
  Divider in_plane;  // by the strips of a plane
};

struct PoolingItem {
  bool own;         // this lane has the item, and writes its results
  uint32_t group;   // of columns, in the row
  uint32_t row;     // first one of results, in the plane
  uint32_t in_at;   // of input row 2 * row, column 4 * group
  uint32_t out_at;  // of the first result
};

GPUSHARE_HOST_DEVICE inline PoolingItem PoolingItemOf(const PoolingParams& params, uint32_t slot,
                                                      uint32_t item) {
  const uint32_t items = params.strips * params.groups.divisor;
  PoolingItem found = {};
  found.own = item < items;
  if (!found.own) item = items - 1;
  const uint32_t local = params.groups.Quotient(item);
  found.group = item - local * params.groups.divisor;
  const uint32_t strip = slot * params.strips + local;
  const uint32_t plane = params.in_plane.Quotient(strip);
  found.row = (strip - plane * params.in_plane.divisor) * params.rows;
  found.in_at = (plane * params.height + 2 * found.row) * params.width + 4 * found.group;
  found.out_at = strip * params.rows * (params.width / 2) + 2 * found.group;
  return found;
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_POOLING_H_
