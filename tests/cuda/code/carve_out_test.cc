// Which ordinary grids are launched with a carve-out of their own, and which one a fused function
// gets, with a fake driver.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "gpushare/device/launch.h"
#include "src/cuda/code/prepared_functions.h"
#include "src/cuda/graphs/prepared_graphs.h"
#include "src/cuda/lanes/claim_counters.h"
#include "src/cuda/launcher.h"
#include "src/cuda/library/library_calls.h"
#include "tests/cuda/graphs/fake_graphs.h"

namespace gpushare::cuda {
namespace {

constexpr uintptr_t kGridFunction = 1;
constexpr uintptr_t kWorkerFunction = 2;
constexpr uintptr_t kFusedFunction = 3;

// What the driver knows of a kernel of which eight blocks of 4 KB fit into an SM of 228 KB, and of
// its launches.
struct FakeFunctions {
  int of_grid = kDefaultCarveOut;  // preferred carve-outs, as somebody set them
  int of_workers = kDefaultCarveOut;
  int of_fused = kDefaultCarveOut;
  int blocks_per_sm = 0;
  int plain_launches = 0;
  std::optional<CUlaunchConfig> config;  // of the last other launch
  CUlaunchAttribute attribute = {};
};
FakeFunctions& Functions() {
  static FakeFunctions functions;
  return functions;
}
bool IsWorker(CUfunction function) {
  return reinterpret_cast<uintptr_t>(function) == kWorkerFunction;
}

bool IsFused(CUfunction function) {
  return reinterpret_cast<uintptr_t>(function) == kFusedFunction;
}
int& CarveOutOf(CUfunction function) {
  FakeFunctions& functions = Functions();
  if (IsFused(function)) return functions.of_fused;
  return IsWorker(function) ? functions.of_workers : functions.of_grid;
}

DriverApi ApiWithFunctions() {
  DriverApi api = MakeFakeGraphs();
  api.cuFuncLoad = [](CUfunction) { return CUDA_SUCCESS; };
  api.cuFuncSetAttribute = [](CUfunction function, CUfunction_attribute, int value) {
    CarveOutOf(function) = value;
    return CUDA_SUCCESS;
  };
  api.cuFuncGetParamInfo = [](CUfunction function, size_t index, size_t* offset, size_t* size) {
    *offset = 0;
    *size = sizeof(gpushare_worker_launch);
    if (IsFused(function) && index < 4) return CUDA_SUCCESS;  // (header, tensor, header, cuda)
    return IsWorker(function) && index == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  api.cuFuncGetAttribute = [](int* value, CUfunction_attribute attribute, CUfunction function) {
    const bool carve_out = attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
    *value = carve_out ? CarveOutOf(function) : 4096;
    return CUDA_SUCCESS;
  };
  api.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, CUfunction function, int,
                                                       size_t) {
    *blocks = IsWorker(function) || IsFused(function) ? 8 : Functions().blocks_per_sm;
    return CUDA_SUCCESS;
  };
  api.cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice /*gpu*/) {
    const bool reserved = attribute == CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK;
    *value = (reserved ? 1 : 228) * 1024;
    return CUDA_SUCCESS;
  };
  api.cuLaunchKernel = [](CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, CUstream, void**, void**) {
    ++Functions().plain_launches;
    return CUDA_SUCCESS;
  };
  api.cuLaunchKernelEx = [](const CUlaunchConfig* config, CUfunction, void**, void**) {
    Functions().config = *config;
    Functions().attribute = config->attrs[0];
    return CUDA_SUCCESS;
  };
  return api;
}

class CarveOutTest : public testing::Test {
 protected:
  // Registers the kernel as the scheduler does.
  void Register(int of_workers, int of_grid = kDefaultCarveOut, int blocks_per_sm = 8) {
    Functions() = FakeFunctions();
    Functions().of_workers = of_workers;
    Functions().of_grid = of_grid;
    Functions().blocks_per_sm = blocks_per_sm;
    functions_ = std::make_unique<PreparedFunctions>(context_);
    kernel_.id = core::KernelId{1};
    kernel_.resources.threads_per_block = 256;
    kernel_.resources.workers_per_sm_max = 4;
    kernel_.functions()->original = reinterpret_cast<void*>(kGridFunction);
    kernel_.functions()->worker = reinterpret_cast<void*>(kWorkerFunction);
    ASSERT_TRUE(functions_->Describe(kernel_).ok());
    ASSERT_TRUE(functions_->Prepare(kernel_).ok());
  }
  int CarveOut() const { return functions_->Find(kernel_.id)->original_carve_out; }

  void Launch(bool waits_for_empty_sms) {
    core::LaunchRequest request;
    request.parts[0].work.kernel = &kernel_;
    request.parts[0].block_count = 1000;
    request.waits_for_empty_sms = waits_for_empty_sms;
    const auto library = LibraryCalls::Make(context_.api(), nullptr);
    ClaimCounters counters;
    const auto lane = std::make_unique<CudaLane>();
    Launcher launcher(context_, places_, *functions_, graphs_, *library, counters);
    const absl::Status status = launcher.Enqueue(*lane, 1, request);
    ASSERT_TRUE(status.ok()) << status;
  }

  const Context context_{ApiWithFunctions(), 0, FakePrimary()};
  Places places_{context_};
  core::KernelDesc kernel_;
  std::unique_ptr<PreparedFunctions> functions_;
  const PreparedGraphs graphs_{context_, places_};
};

TEST_F(CarveOutTest, AGridHasOneWhereItsWorkersKeepL1) {
  Register(9);
  EXPECT_TRUE(kernel_.resources.keeps_l1);
  EXPECT_EQ(CarveOut(), 18) << "of 228 KB, 8 blocks of 4 KB and 1 KB each";
  Register(100);
  EXPECT_FALSE(kernel_.resources.keeps_l1);
  EXPECT_EQ(CarveOut(), kDefaultCarveOut);
  Register(kDefaultCarveOut);
  EXPECT_FALSE(kernel_.resources.keeps_l1);
  EXPECT_EQ(CarveOut(), kDefaultCarveOut);
}

TEST_F(CarveOutTest, TheCallersOwnChoiceStays) {
  Register(9, 50);
  EXPECT_EQ(CarveOut(), kDefaultCarveOut);
}

TEST_F(CarveOutTest, AGridThatFitsNoSmHasNone) {
  Register(9, kDefaultCarveOut, 0);
  EXPECT_EQ(CarveOut(), kDefaultCarveOut);
}

TEST_F(CarveOutTest, OnlyALaunchThatWaitsForEmptySmsHasIt) {
  Register(9);
  Launch(false);
  EXPECT_EQ(Functions().plain_launches, 1);
  EXPECT_FALSE(Functions().config.has_value());
  Launch(true);
  EXPECT_EQ(Functions().plain_launches, 1);
  ASSERT_TRUE(Functions().config.has_value());
  EXPECT_EQ(Functions().config->gridDimX, 1000U);
  EXPECT_EQ(Functions().config->gridDimY, 1U);
  EXPECT_EQ(Functions().config->blockDimX, 256U);
  EXPECT_EQ(Functions().config->numAttrs, 1U);
  EXPECT_EQ(Functions().attribute.id, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  EXPECT_EQ(Functions().attribute.value.sharedMemCarveout, 18U);
}

TEST_F(CarveOutTest, AGridWithoutOneIsLaunchedPlainly) {
  Register(100);
  Launch(true);
  EXPECT_EQ(Functions().plain_launches, 1);
}

// A fused twin of PTX comes from an assembler, where nobody has asked for its shared memory. With
// the driver's choice its blocks would divide an SM's memory otherwise than workers do.
TEST_F(CarveOutTest, AFusedFunctionAsksForTheMostUnlessItsCallerChose) {
  for (const auto& [chosen, expected] : {std::pair{kDefaultCarveOut, 100}, std::pair{50, 50}}) {
    Functions() = FakeFunctions();
    Functions().of_fused = chosen;
    core::FusedKernelDesc fused;
    fused.id = core::KernelId{1};
    fused.threads_per_block = 256;
    fused.function = reinterpret_cast<void*>(kFusedFunction);
    PreparedFunctions functions(context_);
    const absl::Status status = functions.PrepareFused(fused);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(Functions().of_fused, expected);
  }
}

}  // namespace
}  // namespace gpushare::cuda
