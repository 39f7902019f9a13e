// overlap_benchmark: what it saves to run a Tensor-core kernel and a CUDA-core kernel of the same
// duration together (load ratio 1), in every way that there is, against one after the other.
//
// Prints one JSON object, and a table to stderr. `saved` is time saved against the serial run with
// the same Tensor kernel, `saved_cublaslt` against the one with cuBLASLt's product of the same
// shape; the overlap rate is Tacker's equation 11. For partitions `speeds` is the sum of both
// sides' speeds, each relative to alone on the whole GPU, at the split where it is largest, and
// `saved_of_speeds` 1 - 1 / speeds, what two endless streams of tasks save; the time is that of one
// task of each, where the side that ends first leaves its SMs to the other.
//
//   overlap_benchmark [--pairs a+b,c+d] [--methods m,n] [--repeats N] [--seconds S]
//
// Methods: streams, coresident, fused, fused_setmaxnreg, fused_direct, partitions,
// partitions_cublaslt; the serial runs are always made. --seconds: no pair begins later (default
// 140); what is left out is told.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/gpu/co_run.h"
#include "benchmarks/gpu/overlap_gpu.h"
#include "benchmarks/gpu/overlap_methods.h"
#include "benchmarks/gpu/overlap_pairs.h"
#include "benchmarks/gpu/overlap_side.h"
#include "benchmarks/kernels/catalogue.h"

namespace gpushare::benchmarks {
namespace {

using kernels::Status;

constexpr const char* kMethods[] = {
    "streams",    "coresident",         "fused", "fused_setmaxnreg", "fused_direct",
    "partitions", "partitions_cublaslt"};

struct Arguments {
  std::vector<Pair> pairs = DefaultPairs();
  std::vector<std::string> methods = {std::begin(kMethods), std::end(kMethods)};
  int repeats = 3;
  double seconds = 140;
};

struct PairResult {
  double tensor_ms = 0;
  double cuda_ms = 0;
  WayResult product;  // cuBLASLt's alone
  WayResult serial;
  WayResult serial_product;
  std::vector<WayResult> ways;
};

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Saved(double ms, double of_ms) { return of_ms > 0 ? 1 - ms / of_ms : 0; }

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c < ' ' ? ' ' : c;
  }
  return quoted + "\"";
}

Status RunMethod(const std::string& method, Ways& ways, const PairResult& result, WayResult* way) {
  if (method == "streams") return ways.TwoStreams(way);
  if (method == "coresident") return ways.CoResident(way);
  if (method == "fused") return ways.FusedForm(GPUSHARE_FUSED_PLAIN, way);
  if (method == "fused_setmaxnreg") return ways.FusedForm(GPUSHARE_FUSED_SETMAXNREG, way);
  if (method == "fused_direct") return ways.FusedForm(GPUSHARE_FUSED_DIRECT, way);
  if (method == "partitions") return ways.Partitions(false, result.tensor_ms, way);
  if (!result.product.ran) {
    way->why_not = result.product.why_not;
    return {};
  }
  return ways.Partitions(true, result.product.total_ms, way);
}

Status RunPair(const Arguments& arguments, OverlapGpu& gpu, CoRun& run, Side& tensor, Side& cuda,
               PairResult* result) {
  Ways ways(gpu, run, tensor, cuda, arguments.repeats);
  Status status = ways.Alone(&result->tensor_ms, &result->cuda_ms);
  result->product.way = "cublaslt alone";
  if (status.ok()) status = ways.ProductAlone(&result->product);
  result->serial.way = "serial";
  result->serial_product.way = "serial_cublaslt";
  result->serial_product.why_not = result->product.why_not;
  if (status.ok()) status = ways.Serial(false, &result->serial);
  if (status.ok() && result->product.ran) status = ways.Serial(true, &result->serial_product);
  for (const std::string& method : arguments.methods) {
    if (!status.ok()) break;
    WayResult way;
    way.way = method;
    status = RunMethod(method, ways, *result, &way);
    result->ways.push_back(std::move(way));
  }
  return status;
}

void PrintWay(const PairResult& result, const WayResult& way) {
  std::printf(",\n      {\"way\": %s, ", Quoted(way.way).c_str());
  if (!way.ran) {
    std::printf("\"ran\": false, \"why_not\": %s}", Quoted(way.why_not).c_str());
    return;
  }
  // With cuBLASLt's product its own duration is the one to overlap.
  const bool product = way.way.find("cublaslt") != std::string::npos;
  const double alone_ms = (product ? result.product.total_ms : result.tensor_ms) + result.cuda_ms;
  std::printf("\"ran\": true, \"ms\": %.4f, \"tensor_ms\": %.4f, \"cuda_ms\": %.4f,", way.total_ms,
              way.tensor_ms, way.cuda_ms);
  std::printf(" \"overlap_rate\": %.4f, \"saved\": %.4f", (alone_ms - way.total_ms) / alone_ms,
              Saved(way.total_ms, result.serial.total_ms));
  if (result.serial_product.ran) {
    std::printf(", \"saved_cublaslt\": %.4f", Saved(way.total_ms, result.serial_product.total_ms));
  }
  if (way.speeds > 0) {
    std::printf(", \"speeds\": %.4f, \"saved_of_speeds\": %.4f", way.speeds, 1 - 1 / way.speeds);
  }
  std::printf(", \"variant\": %s}", Quoted(way.variant).c_str());
}

void Print(const Side& tensor, const Side& cuda, const PairResult& result, bool first) {
  std::printf("%s\n    {\"tensor\": \"%s\", \"cuda\": \"%s\", \"bottleneck\": \"%s\",",
              first ? "" : ",", tensor.kernel().name, cuda.kernel().name,
              BottleneckOf(cuda.kernel().name).c_str());
  if (tensor.is_product()) {
    std::printf(" \"shape\": [%lld, %lld, %lld],", static_cast<long long>(tensor.product().m),
                static_cast<long long>(tensor.product().n),
                static_cast<long long>(tensor.product().k));
  }
  std::printf(" \"tensor_ms\": %.4f, \"cuda_ms\": %.4f, \"load_ratio\": %.4f,", result.tensor_ms,
              result.cuda_ms, result.cuda_ms / result.tensor_ms);
  if (result.product.ran) std::printf(" \"cublaslt_ms\": %.4f,", result.product.total_ms);
  std::printf("\n     \"ways\": [\n      {\"way\": \"serial\", \"ran\": true, \"ms\": %.4f}",
              result.serial.total_ms);
  PrintWay(result, result.serial_product);
  for (const WayResult& way : result.ways) PrintWay(result, way);
  std::printf("]}");
  std::fflush(stdout);
}

void PrintRow(const Side& tensor, const Side& cuda, const PairResult& result) {
  std::fprintf(stderr, "%-12s %-19s %-9.9s %6.3f %6.3f |", tensor.kernel().name, cuda.kernel().name,
               BottleneckOf(cuda.kernel().name).c_str(), result.tensor_ms, result.product.total_ms);
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

// The Tensor side of the last pair is kept: pairs come grouped by it.
Status MakeTensor(OverlapGpu& gpu, const std::string& name, std::unique_ptr<Side>* side) {
  if (*side != nullptr && name == (*side)->kernel().name) return {};
  side->reset();
  const kernels::CatalogueKernel* const kernel = kernels::FindKernel(name.c_str());
  if (kernel == nullptr) return Broken("The catalogue has no kernel '" + name + "'.");
  constexpr double kOtherMs = 2;
  auto made = std::make_unique<Side>(gpu);
  const ProductShape shape = ShapeOf(name);
  const Status status = shape.m > 0 ? made->MakeProduct(*kernel, shape.m, shape.n, shape.k, 0)
                                    : made->Make(*kernel, kOtherMs);
  if (status.ok()) *side = std::move(made);
  return status;
}

Status MakeCuda(const std::string& name, double solo_ms, Side* side) {
  const kernels::CatalogueKernel* const kernel = kernels::FindKernel(name.c_str());
  if (kernel == nullptr) return Broken("The catalogue has no kernel '" + name + "'.");
  const ProductShape shape = ShapeOf(name);
  return shape.m > 0 ? side->MakeProduct(*kernel, shape.m, shape.n, shape.k, solo_ms)
                     : side->Make(*kernel, solo_ms);
}

// False when a pair failed; a kernel that this build does not have only leaves its pairs out.
bool RunPairs(const Arguments& arguments, OverlapGpu& gpu, CoRun& run) {
  const double end = Seconds() + arguments.seconds;
  std::unique_ptr<Side> tensor;
  std::string left_out;
  bool first = true;
  bool failed = false;
  for (const Pair& pair : arguments.pairs) {
    const std::string name = pair.tensor + "+" + pair.cuda;
    std::string why;
    if (Seconds() > end) {
      why = "no time was left";
    } else {
      Side cuda(gpu);
      PairResult result;
      Status status = MakeTensor(gpu, pair.tensor, &tensor);
      if (status.ok()) status = MakeCuda(pair.cuda, tensor->original_ms(), &cuda);
      const bool made = status.ok();
      if (made) status = RunPair(arguments, gpu, run, *tensor, cuda, &result);
      if (status.ok()) {
        Print(*tensor, cuda, result, first);
        PrintRow(*tensor, cuda, result);
        first = false;
        continue;
      }
      failed = failed || made || status.code > 0;
      why = status.message;
      std::fprintf(stderr, "%s: %s\n", name.c_str(), why.c_str());
    }
    left_out += (left_out.empty() ? "" : ", ") + ("{\"pair\": " + Quoted(name)) +
                ", \"why\": " + Quoted(why) + "}";
  }
  std::printf("],\n  \"left_out\": [%s]}\n", left_out.c_str());
  return !failed;
}

bool Parse(int argc, char** argv, Arguments* arguments) {
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 >= argc) return false;
    const char* const value = argv[i + 1];
    if (std::strcmp(argv[i], "--pairs") == 0) {
      if (!ParsePairs(value, &arguments->pairs)) return false;
    } else if (std::strcmp(argv[i], "--methods") == 0) {
      arguments->methods = SplitText(value, ',');
      for (const std::string& method : arguments->methods) {
        if (std::find(std::begin(kMethods), std::end(kMethods), method) == std::end(kMethods)) {
          return false;
        }
      }
    } else if (std::strcmp(argv[i], "--repeats") == 0) {
      arguments->repeats = std::max(1, std::atoi(value));
    } else if (std::strcmp(argv[i], "--seconds") == 0) {
      arguments->seconds = std::atof(value);
    } else {
      return false;
    }
  }
  return true;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  if (!Parse(argc, argv, &arguments)) {
    std::fprintf(stderr,
                 "overlap_benchmark [--pairs a+b,c+d] [--methods m,n] [--repeats N] [--seconds S]"
                 "\nmethods:");
    for (const char* method : kMethods) std::fprintf(stderr, " %s", method);
    std::fprintf(stderr, "\n");
    return 2;
  }
  OverlapGpu gpu;
  CoRun run;
  if (!Open(gpu, run)) return 77;
  std::printf(
      "{\"benchmark\": \"overlap_benchmark\", \"gpu\": \"%s\", \"sms\": %d, \"repeats\": %d,\n"
      "  \"note\": \"medians, from one moment to the end of both kernels\",\n  \"pairs\": [",
      gpu.model().c_str(), gpu.sms(), arguments.repeats);
  std::fprintf(stderr,
               "time saved in %%, against serial with the same Tensor kernel and with cuBLASLt's; "
               "partitions: sum of speeds @ SMs of the Tensor side\n%-12s %-19s %-9s %6s %6s |",
               "tensor", "cuda", "bound", "ms", "lt ms");
  for (const std::string& method : arguments.methods) std::fprintf(stderr, " %s |", method.c_str());
  std::fprintf(stderr, "\n");
  return RunPairs(arguments, gpu, run) ? 0 : 1;
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) { return gpushare::benchmarks::Main(argc, argv); }
