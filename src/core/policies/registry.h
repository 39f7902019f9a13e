// The built-in policies by name.

#ifndef GPUSHARE_SRC_CORE_POLICIES_REGISTRY_H_
#define GPUSHARE_SRC_CORE_POLICIES_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/core/seams/policy.h"

namespace gpushare::core {

// Makes a policy by name: "fifo", "priority", "baymax", "baymax:nc", "baymax:np", "tacker",
// "tacker:direct", "kernelet", "kernelet:base", "smguard", "smguard:active", "smguard:packed",
// "adaptive", "adaptive:evict", "adaptive:partition", "adaptive:elastic", and "bare" (the
// reference: everything is launched at once on plain lanes and the library's own costs are left
// out). INVALID_ARGUMENT names the known ones.
absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(absl::string_view name);
std::vector<std::string> PolicyNames();

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_REGISTRY_H_
