#include "tools/gpushare/cuda/chain.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/text.h"

namespace gpushare::tool {

namespace {

// How far two right answers of a chain may differ, relative to their norm. cuBLAS chooses other
// algorithms on fewer SMs. Their fp32 sums differ in the last bits, so that a bf16 result near the
// middle of two values may round the other way. After a few operations the roundings of both
// answers are practically independent.
//
// Expected difference
// - One rounding to 8 significant bits has a root mean square error of 2^-7 / sqrt(12) of its power
//   of two. For mantissas spread evenly on a log scale (mean square 2.164) that is 0.00153 of the
//   value.
// - A GEMM with independent weights keeps a relative error unchanged. GELU of a normal variable
//   multiplies its square by E[g'^2] / E[g^2] = 0.4558 / 0.4253 = 1.072.
// - Two answers have twice the squared error of one.
// This gives 0.029 for chain1 (24 layers of 3 roundings; measured on an H200: 0.025), 0.009 for
// decode16 and 0.004 for prefill. The limit is twice that, and at least 0.02, because split sums
// may round more often.
//
// Smallest error to find: a lost block task of the last layer leaves there what an earlier layer
// wrote, or NaN. The difference is sqrt(2 x its share of the output): 0.25 for 64 columns of
// chain1, 0.125 for 64 columns of decode, 0.06 for a 128 x 256 tile of prefill. An error of an
// earlier layer reaches the end, because the gain of each layer is at least 1.
constexpr double kRoundingError = 1.53e-3;
constexpr double kGeluGain = 1.072;  // factor of the squared relative error
constexpr double kChainMargin = 2;
constexpr double kChainToleranceMin = 2e-2;
// Limit for one GEMM against float64: rounding of the result and fp32 sums of 8192 terms.
constexpr double kGemmTolerance = 1e-2;
constexpr int kSpotChecks = 16;
// GELU turns a normal variable of variance 1 into one of variance 0.425.
constexpr double kAfterGelu = 1.534;

struct GraphShape {
  const char* name;
  const char* family;
  int layers;
};

// MEASURED: the first chain is 72 kernels, the second 16 GEMMs; prefill 3 large ones.
const std::vector<ChainFamily>& Families() {
  static const std::vector<ChainFamily> families = {
      {"chain1",
       32,
       2048,
       {{"chain1_up", false, 8192, 2048, 1},
        {"chain1_gelu", true, 8192, 8192, 1},
        {"chain1_down", false, 2048, 8192, kAfterGelu}},
       24},
      {"decode", 32, 8192, {{"decode_gemm", false, 8192, 8192, 1}}, 16},
      {"prefill", 4096, 4096, {{"prefill_gemm", false, 4096, 4096, 1}}, 3},
  };
  return families;
}

constexpr GraphShape kGraphs[] = {
    {"chain1", "chain1", 24},
    {"decode12", "decode", 12},
    {"decode16", "decode", 16},
    {"prefill", "prefill", 3},
};

const GraphShape* ShapeOf(const std::string& name) {
  for (const GraphShape& shape : kGraphs) {
    if (name == shape.name) return &shape;
  }
  return nullptr;
}

const ChainFamily& FamilyNamed(const std::string& name) {
  const std::vector<ChainFamily>& families = Families();
  return *std::find_if(families.begin(), families.end(),
                       [&](const ChainFamily& family) { return name == family.name; });
}

const ChainStep& StepAt(const ChainFamily& family, int index) {
  return family.layer[static_cast<size_t>(index) % family.layer.size()];
}

int StepsOf(const ChainFamily& family, int layers) {
  return layers * static_cast<int>(family.layer.size());
}

int64_t OutputElements(const ChainFamily& family) { return family.rows * family.layer.back().n; }

double ToleranceOf(const ChainFamily& family, int layers) {
  double squared = 0;  // of one answer, in squared roundings
  for (int index = 0; index < StepsOf(family, layers); ++index) {
    squared = squared * (StepAt(family, index).gelu ? kGeluGain : 1) + 1;
  }
  return std::max(kChainToleranceMin, kChainMargin * kRoundingError * std::sqrt(2 * squared));
}

// Step i writes turns[i % 2].
const DeviceMemory& OutputOf(const ChainFamily& family, int layers, const ChainBuffers& buffers) {
  return buffers.turns[static_cast<size_t>(StepsOf(family, layers) - 1) % 2];
}

// Values uniform in [-scale, scale) have the variance scale^2 / 3.
float ScaleOf(double variance) { return static_cast<float>(std::sqrt(3 * variance)); }

}  // namespace

float FloatOfBf16(uint16_t bits) {
  const uint32_t word = static_cast<uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

const ChainFamily* FamilyOfTask(const std::string& task) {
  for (const ChainFamily& family : Families()) {
    for (const ChainStep& step : family.layer) {
      if (task == step.task) return &family;
    }
  }
  return nullptr;
}

bool ChainPrograms::IsGraph(const std::string& name) { return ShapeOf(name) != nullptr; }

ChainPrograms::ChainPrograms() : workspace_(Blas::kWorkspaceBytes) {
  // For experiments: weights k x n instead of n x k, for which cuBLAS chooses other kernels.
  const char* layout = std::getenv("GPUSHARE_WEIGHTS_LAYOUT");
  weights_transposed_ = layout == nullptr || std::strcmp(layout, "kn") != 0;
  cudaStream_t stream = nullptr;
  CheckCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "Creating a stream");
  stream_ = stream;
}

ChainPrograms::~ChainPrograms() { cudaStreamDestroy(static_cast<cudaStream_t>(stream_)); }

void ChainPrograms::Synchronize(const char* step) {
  CheckCuda(cudaStreamSynchronize(static_cast<cudaStream_t>(stream_)), step);
}

const void* ChainPrograms::Input(const ChainFamily& family) {
  DeviceMemory& input = inputs_[family.name];
  if (input.data() == nullptr) {
    const auto elements = static_cast<uint64_t>(family.rows * family.inputs);
    input = DeviceMemory(elements * 2);
    CheckCuda(FillUniformBf16(input.data(), elements, 1, ScaleOf(1), stream_),
              "Filling a chain's input");
    Synchronize("Filling a chain's input");
  }
  return input.data();
}

const void* ChainPrograms::Weights(const ChainFamily& family, int layer, size_t step) {
  const int index =
      layer % family.layers * static_cast<int>(family.layer.size()) + static_cast<int>(step);
  DeviceMemory& weights = weights_[{family.name, index}];
  if (weights.data() == nullptr) {
    const ChainStep& shape = family.layer[step];
    const auto elements = static_cast<uint64_t>(shape.n * shape.k);
    weights = DeviceMemory(elements * 2);
    const double variance = shape.gain * shape.gain / static_cast<double>(shape.k);
    CheckCuda(FillUniformBf16(weights.data(), elements, static_cast<uint32_t>(index) + 2,
                              ScaleOf(variance), stream_),
              "Filling a chain's weights");
    Synchronize("Filling a chain's weights");
  }
  return weights.data();
}

ChainBuffers ChainPrograms::NewBuffers(const ChainFamily& family, int layers) {
  int64_t columns = 0;
  for (const ChainStep& step : family.layer) columns = std::max(columns, step.n);
  const auto bytes = static_cast<size_t>(family.rows * columns) * 2;
  ChainBuffers buffers;
  for (DeviceMemory& turn : buffers.turns) turn = DeviceMemory(bytes);
  Poison(family, layers, buffers);
  return buffers;
}

void ChainPrograms::FillInputs(const ChainBuffers& buffers) {
  for (const DeviceMemory& turn : buffers.turns) {
    CheckCuda(FillUniformBf16(turn.data(), turn.bytes() / 2, 1, ScaleOf(1), stream_),
              "Filling a chain's buffers");
  }
  Synchronize("Filling a chain's buffers");
}

void ChainPrograms::Poison(const ChainFamily& family, int layers, const ChainBuffers& buffers) {
  const DeviceMemory& output = OutputOf(family, layers, buffers);
  // All ones is a NaN. Uses the own stream, because another one may be under capture.
  CheckCuda(
      cudaMemsetAsync(output.data(), 0xFF, output.bytes(), static_cast<cudaStream_t>(stream_)),
      "Clearing a chain's output");
  Synchronize("Clearing a chain's output");
}

Gemm ChainPrograms::GemmAt(const ChainFamily& family, const ChainBuffers& buffers, int index) {
  const ChainStep& step = StepAt(family, index);
  const auto steps = static_cast<int>(family.layer.size());
  Gemm gemm;
  gemm.m = family.rows;
  gemm.n = step.n;
  gemm.k = step.k;
  gemm.weights_transposed = weights_transposed_;
  gemm.a = index == 0 ? Input(family) : buffers.turns[static_cast<size_t>(index - 1) % 2].data();
  gemm.weights = Weights(family, index / steps, static_cast<size_t>(index % steps));
  gemm.d = buffers.turns[static_cast<size_t>(index) % 2].data();
  return gemm;
}

GeluParams ChainPrograms::GeluAt(const ChainFamily& family, const ChainBuffers& buffers,
                                 int index) {
  GeluParams params = {};
  params.in = buffers.turns[static_cast<size_t>(index - 1) % 2].data();
  params.out = buffers.turns[static_cast<size_t>(index) % 2].data();
  params.elements = static_cast<uint64_t>(family.rows * StepAt(family, index).n);
  return params;
}

void ChainPrograms::Run(const ChainFamily& family, int layers, const ChainBuffers& buffers,
                        void* stream, int32_t sms, void* workspace) {
  const auto check = [](int status) {
    if (status == 0) return;
    throw RunError("A chain's GEMM fails with the cuBLAS status " + std::to_string(status) + ".");
  };
  check(blas_.Use(stream, sms, workspace));
  for (int index = 0; index < StepsOf(family, layers); ++index) {
    if (StepAt(family, index).gelu) {
      CheckCuda(LaunchGelu(GeluAt(family, buffers, index), stream), "Launching GELU");
    } else {
      check(blas_.Enqueue(GemmAt(family, buffers, index)));
    }
  }
}

std::vector<float> ChainPrograms::Read(const void* from, int64_t elements) {
  std::vector<uint16_t> bits(static_cast<size_t>(elements));
  CheckCuda(cudaMemcpyAsync(bits.data(), from, bits.size() * 2, cudaMemcpyDeviceToHost,
                            static_cast<cudaStream_t>(stream_)),
            "Reading an answer");
  Synchronize("Reading an answer");
  std::vector<float> values(bits.size());
  std::transform(bits.begin(), bits.end(), values.begin(), FloatOfBf16);
  return values;
}

// The k weights of one column of the result.
std::vector<float> ChainPrograms::ReadColumn(const void* weights, int64_t n, int64_t k,
                                             int64_t column) {
  const auto* bits = static_cast<const uint16_t*>(weights);
  if (weights_transposed_) return Read(bits + column * k, k);
  std::vector<uint16_t> gathered(static_cast<size_t>(k));
  CheckCuda(cudaMemcpy2DAsync(gathered.data(), 2, bits + column, static_cast<size_t>(n) * 2, 2,
                              static_cast<size_t>(k), cudaMemcpyDeviceToHost,
                              static_cast<cudaStream_t>(stream_)),
            "Reading weights");
  Synchronize("Reading weights");
  std::vector<float> values(gathered.size());
  std::transform(gathered.begin(), gathered.end(), values.begin(), FloatOfBf16);
  return values;
}

// Checks the first GEMM against float64 at a few places, so that the reference itself is right.
void ChainPrograms::SpotCheck(const ChainFamily& family, const ChainBuffers& buffers) {
  const Gemm gemm = GemmAt(family, buffers, 0);
  if (blas_.Use(stream_, 0, workspace_.data()) != 0 || blas_.Enqueue(gemm) != 0) {
    throw RunError(std::string("The first GEMM of chain '") + family.name + "' fails alone.");
  }
  const std::vector<float> d = Read(gemm.d, gemm.m * gemm.n);
  const std::vector<float> a = Read(gemm.a, gemm.m * gemm.k);
  for (int check = 0; check < kSpotChecks; ++check) {
    const int64_t row = (check * 7 + 3) % gemm.m;
    const int64_t column = (check * 509 + 1) % gemm.n;
    const std::vector<float> w = ReadColumn(gemm.weights, gemm.n, gemm.k, column);
    double expected = 0;
    for (int64_t i = 0; i < gemm.k; ++i) {
      expected += static_cast<double>(a[static_cast<size_t>(row * gemm.k + i)]) *
                  static_cast<double>(w[static_cast<size_t>(i)]);
    }
    const auto got = static_cast<double>(d[static_cast<size_t>(row * gemm.n + column)]);
    if (std::abs(got - expected) <= kGemmTolerance * std::max(1.0, std::abs(expected))) continue;
    throw RunError(Format(
        "The first GEMM of chain '%s' alone gives %.6g at (%lld, %lld), and the "
        "sum in float64 is %.6g.",
        family.name, got, static_cast<long long>(row), static_cast<long long>(column), expected));
  }
}

const std::vector<float>& ChainPrograms::Reference(const ChainFamily& family, int layers) {
  std::vector<float>& reference = references_[{family.name, layers}];
  if (!reference.empty()) return reference;
  const ChainBuffers buffers = NewBuffers(family, layers);
  SpotCheck(family, buffers);
  Run(family, layers, buffers, stream_, 0, workspace_.data());
  reference = Read(OutputOf(family, layers, buffers).data(), OutputElements(family));
  double norm = 0;
  for (const float value : reference) norm += static_cast<double>(value) * value;
  if (!std::isfinite(norm) || norm < 1e-3 * static_cast<double>(reference.size())) {
    reference.clear();
    throw RunError(Format("Chain '%s' of %d layers alone ends with a squared norm of %g.",
                          family.name, layers, norm));
  }
  return reference;
}

ChainPrograms::Answer ChainPrograms::Check(const ChainFamily& family, int layers,
                                           const ChainBuffers& buffers, std::string* sentence) {
  const std::vector<float>& reference = Reference(family, layers);
  const std::vector<float> answer =
      Read(OutputOf(family, layers, buffers).data(), OutputElements(family));
  size_t finite = 0;
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < answer.size(); ++i) {
    if (!std::isfinite(answer[i])) continue;
    ++finite;
    const double difference = static_cast<double>(answer[i]) - static_cast<double>(reference[i]);
    error += difference * difference;
    norm += static_cast<double>(reference[i]) * static_cast<double>(reference[i]);
  }
  if (finite == 0) return Answer::kUntouched;
  const double relative = std::sqrt(error / norm);
  const double allowed = ToleranceOf(family, layers);
  if (finite == answer.size() && relative <= allowed) return Answer::kRight;
  *sentence = Format(
      "Chain '%s' of %d layers is wrong: %zu of %zu values are finite, and they "
      "differ from the chain run alone by %.3g of its norm; the limit is %.3g.",
      family.name, layers, finite, answer.size(), relative, allowed);
  return Answer::kWrong;
}

int ChainPrograms::Capture(const std::string& name, void* stream, int32_t sms) {
  const GraphShape& shape = *ShapeOf(name);
  const ChainFamily& family = FamilyNamed(shape.family);
  Graph& graph = graphs_[name];
  if (graph.used == graph.captures.size()) {
    // Allocates for a new place; the relaxed mode allows that in any capture of this thread.
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    CheckCuda(cudaThreadExchangeStreamCaptureMode(&mode), "Changing the capture mode");
    auto captured = std::make_unique<Captured>();
    captured->buffers = NewBuffers(family, shape.layers);
    captured->workspace = DeviceMemory(Blas::kWorkspaceBytes);
    CheckCuda(cudaThreadExchangeStreamCaptureMode(&mode), "Restoring the capture mode");
    graph.captures.push_back(std::move(captured));
  }
  const Captured& captured = *graph.captures[graph.used++];
  Run(family, shape.layers, captured.buffers, stream, sms, captured.workspace.data());
  return 0;
}

void ChainPrograms::BeginRun() {
  for (auto& [name, graph] : graphs_) {
    const GraphShape& shape = *ShapeOf(name);
    for (size_t i = 0; i < graph.used; ++i) {
      Poison(FamilyNamed(shape.family), shape.layers, graph.captures[i]->buffers);
    }
    graph.used = 0;
  }
}

void ChainPrograms::PrepareGraph(const std::string& name) {
  const GraphShape& shape = *ShapeOf(name);
  Prepare(FamilyNamed(shape.family), shape.layers);
}

void ChainPrograms::VerifyGraph(const std::string& name) {
  const GraphShape& shape = *ShapeOf(name);
  const Graph& graph = graphs_[name];
  size_t right = 0;
  for (size_t i = 0; i < graph.used; ++i) {
    std::string sentence;
    const Answer answer =
        Check(FamilyNamed(shape.family), shape.layers, graph.captures[i]->buffers, &sentence);
    if (answer == Answer::kWrong) throw RunError(sentence);
    right += answer == Answer::kRight;
  }
  if (right == 0) {
    throw RunError("The graph '" + name + "' wrote no answer in any of its " +
                   std::to_string(graph.used) + " places.");
  }
}

}  // namespace gpushare::tool
