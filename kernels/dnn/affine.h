// What scale and batch_norm share: an NCHW tensor whose values become factor * value + shift, with
// one factor and shift a channel.
//
// A block task works on a chunk of consecutive vectors of 4 floats, which begins and ends inside of
// planes: so all its threads have work at any size of a plane.

#ifndef GPUSHARE_KERNELS_DNN_AFFINE_H_
#define GPUSHARE_KERNELS_DNN_AFFINE_H_

#include <cstdint>

#include "kernels/dnn/divider.h"

namespace gpushare::kernels {

constexpr uint32_t kAffineThreads = 256;
constexpr uint32_t kAffineUnroll = 4;       // vectors in flight a thread
constexpr uint32_t kAffinePlanesMax = 256;  // that a chunk touches; one a thread
constexpr uint32_t kAffineFloatsPerPass = 4 * kAffineThreads;

struct AffineTensor {
  const float* in;  // aligned to 16 bytes, as out
  float* out;
  uint32_t ring;     // block task b works on chunk b % ring
  uint32_t passes;   // a chunk is passes * kAffineThreads vectors; a multiple of kAffineUnroll
  Divider plane;     // by the vectors of a plane: its height * width is a multiple of 4
  Divider channels;  // by the channels
};

// The planes that a chunk touches, and where it begins in the first one.
struct AffineChunk {
  uint32_t begin;        // first vector
  uint32_t first_plane;  // counted over all images
  uint32_t offset;       // of `begin` in that plane
  uint32_t planes;
};

GPUSHARE_HOST_DEVICE inline AffineChunk AffineChunkOf(const AffineTensor& tensor,
                                                      uint32_t block_index) {
  AffineChunk chunk = {};
  const uint32_t vectors = tensor.passes * kAffineThreads;
  chunk.begin = block_index % tensor.ring * vectors;
  chunk.first_plane = tensor.plane.Quotient(chunk.begin);
  chunk.offset = chunk.begin - chunk.first_plane * tensor.plane.divisor;
  chunk.planes = tensor.plane.Quotient(chunk.offset + vectors - 1) + 1;
  return chunk;
}

// A square plane of a common network, and the channels that go with it: the smallest plane of which
// a chunk of `passes` passes touches at most kAffinePlanesMax.
struct AffineShape {
  uint32_t side;
  uint32_t channels;
  uint32_t plane_vectors() const { return side * side / 4; }
};

inline AffineShape AffineShapeFor(uint32_t passes) {
  AffineShape shape = {28, 512};
  // A chunk may begin and end inside a plane, so it touches up to two planes more than fit in it.
  while (static_cast<uint64_t>(passes) * kAffineThreads >
         static_cast<uint64_t>(kAffinePlanesMax - 2) * shape.plane_vectors()) {
    shape = {shape.side * 2, shape.channels > 1 ? shape.channels / 2 : 1};
  }
  return shape;
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_AFFINE_H_
