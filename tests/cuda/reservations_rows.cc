// See reservations_rows.h.

#include "tests/cuda/reservations_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "tests/cuda/reservations_kernels.h"

namespace gpushare::cuda {
namespace {

Json& All() {
  static Json rows = Json::array();
  return rows;
}

class File : public testing::Environment {
 public:
  void TearDown() override {
    const char* const path = std::getenv("GPUSHARE_RESERVATIONS_JSON");
    if (path == nullptr || All().empty()) return;
    std::ofstream file(path);
    file << Json{{"gpu", GpuName()}, {"eviction_us", kEvictionNs / 1000}, {"rows", All()}}.dump(1)
         << "\n";
    EXPECT_TRUE(file.good()) << "The file '" << path << "' cannot be written.";
  }
};
[[maybe_unused]] const auto* const kFile = testing::AddGlobalTestEnvironment(new File);

}  // namespace

std::string NameOfRow(const char* policy, Work work) {
  std::string name = std::string(policy) + "_" + NameOf(work);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

void AddRow(const Json& row) { All().push_back(row); }

}  // namespace gpushare::cuda
