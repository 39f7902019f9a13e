// A policy that plans what a test says.

#ifndef GPUSHARE_TESTS_CORE_PLAN_WITH_H_
#define GPUSHARE_TESTS_CORE_PLAN_WITH_H_

#include <functional>
#include <utility>

#include "absl/strings/string_view.h"
#include "src/core/seams/policy.h"

namespace gpushare::core {

class PlanWith final : public Policy {
 public:
  explicit PlanWith(std::function<void(const Snapshot&, Plan&)> plan,
                    const PolicyProperties& properties = {})
      : plan_(std::move(plan)), properties_(properties) {}
  absl::string_view name() const override { return "test"; }
  PolicyProperties properties() const override { return properties_; }
  void MakePlan(const Snapshot& snapshot, Plan& plan) override { plan_(snapshot, plan); }

 private:
  std::function<void(const Snapshot&, Plan&)> plan_;
  PolicyProperties properties_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_TESTS_CORE_PLAN_WITH_H_
