// The names of the policies.

#include "src/core/policies/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpushare::core {
namespace {

using ::testing::HasSubstr;

TEST(RegistryTest, MakesEveryPolicyUnderItsOwnName) {
  EXPECT_EQ(PolicyNames().size(), 19u);
  for (const std::string& name : PolicyNames()) {
    std::unique_ptr<Policy> policy = MakePolicy(name).value();
    EXPECT_EQ(policy->name(), name);
  }
}

TEST(RegistryTest, AnUnknownNameIsRefusedWithTheKnownOnes) {
  const absl::Status status = MakePolicy("drr").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'drr' is not known"));
  for (const std::string& name : PolicyNames()) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
  EXPECT_FALSE(MakePolicy("").ok());
  EXPECT_FALSE(MakePolicy("adaptive:").ok());
}

}  // namespace
}  // namespace gpushare::core
