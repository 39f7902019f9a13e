// The built-in policies by name. See registry.h.

#include "src/core/policies/registry.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/core/policies/adaptive/adaptive.h"
#include "src/core/policies/baselines/bare.h"
#include "src/core/policies/baselines/fifo.h"
#include "src/core/policies/baselines/priority.h"
#include "src/core/policies/papers/baymax.h"
#include "src/core/policies/papers/kernelet.h"
#include "src/core/policies/papers/partitioned.h"
#include "src/core/policies/papers/smguard.h"
#include "src/core/policies/papers/tacker.h"
#include "src/core/policies/papers/tacker_direct.h"

namespace gpushare::core {

absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(absl::string_view name) {
  if (name == "bare") return std::make_unique<BarePolicy>();
  if (name == "fifo") return std::make_unique<FifoPolicy>();
  if (name == "priority") return std::make_unique<PriorityPolicy>();
  if (name == "baymax") return std::make_unique<BaymaxPolicy>(BaymaxForm::kWhole);
  if (name == "baymax:nc") return std::make_unique<BaymaxPolicy>(BaymaxForm::kNoRefill);
  if (name == "baymax:np") return std::make_unique<BaymaxPolicy>(BaymaxForm::kNoPcie);
  if (name == "kernelet") return std::make_unique<KerneletPolicy>(/*base=*/false);
  if (name == "kernelet:base") return std::make_unique<KerneletPolicy>(/*base=*/true);
  if (name == "tacker") return std::make_unique<TackerPolicy>();
  if (name == "tacker:direct") return std::make_unique<TackerDirectPolicy>();
  if (name == "smguard") {
    return std::make_unique<SmguardPolicy>(/*packed=*/false, Reservations::kAlways);
  }
  if (name == "smguard:active") {
    return std::make_unique<SmguardPolicy>(/*packed=*/false, Reservations::kWhileActive);
  }
  if (name == "smguard:packed") {
    return std::make_unique<SmguardPolicy>(/*packed=*/true, Reservations::kAlways);
  }
  if (name == "partitioned") return std::make_unique<PartitionedPolicy>();
  if (name == "adaptive") return std::make_unique<AdaptivePolicy>(Mechanism::kBest);
  if (name == "adaptive:evict") return std::make_unique<AdaptivePolicy>(Mechanism::kEvict);
  if (name == "adaptive:partition") {
    return std::make_unique<AdaptivePolicy>(Mechanism::kPartition);
  }
  if (name == "adaptive:apart") {
    return std::make_unique<AdaptivePolicy>(Mechanism::kBest, SmSharing::kNone);
  }
  if (name == "adaptive:elastic") return std::make_unique<AdaptivePolicy>(Mechanism::kElastic);
  return absl::InvalidArgumentError(absl::StrCat("The policy '", name,
                                                 "' is not known; the known policies are ",
                                                 absl::StrJoin(PolicyNames(), ", "), "."));
}

std::vector<std::string> PolicyNames() {
  return {"adaptive",
          "adaptive:evict",
          "adaptive:partition",
          "adaptive:elastic",
          "adaptive:apart",
          "smguard",
          "smguard:packed",
          "smguard:active",
          "kernelet",
          "kernelet:base",
          "tacker",
          "tacker:direct",
          "baymax",
          "baymax:nc",
          "baymax:np",
          "partitioned",
          "priority",
          "fifo",
          "bare"};
}

}  // namespace gpushare::core
