// A command without memory says so and ends with exit code 1, wherever in a scenario the parser is.

#include "tools/gpushare/command/exhaustion.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/faults/failing_allocations.h"
#include "tools/gpushare/command/command.h"

namespace gpushare::tool {
namespace {

TEST(ExhaustionTest, ACommandWithoutMemoryEndsWithASentence) {
  if (!gpushare_test::CanFailAllocations()) {
    GTEST_SKIP() << "A sanitizer replaces the allocator.";
  }
  const char* const scenarios = std::getenv("GPUSHARE_TEST_SCENARIOS");
  ASSERT_NE(scenarios, nullptr);
  const std::string scenario = std::string(scenarios) + "/h200_measured.json";
  const char* const arguments[] = {"gpushare", "validate", scenario.c_str()};
  for (const int64_t first : {1, 10, 100, 500, 1000, 1500}) {
    SCOPED_TRACE(first);
    EXPECT_EXIT(
        {
          ExitWhenMemoryIsExhausted();
          const gpushare_test::FailingAllocations failures(
              first, gpushare_test::Failing::kFromThereOn, gpushare_test::Of::kEveryThread);
          std::_Exit(RunCommand(3, arguments));
        },
        ::testing::ExitedWithCode(1), "memory is exhausted");
  }
}

}  // namespace
}  // namespace gpushare::tool
