// The policy seam: a pure function from a snapshot to a plan.
//
// A policy keeps no state that changes its answers (memoised results of the snapshot's own tables
// aside), reads no clock and calls no device. The scheduler thread calls it.

#ifndef GPUSHARE_SRC_CORE_SEAMS_POLICY_H_
#define GPUSHARE_SRC_CORE_SEAMS_POLICY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

class Policy {
 public:
  virtual ~Policy() = default;
  virtual absl::string_view name() const = 0;
  // `plan` is cleared. Must not allocate.
  virtual void MakePlan(const Snapshot& snapshot, Plan& plan) = 0;
};

// Makes a policy by name: "fifo", "priority", "baymax", "smguard", "smguard:packed", "adaptive",
// "adaptive:evict", "adaptive:partition", "adaptive:elastic", and "bare" (the reference: everything
// is launched at once on plain lanes and the library's own costs are left out).
// INVALID_ARGUMENT names the known ones.
absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(absl::string_view name);
std::vector<std::string> PolicyNames();

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_POLICY_H_
