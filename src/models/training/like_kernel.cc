// A kernel's record from a like one; see like_kernel.h.

#include "src/models/training/like_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/core/base/limits.h"
#include "src/core/base/status.h"
#include "src/models/durations/prior.h"
#include "src/models/learned/learned.h"
#include "src/models/pairs/pair_model.h"

namespace gpushare::models {
namespace {

using core::KernelCounters;
using core::KernelDesc;
using core::ResourceDemand;

// A smaller count is noise, and no factor follows from it.
constexpr double kShareLeast = 0.01;

KernelDesc* Find(Profile& profile, const std::string& name) {
  for (KernelDesc& kernel : profile.kernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

absl::StatusOr<const KernelDesc*> Nearest(const Profile& profile, const LikeRequest& request,
                                          const KernelCounters& counters) {
  if (!counters.present()) {
    return absl::FailedPreconditionError(
        absl::StrCat("Nobody counted kernel '", request.kernel,
                     "', so that no kernel is known to be like it: name one, or give samples with "
                     "its counters."));
  }
  const KernelDesc* nearest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const KernelDesc& kernel : profile.kernels) {
    const bool counts = kernel.simulation.present && kernel.counters.present();
    const double distance = DistanceOf(kernel.counters, counters);
    if (!counts || kernel.name == request.kernel || distance >= least) continue;
    least = distance;
    nearest = &kernel;
  }
  if (nearest != nullptr) return nearest;
  return absl::FailedPreconditionError(
      absl::StrCat("No kernel of the profile has both a record and counters, so that none is known "
                   "to be like '",
                   request.kernel, "'."));
}

absl::StatusOr<const KernelDesc*> Named(const Profile& profile, const LikeRequest& request) {
  const KernelDesc* like = profile.FindKernel(request.like);
  if (like == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("The profile has no kernel '", request.like, "' to be like."));
  }
  if (like->simulation.present && like->name != request.kernel) return like;
  return absl::FailedPreconditionError(
      absl::StrCat("Kernel '", request.kernel, "' cannot be like '", request.like, "', which ",
                   like->simulation.present ? "is the same kernel." : "has no simulation record."));
}

double ScaledShare(double known, double counted_here, double counted_there) {
  if (known <= 0 || counted_there < kShareLeast) return counted_here;
  return std::min(1.0, known * counted_here / counted_there);
}

// A demand that was fitted differs from the counted one by what the counters do not tell; a like
// kernel differs by the same factor.
void ScaleDemand(const KernelCounters& here, const KernelCounters& there, ResourceDemand& demand) {
  demand.issue = ScaledShare(demand.issue, here.issue, there.issue);
  demand.tensor = ScaledShare(demand.tensor, here.tensor, there.tensor);
  demand.special = ScaledShare(demand.special, here.special, there.special);
  demand.dram = ScaledShare(demand.dram, here.dram, there.dram);
  demand.l2 = ScaledShare(demand.l2, here.l2, there.l2);
}

// As long as the other's, times the ratio of their counted times. An SM's workers share its time.
int64_t ScaledBlockTaskNs(const core::DeviceProfile& device, const KernelDesc& here,
                          const KernelDesc& there) {
  const double ours_ns =
      CountedNsPerBlockTask(device, here.counters) * here.resources.workers_per_sm_max;
  const double theirs_ns =
      CountedNsPerBlockTask(device, there.counters) * there.resources.workers_per_sm_max;
  const auto known = static_cast<double>(there.simulation.block_task_ns);
  if (ours_ns <= 0 || theirs_ns <= 0 || known <= 0) return there.simulation.block_task_ns;
  const double scaled = std::round(known * ours_ns / theirs_ns);
  return static_cast<int64_t>(std::clamp(scaled, 1.0, static_cast<double>(core::kMaxDurationNs)));
}

void FillRecord(const core::DeviceProfile& device, const KernelDesc& like, KernelDesc& kernel) {
  kernel.simulation = like.simulation;
  if (!kernel.counters.present() || !like.counters.present()) return;
  kernel.simulation.block_task_ns = ScaledBlockTaskNs(device, kernel, like);
  ScaleDemand(kernel.counters, like.counters, kernel.simulation.demand);
}

// Pairs count as just trusted, so that the kernel's own soon outweigh them. What was measured of
// the kernel itself stays.
void CopyPairs(const std::string& like, const std::string& kernel, Learned& learned) {
  std::vector<LearnedPair>& pairs = learned.pairs;
  const size_t known = pairs.size();
  const auto add = [&](LearnedPair pair) {
    const bool has = std::any_of(pairs.begin(), pairs.end(), [&](const LearnedPair& one) {
      return one.kernel == pair.kernel && one.neighbour == pair.neighbour && one.sms == pair.sms;
    });
    pair.speed.samples = std::min(pair.speed.samples, kPairSamplesTrusted);
    if (!has && pairs.size() < kMaxPairs) pairs.push_back(std::move(pair));
  };
  for (size_t i = 0; i < known; ++i) {
    const LearnedPair pair = pairs[i];
    if (pair.kernel == like) add({kernel, pair.neighbour, pair.sms, pair.speed});
    if (pair.neighbour == like) add({pair.kernel, kernel, pair.sms, pair.speed});
  }
}

}  // namespace

double DistanceOf(const KernelCounters& a, const KernelCounters& b) {
  double sum = 0;
  for (const auto share :
       {&KernelCounters::issue, &KernelCounters::fma, &KernelCounters::alu, &KernelCounters::tensor,
        &KernelCounters::special, &KernelCounters::lsu, &KernelCounters::shared,
        &KernelCounters::l1, &KernelCounters::l2, &KernelCounters::dram}) {
    sum += (a.*share - b.*share) * (a.*share - b.*share);
  }
  return std::sqrt(sum);
}

absl::StatusOr<std::string> FillLike(const LikeRequest& request, Profile& profile) {
  KernelDesc* const known = Find(profile, request.kernel);
  if (known != nullptr && known->simulation.present) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Kernel '", request.kernel, "' has a record, which that of another would replace."));
  }
  if (known == nullptr && profile.kernels.size() >= static_cast<size_t>(core::kMaxKernels)) {
    return absl::ResourceExhaustedError(absl::StrCat("The profile has ", profile.kernels.size(),
                                                     " kernels, and it can have no more."));
  }
  KernelCounters counters = request.counters;
  if (!counters.present() && known != nullptr) counters = known->counters;
  GPUSHARE_ASSIGN_OR_RETURN(const KernelDesc* const like, request.like.empty()
                                                              ? Nearest(profile, request, counters)
                                                              : Named(profile, request));
  Learned learned;
  if (!profile.learned.empty()) {
    GPUSHARE_ASSIGN_OR_RETURN(learned, ParseLearned(profile.learned));
  }
  std::string name = like->name;
  KernelDesc filled = known != nullptr ? *known : *like;
  filled.name = request.kernel;
  if (known == nullptr) filled.solo_hint_ns = 0;
  filled.counters = counters;
  FillRecord(profile.device, *like, filled);
  CopyPairs(name, request.kernel, learned);
  std::string text = FormatLearned(learned);
  // From here on nothing is refused. `like` points into the profile, which grows.
  if (known != nullptr) {
    *known = std::move(filled);
  } else {
    profile.kernels.push_back(std::move(filled));
  }
  profile.learned = std::move(text);
  return name;
}

}  // namespace gpushare::models
