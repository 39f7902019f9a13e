// The arithmetic of the compute group's kernels that needs no GPU: what their bodies and their CPU
// references share, or what a body relies on.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <set>
#include <vector>

#include "benchmarks/kernels/compute/cp.h"
#include "benchmarks/kernels/compute/cutcp.h"
#include "benchmarks/kernels/compute/fft.h"
#include "benchmarks/kernels/compute/lava_md.h"
#include "benchmarks/kernels/compute/mrif.h"
#include "benchmarks/kernels/compute/mriq.h"
#include "benchmarks/kernels/compute/myocyte.h"
#include "benchmarks/kernels/compute/particle_filter.h"
#include "benchmarks/kernels/compute/tea.h"
#include "benchmarks/kernels/compute/tpacf.h"

namespace gpushare::kernels {
namespace {

constexpr double kPi = 3.14159265358979323846;
using Complex = std::complex<double>;

// One pass as the body does it: reads by quarters, turns, transforms four, writes to the targets.
std::vector<Complex> FftPass(uint32_t pass, const std::vector<Complex>& in) {
  std::vector<Complex> out(kFftPoints);
  for (uint32_t t = 0; t < kFftQuarter; ++t) {
    for (uint32_t k = 0; k < 4; ++k) {
      Complex sum = 0;
      for (uint32_t r = 0; r < 4; ++r) {
        const double turns = r * (static_cast<double>(FftTurns(pass, t)) - k / 4.0);
        sum += in[t + r * kFftQuarter] * std::polar(1.0, 2 * kPi * turns);
      }
      out[FftTarget(pass, t) + k * FftStride(pass)] = sum;
    }
  }
  return out;
}

TEST(FftTest, FivePassesAreTheTransformInNaturalOrder) {
  std::vector<Complex> values(kFftPoints);
  for (uint32_t i = 0; i < kFftPoints; ++i) {
    values[i] = {Uniform(1, 2 * i, -1.0F, 1.0F), Uniform(1, 2 * i + 1, -1.0F, 1.0F)};
  }
  std::vector<Complex> passed = values;
  for (uint32_t pass = 0; pass < kFftPasses; ++pass) passed = FftPass(pass, passed);
  for (const uint32_t k : {0U, 1U, 2U, 3U, 4U, 255U, 256U, 511U, 777U, 1023U}) {
    Complex expected = 0;
    for (uint32_t n = 0; n < kFftPoints; ++n) {
      expected += values[n] * std::polar(1.0, -2 * kPi * (n * k % kFftPoints) / kFftPoints);
    }
    EXPECT_LT(std::abs(passed[k] - expected), 1e-5) << "result " << k;
  }
}

// The body adds multiples of one step to a place, which holds only where the padding is linear.
TEST(FftTest, PlacesOfAButterflyAreOneStepApart) {
  for (uint32_t pass = 0; pass + 1 < kFftPasses; ++pass) {
    std::set<uint32_t> places;
    for (uint32_t t = 0; t < kFftQuarter; ++t) {
      const uint32_t target = FftTarget(pass, t);
      for (uint32_t r = 0; r < 4; ++r) {
        const uint32_t place = FftPlace(pass, target + r * FftStride(pass));
        EXPECT_EQ(place, FftPlace(pass, target) + r * FftPlace(pass, FftStride(pass)));
        EXPECT_EQ(FftPlace(pass, t + r * kFftQuarter),
                  FftPlace(pass, t) + r * FftPlace(pass, kFftQuarter));
        EXPECT_LT(place, pass % 2 == 0 ? kFftEvenPlaces : kFftOddPlaces);
        places.insert(place);
      }
    }
    EXPECT_EQ(places.size(), kFftPoints) << "pass " << pass << " writes two values to one place";
  }
}

// An access of 8 bytes is served for 16 lanes at once, from 16 pairs of banks.
TEST(FftTest, NoTwoOfSixteenLanesMeetInABank) {
  for (uint32_t pass = 0; pass + 1 < kFftPasses; ++pass) {
    for (uint32_t first = 0; first < kFftQuarter; first += 16) {
      std::set<uint32_t> written;
      std::set<uint32_t> read;
      for (uint32_t t = first; t < first + 16; ++t) {
        written.insert(FftPlace(pass, FftTarget(pass, t)) % 16);
        read.insert(FftPlace(pass, t) % 16);
      }
      EXPECT_EQ(written.size(), 16U) << "pass " << pass << " from thread " << first;
      EXPECT_EQ(read.size(), 16U) << "pass " << pass << " from thread " << first;
    }
  }
}

// Wheeler and Needham's cipher of zeros under a key of zeros, and that a key matters.
TEST(TeaTest, KnownAnswers) {
  const TeaBlock zeros = TeaEncipher({0, 0}, {0, 0, 0, 0});
  EXPECT_EQ(zeros.v0, 0x41EA3A0AU);
  EXPECT_EQ(zeros.v1, 0x94BAA940U);
  for (const TeaKey& key : {TeaKey{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}) {
    EXPECT_NE(TeaEncipher({0, 0}, key).v0, zeros.v0);
  }
}

// A region's bins are all that the cutoff reaches: none further out could matter.
TEST(CutcpTest, BinsReachAsFarAsTheCutoff) {
  float low[3] = {0, 0, 0};
  float high[3] = {0, 0, 0};
  std::set<std::vector<float>> origins;
  for (uint32_t bin = 0; bin < kCutcpBins; ++bin) {
    const CutcpBinOrigin origin = CutcpOriginOf(bin);
    const float corner[3] = {origin.x, origin.y, origin.z};
    origins.insert({corner[0], corner[1], corner[2]});
    for (int axis = 0; axis < 3; ++axis) {
      low[axis] = std::min(low[axis], corner[axis]);
      high[axis] = std::max(high[axis], corner[axis] + 1);
    }
  }
  EXPECT_EQ(origins.size(), kCutcpBins);
  const float last[3] = {CutcpPoint(kCutcpPointsAcross - 1), CutcpPoint(kCutcpPointsAcross - 1),
                         CutcpPoint(kCutcpPointsDeep - 1)};
  for (int axis = 0; axis < 3; ++axis) {
    EXPECT_LE(low[axis], CutcpPoint(0) - 1) << axis;
    EXPECT_GE(high[axis], last[axis] + 1) << axis;
  }
}

// A region's slice is the next region's neighbour: the same bins, shifted by one.
TEST(CutcpTest, RegionsShareTheirBins) {
  for (uint32_t bin = kCutcpBinsInSlice; bin < kCutcpBins; ++bin) {
    const CutcpBinOrigin here = CutcpOriginOf(bin);
    const CutcpBinOrigin next = CutcpOriginOf(bin - kCutcpBinsInSlice);
    EXPECT_EQ(here.x - 1, next.x);  // the next region's corner is one further
    EXPECT_EQ(here.y, next.y);
    EXPECT_EQ(here.z, next.z);
  }
}

TEST(MrifTest, BinsReachAsFarAsTheWindowAndAreShared) {
  for (uint32_t bin = 0; bin < kMrifBins; ++bin) {
    const MrifBinOrigin origin = MrifOriginOf(bin);
    EXPECT_GE(origin.x, -1);
    EXPECT_LE(origin.x, 2);
    EXPECT_GE(origin.y, -1);
    EXPECT_LE(origin.y, 2);
    if (bin < kMrifBinsOfRegion) continue;
    const MrifBinOrigin next = MrifOriginOf(bin - kMrifBinsOfRegion);
    EXPECT_EQ(origin.x - 2, next.x);  // the next region's corner is two further
    EXPECT_EQ(origin.y, next.y);
  }
  EXPECT_LE(MrifCell(kMrifCellsAcross - 1) + 1, 3);
  EXPECT_GE(MrifCell(0) - 1, -1);
}

TEST(LavaMdTest, NeighboursAreAllAroundTheHomeBox) {
  std::set<std::vector<float>> origins;
  for (uint32_t neighbour = 0; neighbour < kLavaNeighbours; ++neighbour) {
    const LavaMdOrigin origin = LavaMdOriginOf(neighbour);
    origins.insert({origin.x, origin.y, origin.z});
    EXPECT_LE(std::max({std::abs(origin.x), std::abs(origin.y), std::abs(origin.z)}), 1);
  }
  EXPECT_EQ(origins.size(), kLavaNeighbours);
  const LavaMdOrigin home = LavaMdOriginOf(kLavaBoxesInSlice + kLavaHomeInSlice);
  EXPECT_EQ(std::abs(home.x) + std::abs(home.y) + std::abs(home.z), 0);
}

// The tolerance takes phases below eight turns before they are rounded.
TEST(MriqTest, PhasesStayBelowSixTurns) {
  float largest = 0;
  for (uint32_t voxel = 0; voxel < 10000; ++voxel) {
    float sum = 0;
    for (uint32_t axis = 0; axis < 3; ++axis) {
      sum += std::abs(MriqCoordinate(1, voxel, axis)) * kMriqSampleMax;
    }
    largest = std::max(largest, sum);
  }
  EXPECT_LE(largest, 6);
  EXPECT_GT(largest, 4);
}

TEST(CpTest, PointsOfAllTilesDiffer) {
  std::set<std::pair<float, float>> points;
  for (const uint32_t slot : {0U, 1U, 63U, 64U, 8191U}) {
    for (uint32_t point = 0; point < kCpPoints; ++point) {
      const CpPoint at = CpPointOf(slot, point);
      EXPECT_TRUE(points.emplace(at.x, at.y).second) << "slot " << slot << ", point " << point;
    }
  }
}

// The body counts by a clamped multiply-add; the reference compares.
TEST(TpacfTest, ClampedProductsCountWhatComparisonsCount) {
  constexpr float kScale = 1099511627776.0F;
  const auto counted = [](float cosine, float limit) {
    return std::clamp(std::fmaf(cosine, kScale, -kScale * limit), 0.0F, 1.0F);
  };
  for (uint32_t bin = 0; bin < kTpacfBins; ++bin) {
    const float limit = TpacfCosine(bin);
    EXPECT_EQ(counted(limit, limit), 0.0F);
    EXPECT_EQ(counted(std::nextafterf(limit, 2), limit), 1.0F);
    EXPECT_EQ(counted(std::nextafterf(limit, -2), limit), 0.0F);
    for (uint32_t i = 0; i < 10000; ++i) {
      const float cosine = TpacfProduct(TpacfDirectionOf(1, i), TpacfDirectionOf(2, i));
      EXPECT_EQ(counted(cosine, limit), cosine > limit ? 1.0F : 0.0F);
    }
  }
}

TEST(TpacfTest, DirectionsAreOnTheSphereAndEveryBinIsUsed) {
  std::vector<uint32_t> above(kTpacfBins);
  for (uint32_t i = 0; i < 300; ++i) {
    const TpacfDirection a = TpacfDirectionOf(1, i);
    EXPECT_NEAR(TpacfProduct(a, a), 1, 1e-6);
    for (uint32_t j = 0; j < 300; ++j) {
      const float cosine = TpacfProduct(a, TpacfDirectionOf(2, j));
      for (uint32_t bin = 0; bin < kTpacfBins; ++bin) above[bin] += cosine > TpacfCosine(bin);
    }
  }
  EXPECT_GT(above[0], 0U);
  for (uint32_t bin = 1; bin < kTpacfBins; ++bin) EXPECT_GT(above[bin], above[bin - 1]) << bin;
  EXPECT_LT(above[kTpacfBins - 1], 300U * 300);
}

// A cell that came to rest would hide iterations that are missing.
TEST(MyocyteTest, EveryCellBeatsForEver) {
  for (uint32_t cell = 0; cell < 32; ++cell) {
    const float current = MyocyteCurrent(1, cell);
    MyocyteCell state = {-1, 1};
    int beats = 0;
    for (int i = 0; i < 40000; ++i) {
      const MyocyteCell next = MyocyteIterate(state, current);
      if (i > 30000 && state.v < 0 && next.v >= 0) ++beats;
      ASSERT_LT(std::abs(next.v), 2.5F);
      state = next;
    }
    EXPECT_GT(beats, 5) << "cell " << cell << " with current " << current;
  }
}

// Fourth order: the float32 chain is the integration of the equations, over some beats.
TEST(MyocyteTest, FollowsTheEquations) {
  const float current = 0.5F;
  MyocyteCell cell = {-1, 1};
  double v = -1;
  double w = 1;
  constexpr int kParts = 400;  // of Euler's steps in one of Runge and Kutta's
  for (int i = 0; i < 800; ++i) {
    cell = MyocyteIterate(cell, current);
    for (int part = 0; part < kParts; ++part) {
      const double slope = v - v * v * v / 3 - w + current;
      w += 0.0625 / kParts * 0.08 * (v + 0.7 - 0.8 * w);
      v += 0.0625 / kParts * slope;
    }
    ASSERT_NEAR(cell.v, v, 0.03) << "iteration " << i;
    ASSERT_NEAR(cell.w, w, 0.03) << "iteration " << i;
  }
}

TEST(ParticleFilterTest, WeightsGrowAndNeverOverflow) {
  constexpr uint32_t kPixelMax = 127 + 100;
  for (uint32_t sum = 1; sum <= kFilterProbes * kPixelMax; ++sum) {
    ASSERT_GE(FilterWeight(sum), FilterWeight(sum - 1)) << sum;
  }
  EXPECT_LT(static_cast<uint64_t>(FilterWeight(kFilterProbes * kPixelMax)) * kFilterParticles,
            uint64_t{1} << 32);
  EXPECT_GT(FilterWeight(0), 0U);  // so cumulated weights always grow
}

TEST(ParticleFilterTest, DrawsAreInOrderAndBelowTheSum) {
  for (const uint32_t all : {16384U, 1000000U, 4294967295U}) {
    for (uint32_t frame = 0; frame < 100; ++frame) {
      uint32_t before = 0;
      for (uint32_t draw = 0; draw < kFilterParticles; ++draw) {
        const uint32_t point = FilterDraw(1, 7, frame, draw, all);
        ASSERT_LT(point, all);
        ASSERT_GE(point, before);
        before = point;
      }
    }
  }
}

TEST(ParticleFilterTest, PlacesAndProbesStayInTheFrame) {
  for (uint32_t particle = 0; particle < 1000; ++particle) {
    FilterPlace place = FilterStart(1, particle);
    for (uint32_t frame = 0; frame < 50; ++frame) {
      place = FilterMove(place, 1, particle, frame);
      ASSERT_LT(std::max(place.x, place.y), kFilterWidth);
      for (uint32_t probe = 0; probe < kFilterProbes; ++probe) {
        ASSERT_LT(FilterProbe(place, probe), kFilterPixels);
      }
    }
  }
}

}  // namespace
}  // namespace gpushare::kernels
