// The metrics that are counted, by the real CUPTI where it is installed: it needs no GPU to say
// which of them a GPU has. Skips without CUPTI.

#include <gtest/gtest.h>

#include <vector>

#include "src/cuda/counters/cupti.h"
#include "src/cuda/counters/metrics.h"

namespace gpushare::cuda {
namespace {

using cupti::Make;

TEST(CountedMetricsTest, A100H200AndB200HaveThem) {
  const absl::StatusOr<cupti::Calls> calls = cupti::Open();
  if (!calls.ok()) GTEST_SKIP() << calls.status();
  for (const char* const chip : {"GA100", "GH100", "GB100"}) {
    auto host = Make<cupti::HostInitializeParams>();
    host.chip = chip;
    ASSERT_EQ(calls->host_initialize(&host), cupti::kSuccess) << chip;
    std::vector<const char*> names(CountedMetrics().begin(), CountedMetrics().end());
    for (const char*& name : names) {
      auto metric = Make<cupti::AddMetricsParams>();
      metric.host = host.host;
      metric.names = &name;
      metric.count = 1;
      EXPECT_EQ(calls->add_metrics(&metric), cupti::kSuccess) << chip << " " << name;
    }
    auto wrong = Make<cupti::AddMetricsParams>();
    const char* none = "smsp__inst_of_nobody.sum";
    wrong.host = host.host;
    wrong.names = &none;
    wrong.count = 1;
    const int answer = calls->add_metrics(&wrong);
    EXPECT_TRUE(answer == cupti::kInvalidParameter || answer == cupti::kInvalidMetricName)
        << answer;
    auto close = Make<cupti::HostParams>();
    close.host = host.host;
    EXPECT_EQ(calls->host_deinitialize(&close), cupti::kSuccess);
  }
}

}  // namespace
}  // namespace gpushare::cuda
