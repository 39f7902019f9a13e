// What the last reference of a kernel leaves behind it, seen from inside the C layer: nobody
// outside can submit such a kernel any more.

#include <gpushare/gpushare.h>

#include "bindings/c/handles.h"
#include "bindings/c/objects.h"
#include "gtest/gtest.h"
#include "tests/abi/api_fixture.h"

namespace gpushare::abi {
namespace {

class KernelReleaseTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(api_.Open({"sim", GPUSHARE_DRIVE_POLL}));
    graph_ = {gpushare_kernel_id(api_.graph)};
    plain_ = {gpushare_kernel_id(api_.sincos)};
  }
  void TearDown() override { api_.Close(); }

  absl::Status Submit(core::KernelId kernel, core::TaskKind kind) {
    core::TaskSpec spec;
    spec.queue = Find(api_.be_queue)->id;
    spec.kernel = kernel;
    spec.work.kind = kind;
    spec.work.block_tasks = kind == core::TaskKind::kKernel ? 64 : 0;
    spec.detached = true;
    return Find(api_.runtime)->scheduler->SubmitBe(spec).status();
  }

  gpushare_test::Api api_;
  core::KernelId graph_, plain_;
};

TEST_F(KernelReleaseTest, TheLastReferenceRetiresAGraph) {
  ASSERT_OK(gpushare_kernel_retain(api_.graph));
  ASSERT_OK(gpushare_kernel_release(api_.graph));
  EXPECT_TRUE(Submit(graph_, core::TaskKind::kGraph).ok()) << "a reference is left";
  ASSERT_OK(gpushare_kernel_release(api_.graph));
  api_.graph = nullptr;
  const absl::Status refused = Submit(graph_, core::TaskKind::kGraph);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
}

TEST_F(KernelReleaseTest, AKernelThatIsNoGraphStays) {
  ASSERT_OK(gpushare_kernel_release(api_.sincos));
  api_.sincos = nullptr;
  EXPECT_TRUE(Submit(plain_, core::TaskKind::kKernel).ok());
}

}  // namespace
}  // namespace gpushare::abi
