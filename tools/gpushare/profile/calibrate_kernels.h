// Which kernels `gpushare calibrate` measures: those asked for, of the profile and of the
// catalogue.
//
// Decided before anything is allocated or measured. Pure; threads: any.

#ifndef GPUSHARE_TOOLS_GPUSHARE_PROFILE_CALIBRATE_KERNELS_H_
#define GPUSHARE_TOOLS_GPUSHARE_PROFILE_CALIBRATE_KERNELS_H_

#include <string>
#include <vector>

namespace gpushare::tool {

struct KernelChoice {
  std::vector<std::string> asked;    // --kernels; empty: all
  std::vector<std::string> profile;  // the profile knows them and the device can run them
  std::vector<std::string>
      catalogue;                    // that the device can run, whether or not a profile knows them
  std::vector<std::string> others;  // that run only when they are asked for by name
  bool with_catalogue = false;      // --catalogue
};

// All kernels of the profile and, with the catalogue, its kernels. Kernels that were asked for
// restrict both lists and give the order. Throws InputError for a name that is unknown or appears
// twice.
std::vector<std::string> ChooseKernels(const KernelChoice& choice);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_PROFILE_CALIBRATE_KERNELS_H_
