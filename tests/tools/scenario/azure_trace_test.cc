// The two public Azure LLM inference traces, read and scaled to a load. They lie outside the
// repository; GPUSHARE_DATA names their folder.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/scenario/arrivals.h"

namespace gpushare::tool {
namespace {

struct TraceFacts {
  const char* file;
  size_t rows;
  double cv;  // of the gaps, as published with the data
};

class AzureTraceTest : public ::testing::TestWithParam<TraceFacts> {};

TEST_P(AzureTraceTest, HasItsRowsItsShapeAndTheAskedLoad) {
  const char* folder = std::getenv("GPUSHARE_DATA");
  if (folder == nullptr) GTEST_SKIP() << "GPUSHARE_DATA does not name the folder of the traces.";
  const std::string path = std::string(folder) + "/" + GetParam().file;
  ArrivalSpec spec;
  spec.kind = ArrivalKind::kTrace;
  spec.times_ns = ParseTrace(ReadFile(path, kTraceBytesMax), path, {"TIMESTAMP"});
  EXPECT_EQ(spec.times_ns.size(), GetParam().rows);

  ArrivalRequest request = {.mean_gap_ns = 543'000 / 0.3, .queries_max = kQueriesMax};
  const std::vector<int64_t> times = MakeArrivals(spec, request);
  ASSERT_EQ(times.size(), spec.times_ns.size());
  const auto gaps = static_cast<double>(times.size() - 1);
  const double mean = static_cast<double>(times.back()) / gaps;
  EXPECT_NEAR(mean, request.mean_gap_ns, 1e-3 * request.mean_gap_ns);
  double squares = 0;
  for (size_t i = 1; i < times.size(); ++i) {
    const double off = static_cast<double>(times[i] - times[i - 1]) - mean;
    squares += off * off;
  }
  EXPECT_NEAR(std::sqrt(squares / gaps) / mean, GetParam().cv, 0.05 * GetParam().cv);
}

INSTANTIATE_TEST_SUITE_P(BothTraces, AzureTraceTest,
                         ::testing::Values(TraceFacts{"azure_llm_2023_code.csv", 8819, 13.2},
                                           TraceFacts{"azure_llm_2023_conv.csv", 19366, 1.1}));

}  // namespace
}  // namespace gpushare::tool
