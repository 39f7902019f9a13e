// What a copy and what runs beside it cost each other. The equations are ours.
//
// A copy beside a pinned copy the other way: the kept share of its speed at the nearest sizes
// (size_table.h). A copy beside a kernel: t = alone + c0 + c1 x dram, because on an H200 a kernel
// delays a copy by some us, whatever its size, and leaves its rate alone. A kernel beside a copy:
// kept = 1 / (1 + c x dram). dram is the share of peak bandwidth that the kernel uses alone. Each
// direction and kind of host memory has coefficients of its own, by least squares of relative
// errors. Without a measurement nothing is lost. Threads: as its owner. Nothing allocates.

#ifndef GPUSHARE_SRC_MODELS_DURATIONS_COPY_CONTENTION_H_
#define GPUSHARE_SRC_MODELS_DURATIONS_COPY_CONTENTION_H_

#include <array>
#include <cstddef>

#include "src/core/base/types.h"
#include "src/core/seams/device_profile.h"
#include "src/models/durations/size_table.h"

namespace gpushare::models {

// The copy of a measured or predicted pair.
struct ContendedCopy {
  bool to_device = true;
  bool pinned = true;
  double bytes = 0;
};

class CopyContention {
 public:
  // `kept`: the speed beside the other over that alone. Values that are not above 0 do not count.
  void ObserveOpposed(const ContendedCopy& copy, double kept);
  // dram: the share of peak bandwidth that the kernel uses alone, 0 to 1.
  void ObserveCopyBesideKernel(const ContendedCopy& copy, double dram, double alone_ns,
                               double beside_ns);
  void ObserveKernelBesideCopy(const ContendedCopy& copy, double dram, double kept);

  double OpposedKept(const ContendedCopy& copy) const;
  double CopyBesideKernelNs(const ContendedCopy& copy, double dram, double alone_ns) const;
  double KernelBesideCopyKept(const ContendedCopy& copy, double dram) const;

 private:
  // c of 1 / kept = 1 + c x dram, by least squares of errors relative to 1 / kept.
  struct Loss {
    double slowdown_dram = 0;  // sums over pairs
    double dram_dram = 0;

    void Observe(double dram, double kept);
    double KeptAt(double dram) const;
  };
  // c0 and c1 of t - alone = c0 + c1 x dram, by least squares of errors relative to t.
  struct Delay {
    double weight = 0;  // sums over pairs, each with the weight 1 / t^2
    double dram = 0;
    double dram_dram = 0;
    double delay = 0;
    double delay_dram = 0;

    void Observe(double dram_share, double alone_ns, double beside_ns);
    double NsAt(double dram_share) const;
  };
  static constexpr size_t kKinds = 4;
  static size_t KindOf(const ContendedCopy& copy) {
    return (copy.to_device ? 2 : 0) + (copy.pinned ? 1 : 0);
  }

  std::array<SizeTable, kKinds> opposed_;
  std::array<Delay, kKinds> copies_;
  std::array<Loss, kKinds> kernels_;
};

// What a kernel keeps beside BE copies of which nobody measured how they slow it, less one error
// bar: the device's slowdown per share of DRAM, twice, because of the kernels that it was fitted to
// the one that loses most loses twice as much. 1 without any use of DRAM.
double UnmeasuredSpeedBesideCopies(const core::DeviceProfile& device, double dram,
                                   core::LinkUse copies);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_DURATIONS_COPY_CONTENTION_H_
