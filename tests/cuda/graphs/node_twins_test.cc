// Which nodes of a graph may run as the workers of a twin, with a fake driver.

#include "src/cuda/graphs/node_twins.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "tests/cuda/graphs/fake_graphs.h"

namespace gpushare::cuda {
namespace {

constexpr int64_t kSegmentNs = 100'000;
constexpr int32_t kSms = 132;
constexpr unsigned int kBlocks = 132 * 8 * 10;  // ten rounds of eight workers an SM

const CUfunction kOriginal = reinterpret_cast<CUfunction>(intptr_t{11});  // NOLINT
const CUfunction kWorker = reinterpret_cast<CUfunction>(intptr_t{12});    // NOLINT
const CUfunction kOfModule = reinterpret_cast<CUfunction>(intptr_t{13});  // NOLINT

// What the driver answers of functions; the module's own original has 4,096 bytes and 256 threads.
struct Answers {
  CUresult of_library = CUDA_SUCCESS;    // the function of a kernel of a library
  CUresult of_attribute = CUDA_SUCCESS;  // each attribute of a node
  CUresult of_name = CUDA_SUCCESS;
  const char* name = "scale";
  int shared_bytes = 4096;
  int threads_max = 256;
  int library_calls = 0;
};
Answers& Fake() {
  static Answers answers;
  return answers;
}

// Bytes of each parameter; the worker's first one is the header.
std::vector<size_t>& ParametersOf(CUfunction function) {
  static std::vector<size_t> original;
  static std::vector<size_t> worker;
  return function == kOriginal ? original : worker;
}

DriverApi ApiWithParameters() {
  Fake() = Answers();
  DriverApi api = MakeFakeGraphs();
  static decltype(api.cuGraphKernelNodeGetAttribute) get_attribute;
  get_attribute = api.cuGraphKernelNodeGetAttribute;
  api.cuGraphKernelNodeGetAttribute = [](CUgraphNode node, CUlaunchAttributeID id,
                                         CUlaunchAttributeValue* value) {
    const CUresult code = Fake().of_attribute;
    return code == CUDA_SUCCESS ? get_attribute(node, id, value) : code;
  };
  api.cuFuncGetName = [](const char** name, CUfunction /*function*/) {
    *name = Fake().name;
    return Fake().of_name;
  };
  api.cuFuncGetAttribute = [](int* value, CUfunction_attribute attribute, CUfunction function) {
    const bool shared = attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES;
    const bool of_module = function == kOfModule;
    *value =
        shared ? (of_module ? 4096 : Fake().shared_bytes) : (of_module ? 256 : Fake().threads_max);
    return CUDA_SUCCESS;
  };
  api.cuFuncGetParamInfo = [](CUfunction function, size_t index, size_t* offset, size_t* bytes) {
    const std::vector<size_t>& parameters = ParametersOf(function);
    if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = 64 * index;
    *bytes = parameters[index];
    return CUDA_SUCCESS;
  };
  api.cuKernelGetFunction = [](CUfunction* function, CUkernel /*kernel*/) {
    ++Fake().library_calls;
    *function = kOriginal;
    return Fake().of_library;
  };
  return api;
}

class NodeTwinsTest : public testing::Test {
 protected:
  void SetUp() override {
    ParametersOf(kOriginal) = {8, 4};
    ParametersOf(kWorker) = {136, 8, 4};
    node_ = &graph_.Add(CU_GRAPH_NODE_TYPE_KERNEL);
    CUDA_KERNEL_NODE_PARAMS& kernel = node_->kernel;
    kernel.func = kOriginal;
    kernel.gridDimX = kBlocks;
    kernel.gridDimY = kernel.gridDimZ = 1;
    kernel.blockDimX = 128;
    kernel.blockDimY = kernel.blockDimZ = 1;
    kernel.sharedMemBytes = 512;
    kernel.kernelParams = parameters_.data();
    cut_.nodes = {node_->handle()};
    cut_.begins = {0};
    cut_.durations_ns = {1'000'000};
    twin_.kernel.worker.function = kWorker;
    twin_.kernel.block_x = 128;
    twin_.kernel.dynamic_shared_bytes = 512;
    twin_.kernel.workers_per_sm = 8;
    twin_.entry = "scale";
    twin_.original = kOfModule;
    twin_.library = std::make_shared<KernelLibrary>(api_, nullptr);
    twin_.library->Leak();
  }
  NodeTwins Find() {
    auto twins = FindNodeTwins(api_, cut_, kSegmentNs, kSms, [this](CUfunction function) {
      return function == kOriginal ? std::optional<WorkerTwin>(twin_) : std::nullopt;
    });
    EXPECT_TRUE(twins.ok()) << twins.status();
    return *std::move(twins);
  }

  const DriverApi api_ = ApiWithParameters();
  FakeGraph graph_;
  FakeNode* node_ = nullptr;
  uint64_t pointer_ = 0x1234'5678'9abc;
  uint32_t count_ = 77;
  std::array<void*, 2> parameters_{&pointer_, &count_};
  SegmentedGraph cut_;
  WorkerTwin twin_;
};

TEST_F(NodeTwinsTest, ALongNodeGetsItsTwinWithTheNodesArguments) {
  const NodeTwins twins = Find();
  ASSERT_EQ(twins.size(), 1U);
  const NodeTwin& twin = *twins[0];
  EXPECT_EQ(twin.block_tasks, kBlocks);
  EXPECT_EQ(twin.block_task_ns, 100'000);
  EXPECT_EQ(twin.twin.kernel.worker.function, kWorker);
  // The application may destroy its graph: the twin has copies.
  pointer_ = count_ = 0;
  ParameterAddresses addresses{};
  twin.Fill(addresses);
  EXPECT_EQ(addresses[0], nullptr) << "the header's";
  uint64_t pointer = 0;
  uint32_t count = 0;
  std::memcpy(&pointer, addresses[1], sizeof(pointer));
  std::memcpy(&count, addresses[2], sizeof(count));
  EXPECT_EQ(pointer, 0x1234'5678'9abcU);
  EXPECT_EQ(count, 77U);
}

TEST_F(NodeTwinsTest, AKernelOfALibraryIsFoundByItsFunction) {
  node_->kernel.func = nullptr;
  node_->kernel.kern = reinterpret_cast<CUkernel>(intptr_t{7});  // NOLINT
  EXPECT_EQ(Find().size(), 1U);
}

// The graph keeps its segments, and the node runs to its end.
TEST_F(NodeTwinsTest, AnErrorOfTheDriverIsNoTwin) {
  node_->kernel.func = nullptr;
  node_->kernel.kern = reinterpret_cast<CUkernel>(intptr_t{7});  // NOLINT
  Fake().of_library = CUDA_ERROR_NOT_FOUND;
  EXPECT_TRUE(Find().empty());
  EXPECT_EQ(Fake().library_calls, 1);
  Fake().of_library = CUDA_SUCCESS;
  Fake().of_name = CUDA_ERROR_INVALID_HANDLE;
  EXPECT_TRUE(Find().empty());
}

TEST_F(NodeTwinsTest, ALostDeviceIsAnError) {
  node_->kernel.func = nullptr;
  node_->kernel.kern = reinterpret_cast<CUkernel>(intptr_t{7});  // NOLINT
  Fake().of_library = CUDA_ERROR_ILLEGAL_ADDRESS;
  const auto none = [](CUfunction /*function*/) { return std::optional<WorkerTwin>(); };
  const auto twins = FindNodeTwins(api_, cut_, kSegmentNs, kSms, none);
  EXPECT_TRUE(absl::IsDataLoss(twins.status())) << twins.status();
}

// The driver may give the address of a function that was unloaded to another one.
TEST_F(NodeTwinsTest, AnotherFunctionAtTheSameAddressHasNoTwin) {
  Fake().name = "scales";
  EXPECT_TRUE(Find().empty()) << "its name";
  Fake().name = nullptr;
  EXPECT_TRUE(Find().empty()) << "it has none";
  Fake().name = "scale";
  Fake().shared_bytes = 2048;
  EXPECT_TRUE(Find().empty()) << "its static shared memory";
  Fake().shared_bytes = 4096;
  Fake().threads_max = 1024;
  EXPECT_TRUE(Find().empty()) << "its threads";
  Fake().threads_max = 256;
  EXPECT_EQ(Find().size(), 1U);
}

TEST_F(NodeTwinsTest, ANodeThatFitsIntoASegmentStaysAsItIs) {
  cut_.durations_ns = {kSegmentNs};
  EXPECT_TRUE(Find().empty());
}

TEST_F(NodeTwinsTest, ASegmentOfSeveralNodesStaysAsItIs) {
  cut_.nodes.push_back(graph_.Add(CU_GRAPH_NODE_TYPE_EMPTY).handle());
  EXPECT_TRUE(Find().empty());
}

TEST_F(NodeTwinsTest, ANodeOfOneRoundStaysAsItIs) {
  node_->kernel.gridDimX = kSms * 8;
  EXPECT_TRUE(Find().empty());
}

TEST_F(NodeTwinsTest, AnotherFunctionStaysAsItIs) {
  node_->kernel.func = kWorker;
  EXPECT_TRUE(Find().empty());
}

TEST_F(NodeTwinsTest, OtherBlocksOrSharedMemoryStayAsTheyAre) {
  node_->kernel.blockDimX = 256;
  EXPECT_TRUE(Find().empty());
  node_->kernel.blockDimX = 128;
  node_->kernel.sharedMemBytes = 1024;
  EXPECT_TRUE(Find().empty());
}

TEST_F(NodeTwinsTest, ATextOfAnotherKernelIsNoTwin) {
  ParametersOf(kWorker) = {136, 8};
  EXPECT_TRUE(Find().empty()) << "one parameter less";
  ParametersOf(kWorker) = {136, 8, 4, 4};
  EXPECT_TRUE(Find().empty()) << "one more";
  ParametersOf(kWorker) = {136, 8, 8};
  EXPECT_TRUE(Find().empty()) << "a larger one";
}

TEST_F(NodeTwinsTest, ALaunchThatWorkersAreNotStaysAsItIs) {
  node_->attributes[CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION].clusterDim = {2, 1, 1};
  EXPECT_TRUE(Find().empty());
  node_->attributes[CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION].clusterDim = {1, 1, 1};
  EXPECT_EQ(Find().size(), 1U);
  node_->attributes[CU_LAUNCH_ATTRIBUTE_COOPERATIVE].cooperative = 1;
  EXPECT_TRUE(Find().empty());
  node_->attributes.erase(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  node_->attributes[CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW].accessPolicyWindow.num_bytes = 4096;
  EXPECT_TRUE(Find().empty());
}

TEST_F(NodeTwinsTest, ALaunchThatNobodyCanReadStaysAsItIs) {
  Fake().of_attribute = CUDA_ERROR_INVALID_VALUE;
  EXPECT_TRUE(Find().empty());
  Fake().of_attribute = CUDA_ERROR_NOT_SUPPORTED;
  EXPECT_EQ(Find().size(), 1U) << "the driver knows of no such launch";
}

}  // namespace
}  // namespace gpushare::cuda
