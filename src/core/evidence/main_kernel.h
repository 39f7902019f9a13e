// The kernel that most of an LC app's time goes to, and its speed while BE copies run.
//
// A majority vote weighted by predicted time. Pair speeds stand for the app by this kernel.
// Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_MAIN_KERNEL_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_MAIN_KERNEL_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "src/core/base/limits.h"
#include "src/core/base/types.h"
#include "src/core/seams/cost_model.h"
#include "src/core/seams/kernel.h"

namespace gpushare::core {

// Once the mean is over so many launches, they count as half as many: predictions and block tasks
// change.
inline constexpr int64_t kMainKernelLaunches = 128;

struct MainKernel {
  const KernelDesc* kernel = nullptr;  // null before the app's first task with a kernel
  bool one_of_several = false;         // the app had tasks of other kernels too
  int64_t credit_ns = 0;
  double predicted_ns = 0;  // of `launches` of it, of late
  int64_t launches = 0;
  // Factor on the speed of `speeds_of` by LinkUse, as `version` of the model knows it.
  std::array<float, kLinkUses> speed_beside_copies = {1, 1, 1, 1};
  const KernelDesc* speeds_of = nullptr;
  uint64_t version = 0;
};

// A task of the app is predicted to take so long. Returns whether the main kernel is another one.
inline bool VoteMainKernel(MainKernel& main, const KernelDesc& kernel, int64_t predicted_ns) {
  const int64_t weight = std::max<int64_t>(predicted_ns, 1);
  if (main.kernel == &kernel) {
    main.credit_ns = std::min(main.credit_ns + weight, kMaxDurationNs);
    main.predicted_ns += static_cast<double>(predicted_ns);
    if (++main.launches == kMainKernelLaunches) {
      main.predicted_ns /= 2;
      main.launches /= 2;
    }
    return false;
  }
  main.one_of_several = main.one_of_several || main.kernel != nullptr;
  main.credit_ns -= weight;
  if (main.credit_ns >= 0 && main.kernel != nullptr) return false;
  main.kernel = &kernel;
  main.credit_ns = weight;
  main.predicted_ns = static_cast<double>(predicted_ns);
  main.launches = 1;
  return true;
}

// How long a launch of it takes alone, by the mean of late predictions; 0 before the first.
inline int64_t MeanPredictedNs(const MainKernel& main) {
  return main.launches == 0
             ? 0
             : static_cast<int64_t>(main.predicted_ns / static_cast<double>(main.launches));
}

// Computed anew when the main kernel or what the model knows has changed.
inline const std::array<float, kLinkUses>& SpeedsBesideCopies(MainKernel& main,
                                                              const CostModel& model) {
  if (main.kernel == nullptr) {
    main.speed_beside_copies.fill(1);
    return main.speed_beside_copies;
  }
  const uint64_t version = model.version();
  if (main.speeds_of == main.kernel && main.version == version) return main.speed_beside_copies;
  main.speeds_of = main.kernel;
  main.version = version;
  for (LinkUse copies = 1; copies < kLinkUses; ++copies) {
    main.speed_beside_copies[copies] =
        static_cast<float>(model.neighbours().SpeedBesideCopies(*main.kernel, copies));
  }
  return main.speed_beside_copies;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_MAIN_KERNEL_H_
