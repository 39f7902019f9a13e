// Delays and kept shares; see copy_contention.h.

#include "src/models/durations/copy_contention.h"

#include <algorithm>
#include <cmath>

namespace gpushare::models {
namespace {

// Variance of the use of DRAM below which a slope would be noise.
constexpr double kSpreadMin = 1e-4;

bool IsPositive(double value) { return value > 0 && std::isfinite(value); }

}  // namespace

// The error of a pair relative to its slowness 1 / kept: c x dram x kept - (1 - kept).
void CopyContention::Loss::Observe(double dram, double kept) {
  if (!IsPositive(kept) || !IsPositive(dram)) return;
  slowdown_dram += (1 - kept) * dram * kept;
  dram_dram += dram * kept * dram * kept;
}

double CopyContention::Loss::KeptAt(double dram) const {
  if (!(dram_dram > 0) || !IsPositive(dram)) return 1;
  return 1 / (1 + std::max(0.0, slowdown_dram / dram_dram) * dram);
}

void CopyContention::Delay::Observe(double dram_share, double alone_ns, double beside_ns) {
  if (!IsPositive(alone_ns) || !IsPositive(beside_ns) || !(dram_share >= 0 && dram_share <= 1)) {
    return;
  }
  const double each = 1 / (beside_ns * beside_ns);
  weight += each;
  dram += each * dram_share;
  dram_dram += each * dram_share * dram_share;
  delay += each * (beside_ns - alone_ns);
  delay_dram += each * (beside_ns - alone_ns) * dram_share;
}

// Kernels of one use of DRAM tell no slope.
double CopyContention::Delay::NsAt(double dram_share) const {
  if (!(weight > 0) || !(dram_share >= 0)) return 0;
  const double spread = weight * dram_dram - dram * dram;
  const double slope =
      spread > kSpreadMin * weight * weight ? (weight * delay_dram - dram * delay) / spread : 0;
  return std::max(0.0, (delay - slope * dram) / weight + slope * dram_share);
}

double UnmeasuredSpeedBesideCopies(const core::DeviceProfile& device, double dram,
                                   core::LinkUse copies) {
  const double slowdown = ((copies & core::kLinkIn) != 0 ? device.copy_in_slowdown : 0) +
                          ((copies & core::kLinkOut) != 0 ? device.copy_out_slowdown : 0);
  return 1 / (1 + 2 * slowdown * std::clamp(dram, 0.0, 1.0));
}

void CopyContention::ObserveOpposed(const ContendedCopy& copy, double kept) {
  if (IsPositive(kept) && IsPositive(copy.bytes)) opposed_[KindOf(copy)].Observe(copy.bytes, kept);
}

void CopyContention::ObserveCopyBesideKernel(const ContendedCopy& copy, double dram,
                                             double alone_ns, double beside_ns) {
  copies_[KindOf(copy)].Observe(dram, alone_ns, beside_ns);
}

void CopyContention::ObserveKernelBesideCopy(const ContendedCopy& copy, double dram, double kept) {
  kernels_[KindOf(copy)].Observe(dram, kept);
}

double CopyContention::OpposedKept(const ContendedCopy& copy) const {
  return IsPositive(copy.bytes) ? opposed_[KindOf(copy)].RatioAt(copy.bytes) : 1;
}

double CopyContention::CopyBesideKernelNs(const ContendedCopy& copy, double dram,
                                          double alone_ns) const {
  return alone_ns + copies_[KindOf(copy)].NsAt(dram);
}

double CopyContention::KernelBesideCopyKept(const ContendedCopy& copy, double dram) const {
  return kernels_[KindOf(copy)].KeptAt(dram);
}

}  // namespace gpushare::models
