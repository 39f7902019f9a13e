// What becomes of a kernel's PTX on a fake driver: its functions, their registers, their end.

#include "src/cuda/code/ptx_functions.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gpushare/device/launch.h"
#include "gtest/gtest.h"
#include "src/cuda/code/prepared_functions.h"
#include "src/cuda/code/shared_memory.h"
#include "src/ptx/twin.h"
#include "tests/cuda/code/fake_cubin.h"
#include "tests/cuda/graphs/fake_graphs.h"

namespace gpushare::cuda {
namespace {

using testing::HasSubstr;

constexpr char kScale[] = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 out)
.reqntid 128
{
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  ret;
}
)";

constexpr CUfunction_attribute kDynamicBytesMax = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
// Of shared memory: of every function, and the most of a block without and with the opt-in.
constexpr int kStaticBytes = 1024;
constexpr int kDefaultBytesMax = 48 * 1024;
constexpr int kOptInBytesMax = 227 * 1024;

// A function is a number: the position of its name, and of the code that it comes from.
struct FakeFunction {
  std::string name;
  std::string code;
  int dynamic_bytes_max = kDefaultBytesMax - kStaticBytes;
};
struct FakeLoader {
  std::vector<std::string> codes;
  std::vector<FakeFunction> functions;
  int libraries = 0;  // loaded and not unloaded
  // By function; what they answer is of its name and code.
  std::function<int(const FakeFunction&)> blocks = [](const FakeFunction&) { return 8; };
  std::function<int(const FakeFunction&)> registers = [](const FakeFunction&) { return 33; };
  std::function<int(const FakeFunction&)> spills = [](const FakeFunction&) { return 0; };
};
FakeLoader& Loader() {
  static FakeLoader loader;
  return loader;
}
template <class Handle>
FakeFunction& FunctionOf(Handle handle) {
  return Loader().functions[reinterpret_cast<uintptr_t>(handle) - 1];
}
bool IsWorker(const FakeFunction& function) {
  return function.name.find("workers") != std::string::npos;
}

DriverApi ApiWithLoader() {
  DriverApi api = MakeFakeGraphs();
  api.cuLibraryLoadData = [](CUlibrary* library, const void* code, CUjit_option*, void**, unsigned,
                             CUlibraryOption*, void**, unsigned) {
    Loader().codes.emplace_back(static_cast<const char*>(code));
    ++Loader().libraries;
    *library = reinterpret_cast<CUlibrary>(Loader().codes.size());
    return CUDA_SUCCESS;
  };
  api.cuLibraryUnload = [](CUlibrary) {
    --Loader().libraries;
    return CUDA_SUCCESS;
  };
  api.cuLibraryGetKernel = [](CUkernel* kernel, CUlibrary library, const char* name) {
    Loader().functions.push_back({name, Loader().codes[reinterpret_cast<uintptr_t>(library) - 1]});
    *kernel = reinterpret_cast<CUkernel>(Loader().functions.size());
    return CUDA_SUCCESS;
  };
  api.cuKernelGetFunction = [](CUfunction* function, CUkernel kernel) {
    *function = reinterpret_cast<CUfunction>(kernel);
    return CUDA_SUCCESS;
  };
  api.cuFuncGetAttribute = [](int* value, CUfunction_attribute attribute, CUfunction function) {
    const FakeFunction& of = FunctionOf(function);
    *value = attribute == CU_FUNC_ATTRIBUTE_NUM_REGS           ? Loader().registers(of)
             : attribute == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES ? Loader().spills(of)
             : attribute == kDynamicBytesMax                   ? of.dynamic_bytes_max
                                                               : kStaticBytes;
    return CUDA_SUCCESS;
  };
  api.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, CUfunction function, int,
                                                       size_t dynamic_bytes) {
    const FakeFunction& of = FunctionOf(function);
    const bool allowed = static_cast<int>(dynamic_bytes) <= of.dynamic_bytes_max;
    *blocks = allowed ? Loader().blocks(of) : 0;
    return CUDA_SUCCESS;
  };
  api.cuFuncLoad = [](CUfunction) { return CUDA_SUCCESS; };
  api.cuFuncSetAttribute = [](CUfunction function, CUfunction_attribute attribute, int value) {
    if (attribute != kDynamicBytesMax) return CUDA_SUCCESS;
    if (value > kOptInBytesMax - kStaticBytes) return CUDA_ERROR_INVALID_VALUE;
    FunctionOf(function).dynamic_bytes_max = value;
    return CUDA_SUCCESS;
  };
  // Twins take a header, and no kernel an argument.
  api.cuFuncGetParamInfo = [](CUfunction function, size_t index, size_t* offset, size_t* bytes) {
    *offset = 0;
    *bytes = sizeof(gpushare_worker_launch);
    const bool is_header = index == 0 && FunctionOf(function).name != "scale";
    return is_header ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  return api;
}

// Its code is the text, or what the test says.
class FakeAssembler : public Assembler {
 public:
  explicit FakeAssembler(std::string& code) : code_(code) {}
  std::string Name() const override { return "fake"; }
  std::string Options() const override { return ""; }
  absl::StatusOr<std::string> Assemble(absl::string_view text,
                                       absl::string_view /*architecture*/) const override {
    return code_.empty() ? std::string(text) : code_;
  }

 private:
  std::string& code_;
};

class PtxFunctionsTest : public testing::Test {
 protected:
  PtxFunctionsTest() {
    Loader() = FakeLoader();
    functions_.UseAssembly(MakeAssembly());
    kernel_ = Kernel(1);
  }
  std::unique_ptr<Assembly> MakeAssembly() {
    auto assembly = std::make_unique<Assembly>(CodeCache(""), "sm_90a");
    assembly->Add(std::make_unique<FakeAssembler>(code_));
    return assembly;
  }

  static core::KernelDesc Kernel(uint32_t id) {
    const ptx::Twin twin = ptx::Transform(kScale, "scale", {.workers = true, .slice = true});
    EXPECT_TRUE(twin.ok()) << twin.refusal.message;
    core::KernelDesc kernel;
    kernel.id = core::KernelId{id};
    kernel.name = "scale it";
    kernel.evictable = true;
    kernel.resources.threads_per_block = 128;
    core::PtxCode code;
    code.text = kScale;
    code.entry = "scale";
    code.module = twin.text;
    code.worker.entry = twin.worker_entry;
    code.slice.entry = twin.slice_entry;
    kernel.code = code;
    return kernel;
  }
  const core::FunctionCode& Functions() const { return kernel_.ptx()->functions; }

  std::string code_;  // of the next assembly; "": the text
  Context context_{ApiWithLoader(), 0, FakePrimary()};
  PtxFunctions functions_{context_};
  core::KernelDesc kernel_;
};

TEST_F(PtxFunctionsTest, OneModuleHasAllFormsAndGoesWithItsKernel) {
  ASSERT_TRUE(functions_.Load(kernel_).ok());
  EXPECT_EQ(FunctionOf(Functions().original).name, "scale");
  EXPECT_EQ(FunctionOf(Functions().worker).name, kernel_.ptx()->worker.entry);
  EXPECT_EQ(FunctionOf(Functions().slice).name, kernel_.ptx()->slice.entry);
  EXPECT_EQ(Loader().codes.size(), 1u);
  functions_.Keep(kernel_);
  core::KernelDesc other = Kernel(2);
  ASSERT_TRUE(functions_.Load(other).ok());
  EXPECT_EQ(Loader().libraries, 2);
  functions_.Keep(other);
  functions_.Release(kernel_.id);
  EXPECT_EQ(Loader().libraries, 1);
  functions_.Release(kernel_.id);
  functions_.Release(other.id);
  EXPECT_EQ(Loader().libraries, 0);
}

TEST_F(PtxFunctionsTest, WhatNobodyKeptGoesWithTheNextLoad) {
  ASSERT_TRUE(functions_.Load(kernel_).ok());
  core::KernelDesc other = Kernel(2);
  ASSERT_TRUE(functions_.Load(other).ok());
  EXPECT_EQ(Loader().libraries, 1);
}

TEST_F(PtxFunctionsTest, ALostDeviceUnloadsNothing) {
  ASSERT_TRUE(functions_.Load(kernel_).ok());
  functions_.Keep(kernel_);
  functions_.Leak();
  functions_.Release(kernel_.id);
  EXPECT_EQ(Loader().libraries, 1);
}

TEST_F(PtxFunctionsTest, ATwinWithFewerWorkersGetsTheRegistersOfTheOriginal) {
  const auto capped = [](const FakeFunction& of) {
    return of.code.find(".maxnreg 40") != std::string::npos;  // 33, rounded up to 8
  };
  Loader().blocks = [&](const FakeFunction& of) { return IsWorker(of) && !capped(of) ? 6 : 8; };
  ASSERT_TRUE(functions_.Load(kernel_).ok());
  EXPECT_TRUE(capped(FunctionOf(Functions().worker)));
  EXPECT_EQ(Loader().libraries, 1) << "the first module is unloaded";
  Loader().spills = [&](const FakeFunction& of) { return IsWorker(of) && capped(of) ? 16 : 0; };
  kernel_ = Kernel(1);
  ASSERT_TRUE(functions_.Load(kernel_).ok());
  EXPECT_FALSE(capped(FunctionOf(Functions().worker))) << "it spills";
  EXPECT_EQ(Loader().libraries, 1);
}

TEST_F(PtxFunctionsTest, ATwinThatFitsOnNoSmIsRefused) {
  Loader().blocks = [](const FakeFunction& of) { return IsWorker(of) ? 0 : 1; };
  ASSERT_TRUE(functions_.Load(kernel_).ok());
  EXPECT_EQ(Functions().worker, nullptr);
  EXPECT_NE(Functions().slice, nullptr);
  EXPECT_FALSE(kernel_.ptx()->worker.made());
  EXPECT_THAT(kernel_.ptx()->worker.refusal, HasSubstr("1024 bytes of static"));
  EXPECT_FALSE(kernel_.evictable);
}

// Triton's matrix products have 48 KB of dynamic memory, and a twin has some static memory.
TEST_F(PtxFunctionsTest, ATwinMayHaveMoreSharedMemoryThanTheDefault) {
  kernel_.resources.dynamic_shared_memory_bytes = kDefaultBytesMax;
  ASSERT_TRUE(functions_.Load(kernel_).ok());
  ASSERT_NE(Functions().worker, nullptr) << kernel_.ptx()->worker.refusal;
  EXPECT_NE(Functions().slice, nullptr) << kernel_.ptx()->slice.refusal;
  kernel_ = Kernel(1);
  kernel_.resources.dynamic_shared_memory_bytes = kOptInBytesMax;
  ASSERT_TRUE(functions_.Load(kernel_).ok());
  EXPECT_EQ(Functions().worker, nullptr) << "with its static memory it is too much";
}

TEST_F(PtxFunctionsTest, WhatAFunctionAllowsIsNeverLowered) {
  kernel_.resources.dynamic_shared_memory_bytes = 2 * kDefaultBytesMax;
  ASSERT_TRUE(functions_.Load(kernel_).ok());
  FakeFunction& worker = FunctionOf(Functions().worker);
  EXPECT_EQ(worker.dynamic_bytes_max, 2 * kDefaultBytesMax);
  const auto allow = [&](int32_t bytes) {
    return AllowSharedMemory(context_.api(), static_cast<CUfunction>(Functions().worker), bytes);
  };
  EXPECT_TRUE(allow(kDefaultBytesMax).ok());
  EXPECT_TRUE(allow(0).ok());
  EXPECT_EQ(worker.dynamic_bytes_max, 2 * kDefaultBytesMax);
}

TEST_F(PtxFunctionsTest, AKernelThatMustBeEvictableNeedsAWorkerThatFits) {
  kernel_.ptx()->must_evict = true;
  ASSERT_TRUE(functions_.Load(kernel_).ok());
  Loader().blocks = [](const FakeFunction& of) { return IsWorker(of) ? 0 : 1; };
  kernel_ = Kernel(1);
  kernel_.ptx()->must_evict = true;
  const absl::Status status = functions_.Load(kernel_);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_THAT(status.message(), HasSubstr("no worker form"));
  EXPECT_EQ(Loader().libraries, 0);
}

TEST_F(PtxFunctionsTest, TheCallersOwnOriginalMayHaveNoVariables) {
  int own = 0;
  kernel_.ptx()->functions.original = &own;
  code_ = Cubin({{".text.scale"}});
  ASSERT_TRUE(functions_.Load(kernel_).ok());
  EXPECT_EQ(Functions().original, &own);
  EXPECT_NE(Functions().worker, nullptr);
  kernel_ = Kernel(1);
  kernel_.ptx()->functions.original = &own;
  code_ = Cubin({{".text.scale"}, {".nv.global"}});
  const absl::Status status = functions_.Load(kernel_);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(status.message(), HasSubstr(".nv.global"));
}

TEST_F(PtxFunctionsTest, ARefusedKernelWithItsOwnOriginalLoadsNothing) {
  int own = 0;
  kernel_.ptx()->functions.original = &own;
  kernel_.ptx()->worker = kernel_.ptx()->slice = {.refusal = "No.", .line = 1};
  ASSERT_TRUE(functions_.Load(kernel_).ok());
  EXPECT_TRUE(Loader().codes.empty());
  kernel_.ptx()->functions.original = nullptr;
  kernel_.ptx()->module.clear();
  ASSERT_TRUE(functions_.Load(kernel_).ok());
  EXPECT_EQ(Loader().codes.at(0), kScale) << "the text alone, as it was given";
  kernel_.ptx()->functions.original = nullptr;
  kernel_.ptx()->entry.clear();
  const absl::Status status = functions_.Load(kernel_);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
}

// Kernels whose original is the application's, as far as graphs are concerned.
class TwinsOfGraphsTest : public PtxFunctionsTest {
 protected:
  TwinsOfGraphsTest() {
    prepared_.UseAssembly(MakeAssembly());
    code_ = Cubin({{".text.scale"}});
    Loader().functions.push_back({"scale", "of the application"});
  }
  void Register(core::KernelDesc kernel, bool graph_nodes) {
    kernel.ptx()->functions.original = kOwn;
    kernel.ptx()->graph_nodes = graph_nodes;
    absl::Status status = prepared_.Describe(kernel);
    if (status.ok()) status = prepared_.Prepare(kernel);
    ASSERT_TRUE(status.ok()) << status;
  }

  const CUfunction kOwn = reinterpret_cast<CUfunction>(uintptr_t{1});  // NOLINT
  PreparedFunctions prepared_{context_};
};

TEST_F(TwinsOfGraphsTest, OnlyAKernelThatIsMeantForGraphsIsATwin) {
  ASSERT_NO_FATAL_FAILURE(Register(kernel_, false));
  EXPECT_FALSE(prepared_.HasTwins());
  EXPECT_FALSE(prepared_.TwinOf(kOwn).has_value());
  ASSERT_NO_FATAL_FAILURE(Register(Kernel(2), true));
  EXPECT_TRUE(prepared_.HasTwins());
  const std::optional<WorkerTwin> twin = prepared_.TwinOf(kOwn);
  ASSERT_TRUE(twin.has_value());
  EXPECT_EQ(twin->entry, "scale");
  EXPECT_EQ(FunctionOf(twin->original).name, "scale");
  EXPECT_NE(twin->original, kOwn) << "the module's own";
  EXPECT_TRUE(IsWorker(FunctionOf(twin->kernel.worker.function)));
}

// Its tasks may still run its functions, so they stay.
TEST_F(TwinsOfGraphsTest, AKernelThatIsGivenUpIsNoTwinAnyMore) {
  ASSERT_NO_FATAL_FAILURE(Register(kernel_, true));
  prepared_.Forget(kernel_.id);
  EXPECT_FALSE(prepared_.HasTwins());
  EXPECT_FALSE(prepared_.TwinOf(kOwn).has_value());
  EXPECT_EQ(Loader().libraries, 1);
}

TEST_F(TwinsOfGraphsTest, TheNumberOfAKernelMayBeGivenToAnother) {
  ASSERT_NO_FATAL_FAILURE(Register(kernel_, true));
  ASSERT_NO_FATAL_FAILURE(Register(kernel_, false));
  EXPECT_FALSE(prepared_.TwinOf(kOwn).has_value());
}

}  // namespace
}  // namespace gpushare::cuda
