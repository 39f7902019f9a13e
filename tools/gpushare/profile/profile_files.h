// `gpushare profile`: what a profile holds, what two profiles differ in, two profiles in one, a
// profile that is trained with samples or has one kernel more.
//
// Profiles are checked by the library before they are used, and a merged one before it is there.
// Threads: any.

#ifndef GPUSHARE_TOOLS_GPUSHARE_PROFILE_PROFILE_FILES_H_
#define GPUSHARE_TOOLS_GPUSHARE_PROFILE_PROFILE_FILES_H_

#include <string>

namespace gpushare::tool {

// Files, or names of installed profiles. Errors: InputError.

// Text: the device, the kernels, and the number of records of each other kind.
std::string ShowProfile(const std::string& profile);

// Text: the kernels that only one profile has, and the measured values of the device and of common
// kernels that differ by more than `least` (a share).
inline constexpr double kDifferenceLeast = 0.02;
std::string DiffProfiles(const std::string& before, const std::string& after,
                         double least = kDifferenceLeast);

// Writes `base` with everything that `added` has. Of a record in both, that of `added` counts, with
// what was learned of its kernel. Refuses profiles of two GPU models. Returns what came from where.
std::string MergeProfiles(const std::string& base, const std::string& added,
                          const std::string& out);

// Writes `profile` with what the samples file says of its kernels (gpushare_profile_train). Returns
// how many are trained and counted.
std::string TrainProfile(const std::string& profile, const std::string& samples,
                         bool replace_demands, const std::string& out);

// Writes `profile` with a record of `kernel` that is like that of `like`, "" for the nearest by
// counters (gpushare_profile_like). `samples`: where the kernel was counted, "" for nowhere else.
std::string LikeKernel(const std::string& profile, const std::string& kernel,
                       const std::string& like, const std::string& samples, const std::string& out);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_PROFILE_PROFILE_FILES_H_
