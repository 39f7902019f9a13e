// Fused twins of two files; see ptx_fuse.h.

#include "tools/gpushare/command/ptx_fuse.h"

#include <cstddef>

#include "src/ptx/fused.h"
#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/base/text.h"

namespace gpushare::tool {

namespace {

// The texts of both files, and the parts that look into them.
struct Pair {
  std::string first_text;
  std::string second_text;
  ptx::FusedPart first;
  ptx::FusedPart second;
};

Pair PairOf(const PtxFuseRequest& request) {
  Pair pair;
  pair.first_text = ReadFile(request.file, kPtxBytesMax);
  pair.second_text = ReadFile(request.other, kPtxBytesMax);
  const auto part = [&](const std::string& text, const std::string& entry, size_t i) {
    ptx::FusedPart one;
    one.text = text;
    one.entry = entry;
    if (request.threads[i] > 0) one.block = {request.threads[i], 1, 1};
    one.dynamic_shared_bytes = request.shared_bytes[i];
    one.copies = request.copies[i];
    one.registers = request.registers[i];
    return one;
  };
  pair.first = part(pair.first_text, request.entry, 0);
  pair.second = part(pair.second_text, request.other_entry, 1);
  return pair;
}

[[noreturn]] void Refuse(const PtxFuseRequest& request, ptx::RefusedPart part,
                         const ptx::Refusal& refusal) {
  std::string file;
  if (part == ptx::RefusedPart::kTensor) file = request.file + ": ";
  if (part == ptx::RefusedPart::kCuda) file = request.other + ": ";
  throw Differs(file + refusal.message);
}

}  // namespace

std::string FusePtx(const PtxFuseRequest& request) {
  const Pair pair = PairOf(request);
  const ptx::FusedTwin twin = ptx::Fuse(
      pair.first, pair.second,
      {.move_registers = request.moving_blocks > 0, .blocks_per_sm = request.moving_blocks});
  if (!twin.ok()) Refuse(request, twin.refused_part, twin.refusal);
  return twin.text;
}

std::string FusedRatiosOf(const PtxFuseRequest& request) {
  const Pair pair = PairOf(request);
  const ptx::FusedChecked checked = ptx::CheckFused(pair.first, pair.second);
  if (!checked.ok()) Refuse(request, checked.refused_part, checked.refusal);
  std::string out = "ratio   threads  barriers  shared_bytes  registers  blocks_per_sm  note\n";
  for (const ptx::FusedRatio& ratio : ptx::FeasibleRatios(checked.tensor, checked.cuda)) {
    const std::string name = Format("%u:%u", ratio.tensor_copies, ratio.cuda_copies);
    const std::string registers = ratio.registers == 0 ? "unknown" : Format("%u", ratio.registers);
    out += Format("%-6s  %-7u  %-8u  %-12u  %-9s  ", name.c_str(), ratio.threads, ratio.barriers,
                  ratio.shared_bytes, registers.c_str());
    out += Format(ratio.capped ? "%-13u  may spill\n" : "%u\n", ratio.blocks_per_sm);
  }
  return out;
}

}  // namespace gpushare::tool
