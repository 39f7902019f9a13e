// Parameters of myocyte: cells of heart muscle, one a thread, integrated over a long time in one
// block task, as Rodinia's myocyte does with few threads. The cell is FitzHugh's and Nagumo's
// reduction of the membrane's equations, which has no special functions:
//
//   v' = v - v^3 / 3 - w + current      w' = 0.08 (v + 0.7 - 0.8 w)
//
// by the classical Runge-Kutta method. Every operation is one fused multiply-add, in a given order,
// so that the CPU computes the same bits: the reference is exact however long the integration is.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MYOCYTE_H_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MYOCYTE_H_

#include <cmath>
#include <cstdint>

#include "benchmarks/kernels/hash.h"

namespace gpushare::kernels {

struct MyocyteParams {
  float* out;           // v and w of each cell, ring * 64
  uint32_t ring;        // block task b computes slot b % ring
  uint32_t iterations;  // of the integration, in one step of a block task
  uint32_t steps;       // of a block task
  uint32_t seed;
};

constexpr uint32_t kMyocyteThreads = 64;
// Multiply-adds of an iteration: four slopes of six, seven sums of two. Those of v depend on each
// other in four stages of four, so that four warps a scheduler keep it busy.
constexpr uint32_t kMyocyteMultiplyAdds = 38;

struct MyocyteCell {
  float v;
  float w;
};

// The stimulus: enough to beat for ever, so that the state shows how many iterations there were.
GPUSHARE_HOST_DEVICE inline float MyocyteCurrent(uint32_t seed, uint32_t cell) {
  return Uniform(seed, cell, 0.4F, 0.8F);
}

// The slopes at a point. Chain from v: two products and a sum.
GPUSHARE_HOST_DEVICE inline MyocyteCell MyocyteSlope(const MyocyteCell& at, float current) {
  const float third = fmaf(at.v, -1.0F / 3.0F, 0.0F);
  const float factor = fmaf(third, at.v, 1.0F);
  const float driving = fmaf(at.w, -1.0F, current);
  return {fmaf(factor, at.v, driving), fmaf(0.08F, at.v, fmaf(at.w, -0.064F, 0.056F))};
}

// from + time * slope
GPUSHARE_HOST_DEVICE inline MyocyteCell MyocyteAhead(const MyocyteCell& from,
                                                     const MyocyteCell& slope, float time) {
  return {fmaf(time, slope.v, from.v), fmaf(time, slope.w, from.w)};
}

GPUSHARE_HOST_DEVICE inline MyocyteCell MyocyteIterate(const MyocyteCell& cell, float current) {
  constexpr float kStep = 0.0625F;
  MyocyteCell slope = MyocyteSlope(cell, current);
  MyocyteCell sum = MyocyteAhead(cell, slope, kStep / 6);
  slope = MyocyteSlope(MyocyteAhead(cell, slope, kStep / 2), current);
  sum = MyocyteAhead(sum, slope, kStep / 3);
  slope = MyocyteSlope(MyocyteAhead(cell, slope, kStep / 2), current);
  sum = MyocyteAhead(sum, slope, kStep / 3);
  slope = MyocyteSlope(MyocyteAhead(cell, slope, kStep), current);
  return MyocyteAhead(sum, slope, kStep / 6);
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_MYOCYTE_H_
