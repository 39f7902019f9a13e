// `gpushare calibrate`: measures kernels and the device, writes their profile, prints a table.
//
// Which kernels: on the simulated device those of the profile; on a GPU those that this program has
// (workloads.h) and the profile knows, or all of them with `catalogue`. `kernels` restricts both.
// An interrupt stops between two samples and leaves the checkpoint. A limit on the time that is too
// short leaves it too. --resume continues from the checkpoint. Threads: the caller's.

#ifndef GPUSHARE_TOOLS_GPUSHARE_PROFILE_CALIBRATE_H_
#define GPUSHARE_TOOLS_GPUSHARE_PROFILE_CALIBRATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/gpushare/base/library.h"

namespace gpushare::tool {

struct CalibrateOptions {
  DeviceChoice device;
  std::vector<std::string> kernels;  // only these; empty: all that the device can run
  std::string out;                   // file of the profile
  int repeats = 0;                   // 0: the library's
  int64_t kernel_time_ns = 0;        // 0: the library's
  int64_t total_time_ns = 0;         // 0: no bound
  double slice_overhead_max = 0;     // 0: the library's
  bool catalogue = false;            // the catalogue's kernels too, and fused kernels of them
  bool resume = false;
  bool quiet = false;   // no progress on stderr
  std::string samples;  // file that durations are appended to; empty: none
  // What is measured instead of kernels.
  enum class Instead : uint8_t {
    kNothing = 0,
    kShapes = 1,        // library calls of many shapes
    kBlindShapes = 2,   // library calls that judge models
    kQueries = 3,       // whole queries at several input sizes
    kDrawnShapes = 4,   // library calls of random shapes
    kPlacedShapes = 5,  // the same, on each SM count of a split
  };
  Instead instead = Instead::kNothing;
};

// The printed text. Throws InputError or RunError; stopped by an interrupt: RunError.
std::string Calibrate(const CalibrateOptions& options);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_PROFILE_CALIBRATE_H_
