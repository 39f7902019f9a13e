// The experiment `ways` of overlap_benchmark: what it saves to run a Tensor-core kernel and a
// CUDA-core kernel of the same duration together (load ratio 1), in every way that there is,
// against one after the other.
//
// Prints one JSON object, and a table to stderr. `saved` is time saved against the serial run with
// the same Tensor kernel, `saved_cublaslt` against the one with cuBLASLt's product of the same
// shape; the overlap rate is Tacker's equation 11. For partitions `speeds` is the sum of both
// sides' speeds, each relative to alone on the whole GPU, at the split where it is largest, and
// `saved_of_speeds` 1 - 1 / speeds, what two endless streams of tasks save; the time is that of one
// task of each, where the CUDA-core side takes the SMs that the Tensor side leaves.
//
// Options: [--pairs a+b,c+d] [--methods m,n] [--repeats N] [--seconds S]
// Methods: coresident, fused, fused_setmaxnreg, fused_direct, partitions_cublaslt; the serial runs
// are always made. --seconds: no pair begins later (default 140); the output names what is left
// out.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/gpu/overlap/experiments.h"
#include "benchmarks/gpu/overlap/overlap_methods.h"
#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/json.h"

namespace gpushare::benchmarks {
namespace {

const std::vector<std::string> kMethods = {"coresident", "fused", "fused_setmaxnreg",
                                           "fused_direct", "partitions_cublaslt"};

struct PairResult {
  double tensor_ms = 0;
  double cuda_ms = 0;
  WayResult product;  // cuBLASLt's alone
  WayResult serial;
  WayResult serial_product;
  std::vector<WayResult> ways;
};

double Saved(double ms, double of_ms) { return of_ms > 0 ? 1 - ms / of_ms : 0; }

WayResult RunMethod(const std::string& method, Ways& ways, const PairResult& result) {
  WayResult way;
  way.way = method;
  if (method == "coresident") ways.CoResident(&way);
  if (method == "fused") ways.FusedForm(GPUSHARE_FUSED_PLAIN, &way);
  if (method == "fused_setmaxnreg") ways.FusedForm(GPUSHARE_FUSED_SETMAXNREG, &way);
  if (method == "fused_direct") ways.FusedForm(GPUSHARE_FUSED_DIRECT, &way);
  if (method == "partitions_cublaslt") {
    way.why_not = result.product.why_not;
    if (result.product.ran) ways.Partitions(result.product.total_ms, &way);
  }
  return way;
}

PairResult Measure(const std::vector<std::string>& methods, Ways& ways) {
  PairResult result;
  result.tensor_ms = ways.TensorAlone();
  result.cuda_ms = ways.CudaAlone();
  result.product.way = "cublaslt alone";
  ways.ProductAlone(&result.product);
  result.serial.way = "serial";
  ways.Serial(false, &result.serial);
  result.serial_product.way = "serial_cublaslt";
  result.serial_product.why_not = result.product.why_not;
  if (result.product.ran) ways.Serial(true, &result.serial_product);
  for (const std::string& method : methods) {
    result.ways.push_back(RunMethod(method, ways, result));
  }
  return result;
}

Json WayJson(const PairResult& result, const WayResult& way) {
  if (!way.ran) return {{"way", way.way}, {"ran", false}, {"why_not", way.why_not}};
  // With cuBLASLt's product its own duration is the one to overlap.
  const bool product = way.way.find("cublaslt") != std::string::npos;
  const double alone_ms = (product ? result.product.total_ms : result.tensor_ms) + result.cuda_ms;
  Json json = {{"way", way.way},
               {"ran", true},
               {"ms", Rounded(way.total_ms, 4)},
               {"tensor_ms", Rounded(way.tensor_ms, 4)},
               {"cuda_ms", Rounded(way.cuda_ms, 4)},
               {"overlap_rate", Rounded((alone_ms - way.total_ms) / alone_ms, 4)},
               {"saved", Rounded(Saved(way.total_ms, result.serial.total_ms), 4)}};
  if (result.serial_product.ran) {
    json["saved_cublaslt"] = Rounded(Saved(way.total_ms, result.serial_product.total_ms), 4);
  }
  if (way.speeds > 0) {
    json["speeds"] = Rounded(way.speeds, 4);
    json["saved_of_speeds"] = Rounded(1 - 1 / way.speeds, 4);
  }
  json["variant"] = way.variant;
  return json;
}

Json PairJson(const Side& tensor, const Side& cuda, const PairResult& result) {
  Json json = {
      {"tensor", tensor.name()}, {"cuda", cuda.name()}, {"bottleneck", BottleneckOf(cuda.name())}};
  if (tensor.is_product()) {
    json["shape"] = {tensor.product().m, tensor.product().n, tensor.product().k};
  }
  json["tensor_ms"] = Rounded(result.tensor_ms, 4);
  json["cuda_ms"] = Rounded(result.cuda_ms, 4);
  json["load_ratio"] = Rounded(result.cuda_ms / result.tensor_ms, 4);
  if (result.product.ran) json["cublaslt_ms"] = Rounded(result.product.total_ms, 4);
  json["ways"] = Json::array(
      {Json{{"way", "serial"}, {"ran", true}, {"ms", Rounded(result.serial.total_ms, 4)}}});
  json["ways"].push_back(WayJson(result, result.serial_product));
  for (const WayResult& way : result.ways) json["ways"].push_back(WayJson(result, way));
  return json;
}

void PrintTableRow(const Side& tensor, const Side& cuda, const PairResult& result) {
  std::fprintf(stderr, "%-12s %-19s %-9.9s %6.3f %6.3f |", tensor.name(), cuda.name(),
               BottleneckOf(cuda.name()).c_str(), result.tensor_ms, result.product.total_ms);
  for (const WayResult& way : result.ways) {
    if (!way.ran) {
      std::fprintf(stderr, "  %6s        |", "-");
      continue;
    }
    const double product =
        result.serial_product.ran ? 100 * Saved(way.total_ms, result.serial_product.total_ms) : 0;
    std::fprintf(stderr, " %6.1f %6.1f", 100 * Saved(way.total_ms, result.serial.total_ms),
                 product);
    if (way.speeds > 0) std::fprintf(stderr, " %5.2f@%d", way.speeds, way.tensor_sms);
    std::fprintf(stderr, " |");
  }
  std::fprintf(stderr, "\n");
}

void PrintTableHead(const std::vector<std::string>& methods) {
  std::fprintf(stderr,
               "time saved in %%, against serial with the same Tensor kernel and with cuBLASLt's; "
               "partitions: sum of speeds @ SMs of the Tensor side\n%-12s %-19s %-9s %6s %6s |",
               "tensor", "cuda", "bound", "ms", "lt ms");
  for (const std::string& method : methods) std::fprintf(stderr, " %s |", method.c_str());
  std::fprintf(stderr, "\n");
}

}  // namespace

int RunWays(Arguments& given) {
  constexpr double kOtherMs = 2;  // of a Tensor kernel that makes no product
  const std::vector<Pair> pairs = PairsOf(given, DefaultPairs());
  const std::vector<std::string> methods = given.List("--methods", kMethods);
  const int repeats = given.Number("--repeats", 3, 1);
  const double seconds = given.Real("--seconds", 140, 0);
  given.Finish();
  for (const std::string& method : methods) {
    if (IsChosen(kMethods, method)) continue;
    throw Failure("There is no method '" + method + "'.", kBadUse);
  }
  OverlapGpu gpu;
  CoRun run;
  Report report({{"benchmark", "overlap_benchmark"},
                 {"gpu", gpu.model()},
                 {"sms", gpu.sms()},
                 {"repeats", repeats},
                 {"note", "medians, from one moment to the end of both kernels"}},
                "pairs");
  PrintTableHead(methods);
  // The Tensor side of the last pair is kept: pairs come grouped by it.
  std::unique_ptr<Side> tensor;
  const auto run_pair = [&](const Pair& pair) {
    if (tensor == nullptr || pair.tensor != tensor->name()) {
      tensor.reset();
      const ProductShape shape = ShapeOf(pair.tensor);
      tensor = std::make_unique<Side>(gpu, pair.tensor, shape, shape.m > 0 ? 0 : kOtherMs);
    }
    Side cuda(gpu, pair.cuda, ShapeOf(pair.cuda), tensor->original_ms());
    Ways ways(gpu, run, *tensor, cuda, repeats);
    const PairResult result = Measure(methods, ways);
    report.Row(PairJson(*tensor, cuda, result));
    PrintTableRow(*tensor, cuda, result);
  };
  return RunPairs(pairs, report, run_pair, NowSeconds() + seconds);
}

}  // namespace gpushare::benchmarks
