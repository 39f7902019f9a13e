#include "benchmarks/gpu/ptx/dry_run.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "benchmarks/gpu/ptx/fused_plan.h"
#include "benchmarks/harness/failure.h"
#include "benchmarks/harness/json.h"
#include "src/cuda/code/nvjitlink.h"
#include "src/ptx/fused.h"

namespace gpushare::benchmarks {
namespace {

PartSource SourceOf(const RecordedFile& file, const std::string& text) {
  return {.text = text,
          .entry = file.entry,
          .threads = file.threads,
          .dynamic_shared_bytes = file.dynamic_shared_bytes};
}

using Clock = std::chrono::steady_clock;

// What one pair gives.
struct Counts {
  int feasible = 0;
  int fused = 0;
  int assembled = 0;
  std::string why_not;  // the last reason
};

// `assembler` null: nothing is assembled.
Counts FuseAll(const RecordedFile& tensor, const RecordedFile& cuda, const RatioBounds& bounds,
               const cuda::Assembler* assembler, Clock::time_point until) {
  const std::string tensor_text = ReadText(tensor.ptx);
  const std::string cuda_text = ReadText(cuda.ptx);
  const PartSource tensor_source = SourceOf(tensor, tensor_text);
  const PartSource cuda_source = SourceOf(cuda, cuda_text);
  const PairRatios pair = RatiosOfParts(tensor_source, cuda_source, bounds);
  Counts counts;
  counts.why_not = pair.refusal;
  for (const ptx::FusedRatio& ratio : pair.ratios) {
    ++counts.feasible;
    const ptx::FusedTwin twin = FusedAt(tensor_source, cuda_source, ratio);
    if (!twin.ok()) {
      counts.why_not = twin.refusal.message;
      continue;
    }
    ++counts.fused;
    if (assembler == nullptr || Clock::now() > until) continue;
    const auto code = assembler->Assemble(twin.text, "sm_90a");
    counts.assembled += code.ok() ? 1 : 0;
    if (!code.ok()) counts.why_not = MessageOf(code.status());
  }
  return counts;
}

}  // namespace

int DryRun(const std::vector<RecordedFile>& files, size_t pairs, const RatioBounds& bounds,
           double seconds) {
  std::vector<Candidate> candidates;
  candidates.reserve(files.size());
  for (const RecordedFile& file : files) {
    // Times are not known: all kernels are taken as equally long.
    candidates.push_back({file.name,
                          file.tensor ? TensorKindOf(file.source) : OtherKindOf(file.bytes, 1),
                          file.blocks, 1, 1});
  }
  const absl::StatusOr<std::unique_ptr<cuda::Assembler>> assembler = cuda::OpenNvJitLink();
  const std::vector<PairChoice> chosen = ChoosePairs(candidates, pairs, {0, 1});
  Report report({{"benchmark", "ptx_fused_benchmark"},
                 {"dry_run", true},
                 {"assembler", assembler.ok() ? (*assembler)->Name() : "none"}},
                "pairs");
  const Clock::time_point begin = Clock::now();
  int fused_pairs = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const RecordedFile& tensor = files[chosen[i].tensor];
    const RecordedFile& cuda = files[chosen[i].cuda];
    const double share = static_cast<double>(i + 1) / static_cast<double>(chosen.size());
    const auto until = begin + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(seconds * share));
    const Counts counts =
        FuseAll(tensor, cuda, bounds, assembler.ok() ? assembler->get() : nullptr, until);
    fused_pairs += counts.fused > 0 ? 1 : 0;
    report.Row({{"tensor", tensor.entry},
                {"cuda", cuda.entry},
                {"feasible", counts.feasible},
                {"fused", counts.fused},
                {"assembled", counts.assembled},
                {"why_not", counts.why_not}});
  }
  report.End({{"fused_pairs", fused_pairs}});
  return fused_pairs > 0 ? 0 : kFailed;
}

}  // namespace gpushare::benchmarks
