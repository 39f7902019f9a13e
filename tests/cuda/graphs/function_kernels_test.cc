// Functions of modules that are loaded again as kernels, with a fake driver.

#include "src/cuda/graphs/function_kernels.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "src/core/base/limits.h"
#include "src/cuda/driver/context.h"
#include "src/cuda/driver/places.h"
#include "src/cuda/graphs/graph_binder.h"
#include "tests/cuda/code/fake_cubin.h"
#include "tests/cuda/graphs/fake_graphs.h"

namespace gpushare::cuda {
namespace {

// Handles are numbers. A function of a module is below 100; a library's kernel is 100 more than the
// library, and its function in the first context is the kernel's number.
struct FakeModules {
  int loads = 0;
  int unloads = 0;
  std::map<uintptr_t, int> registers;              // by function
  std::map<uintptr_t, std::vector<size_t>> bytes;  // of parameters, by function
  std::map<uintptr_t, int> shared_max;             // as set
  CUresult load = CUDA_SUCCESS;
};
FakeModules& Modules() {
  static FakeModules modules;
  return modules;
}
uintptr_t Number(const void* handle) { return reinterpret_cast<uintptr_t>(handle); }
template <class Handle>
Handle HandleOf(uintptr_t number) {
  return reinterpret_cast<Handle>(number);
}

DriverApi MakeApi() {
  Modules() = FakeModules();
  DriverApi api = MakeFakeGraphs();
  api.cuLibraryLoadData = [](CUlibrary* library, const void*, CUjit_option*, void**, unsigned int,
                             CUlibraryOption*, void**, unsigned int) {
    *library = HandleOf<CUlibrary>(static_cast<uintptr_t>(++Modules().loads));
    return Modules().load;
  };
  api.cuLibraryUnload = [](CUlibrary) {
    ++Modules().unloads;
    return CUDA_SUCCESS;
  };
  api.cuLibraryGetKernel = [](CUkernel* kernel, CUlibrary library, const char* name) {
    if (std::strcmp(name, "missing") == 0) return CUDA_ERROR_NOT_FOUND;
    *kernel = HandleOf<CUkernel>(100 + Number(library));
    return CUDA_SUCCESS;
  };
  api.cuKernelGetFunction = [](CUfunction* function, CUkernel kernel) {
    const bool first = FakeGraphs().current == FakePrimary() || FakeGraphs().current == nullptr;
    *function = HandleOf<CUfunction>(Number(kernel) + (first ? 0 : 1000));
    return CUDA_SUCCESS;
  };
  api.cuFuncGetName = [](const char** name, CUfunction) {
    *name = "softmax";
    return CUDA_SUCCESS;
  };
  api.cuFuncGetAttribute = [](int* value, CUfunction_attribute attribute, CUfunction function) {
    *value = 0;
    if (attribute == CU_FUNC_ATTRIBUTE_NUM_REGS) *value = Modules().registers[Number(function)];
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
      *value = Modules().shared_max[Number(function)];
    }
    return CUDA_SUCCESS;
  };
  api.cuFuncSetAttribute = [](CUfunction function, CUfunction_attribute attribute, int value) {
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
      Modules().shared_max[Number(function)] = value;
    }
    return CUDA_SUCCESS;
  };
  api.cuFuncGetParamInfo = [](CUfunction function, size_t index, size_t* offset, size_t* bytes) {
    const std::vector<size_t>& all = Modules().bytes[Number(function)];
    if (index >= all.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = 8 * index;
    *bytes = all[index];
    return CUDA_SUCCESS;
  };
  return api;
}

class FunctionKernelsTest : public testing::Test {
 protected:
  static core::FunctionImage ImageOf(uintptr_t function, const std::string& cubin,
                                     const std::string& name = "softmax") {
    return {HandleOf<const void*>(function), cubin, name};
  }

  const Context context_{MakeApi(), 0, FakePrimary()};
  KernelLibraries libraries_{context_.api()};
  FunctionKernels functions_{context_.api(), libraries_};
  const std::string cubin_ = Cubin({{".text.softmax"}});
  const std::string other_ = Cubin({{".text.softmax"}, {".nv.info"}});
  const CUfunction function_ = HandleOf<CUfunction>(7);
};

TEST_F(FunctionKernelsTest, AFunctionWithAnImageHasAKernel) {
  const std::vector<core::FunctionImage> images = {ImageOf(6, other_), ImageOf(7, cubin_)};
  functions_.Offer(images);
  EXPECT_EQ(Number(functions_.KernelOf(function_)), 101U);
  functions_.Close();
  EXPECT_EQ(Number(functions_.KernelOf(function_)), 101U) << "also for places that are made later";
  EXPECT_EQ(Modules().loads, 1) << "only what the graph has is loaded, and once";
}

TEST_F(FunctionKernelsTest, TheSameImageIsLoadedOnceForAllGraphs) {
  const std::vector<core::FunctionImage> images = {ImageOf(7, cubin_), ImageOf(8, cubin_)};
  FunctionKernels others(context_.api(), libraries_);
  functions_.Offer(images);
  others.Offer(images);
  EXPECT_NE(functions_.KernelOf(function_), nullptr);
  EXPECT_NE(others.KernelOf(HandleOf<CUfunction>(8)), nullptr);
  EXPECT_EQ(Modules().loads, 1);
  functions_ = FunctionKernels(context_.api(), libraries_);
  EXPECT_EQ(Modules().unloads, 0) << "the other graph uses it";
  others = FunctionKernels(context_.api(), libraries_);
  EXPECT_EQ(Modules().unloads, 1);
  functions_.Offer(images);
  EXPECT_NE(functions_.KernelOf(function_), nullptr);
  EXPECT_EQ(Modules().loads, 2) << "loaded again";
}

TEST_F(FunctionKernelsTest, ALostDeviceUnloadsNothing) {
  const std::vector<core::FunctionImage> images = {ImageOf(7, cubin_)};
  functions_.Offer(images);
  EXPECT_NE(functions_.KernelOf(function_), nullptr);
  functions_.Leak();
  functions_ = FunctionKernels(context_.api(), libraries_);
  EXPECT_EQ(Modules().unloads, 0);
}

TEST_F(FunctionKernelsTest, WhatIsInUseIsBounded) {
  const size_t half = core::kMaxFunctionImageBytes / 2;
  std::vector<std::string> cubins;
  std::vector<core::FunctionImage> images;
  for (uintptr_t function = 1; function <= 3; ++function) {
    cubins.push_back(cubin_ + std::string(half - cubin_.size(), static_cast<char>(function)));
  }
  for (uintptr_t function = 1; function <= 3; ++function) {
    images.push_back(ImageOf(function, cubins[function - 1]));
  }
  functions_.Offer(images);
  EXPECT_NE(functions_.KernelOf(HandleOf<CUfunction>(1)), nullptr);
  EXPECT_NE(functions_.KernelOf(HandleOf<CUfunction>(2)), nullptr);
  EXPECT_EQ(functions_.KernelOf(HandleOf<CUfunction>(3)), nullptr);
  EXPECT_NE(functions_.WhyNot().find("in use"), std::string::npos);
  functions_ = FunctionKernels(context_.api(), libraries_);
  functions_.Offer(images);
  EXPECT_NE(functions_.KernelOf(HandleOf<CUfunction>(3)), nullptr) << "what ended made room";
}

TEST_F(FunctionKernelsTest, TheLastImageOfAnAddressCounts) {
  const std::vector<core::FunctionImage> images = {ImageOf(7, cubin_, "missing"),
                                                   ImageOf(7, other_)};
  functions_.Offer(images);
  EXPECT_NE(functions_.KernelOf(function_), nullptr);
}

TEST_F(FunctionKernelsTest, WithoutAnImageTheReasonNamesTheKernel) {
  EXPECT_EQ(functions_.KernelOf(function_), nullptr);
  EXPECT_EQ(functions_.WhyNot(),
            "'softmax' is a function of a module, and no image of it is known");
}

TEST_F(FunctionKernelsTest, AModuleWithVariablesIsNotLoadedAgain) {
  const std::string with_variables = Cubin({{".text.softmax"}, {".nv.global"}});
  const std::vector<core::FunctionImage> images = {ImageOf(7, with_variables)};
  functions_.Offer(images);
  EXPECT_EQ(functions_.KernelOf(function_), nullptr);
  EXPECT_NE(functions_.WhyNot().find("variables (.nv.global)"), std::string::npos);
  EXPECT_EQ(Modules().loads, 0);
}

TEST_F(FunctionKernelsTest, OtherCodeOrParametersAreRefused) {
  const std::vector<core::FunctionImage> images = {ImageOf(7, cubin_), ImageOf(8, cubin_)};
  functions_.Offer(images);
  Modules().registers = {{7, 40}, {101, 48}};
  EXPECT_EQ(functions_.KernelOf(function_), nullptr);
  EXPECT_NE(functions_.WhyNot().find("other code"), std::string::npos);
  Modules().registers.clear();
  Modules().bytes = {{8, {8, 4}}, {101, {8, 8}}};
  EXPECT_EQ(functions_.KernelOf(HandleOf<CUfunction>(8)), nullptr);
  EXPECT_NE(functions_.WhyNot().find("other parameters"), std::string::npos);
}

TEST_F(FunctionKernelsTest, WhatTheDriverRefusesStaysBound) {
  Modules().load = CUDA_ERROR_NO_BINARY_FOR_GPU;
  const std::vector<core::FunctionImage> images = {ImageOf(7, cubin_)};
  functions_.Offer(images);
  EXPECT_EQ(functions_.KernelOf(function_), nullptr);
  EXPECT_FALSE(functions_.WhyNot().empty());
}

// A graph whose second kernel is a function of a module.
class BinderTest : public FunctionKernelsTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(places_.Split(132).ok());
    core::PlaceSpec spec;
    spec.groups = 4;
    ASSERT_TRUE(places_.Create(1, spec).ok());
    graph_.AddKernel();
    CUDA_KERNEL_NODE_PARAMS& params = graph_.AddKernel().kernel;
    params.kern = nullptr;
    params.func = function_;
  }
  const CUDA_KERNEL_NODE_PARAMS& Second() const { return graph_.nodes[1]->kernel; }

  Places places_{context_};
  FakeGraph graph_;
};

TEST_F(BinderTest, AFunctionRunsInThePlaceByItsKernelWithItsAttributes) {
  Modules().shared_max[7] = 100'000;
  const std::vector<core::FunctionImage> images = {ImageOf(7, cubin_)};
  functions_.Offer(images);
  GraphBinder binder(context_, places_, 1, &functions_);
  const auto bound = binder.BindGraph(graph_.handle());
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_TRUE(*bound);
  EXPECT_EQ(Number(Second().kern), 101U);
  EXPECT_EQ(Second().func, nullptr);
  EXPECT_EQ(Second().ctx, binder.target());
  EXPECT_EQ(Modules().shared_max[1101], 100'000) << "of the function in the place";
}

TEST_F(BinderTest, WithoutAnImageTheGraphIsNotBound) {
  GraphBinder binder(context_, places_, 1, &functions_);
  const auto bound = binder.BindGraph(graph_.handle());
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_FALSE(*bound);
  const auto can = GraphBinder::CanBind(context_.api(), graph_.handle(), functions_);
  ASSERT_TRUE(can.ok());
  EXPECT_FALSE(*can);
}

TEST_F(BinderTest, OfACaptureInThePlaceOnlyFunctionsAreBound) {
  const std::vector<core::FunctionImage> images = {ImageOf(7, cubin_)};
  functions_.Offer(images);
  GraphBinder binder(context_, places_, 1, &functions_);
  const CUcontext captured = HandleOf<CUcontext>(4242);
  for (const auto& node : graph_.nodes) node->kernel.ctx = captured;
  const auto bound = binder.BindFunctions(graph_.handle());
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_TRUE(*bound);
  EXPECT_EQ(graph_.nodes[0]->kernel.ctx, captured);
  EXPECT_EQ(Number(Second().kern), 101U);
  EXPECT_EQ(Second().ctx, binder.target());
}

TEST_F(BinderTest, TheWholeDeviceTakesFunctionsAsTheyAre) {
  GraphBinder binder(context_, places_, core::kWholeDevice, &functions_);
  const auto bound = binder.BindGraph(graph_.handle());
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_TRUE(*bound);
  EXPECT_EQ(Second().func, function_);
}

}  // namespace
}  // namespace gpushare::cuda
