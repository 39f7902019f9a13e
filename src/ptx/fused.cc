// The facade of fused twins: reads both parts, lays them out, and writes the module. See fused.h.

#include "src/ptx/fused.h"

#include <gpushare/device/launch.h>

#include <algorithm>
#include <string>

#include "src/ptx/base/limits.h"
#include "src/ptx/fused/writer.h"

namespace gpushare::ptx {
namespace {

// Both parts, or the refusal of one of them with its name before the sentence.
struct Parts {
  Part tensor;
  Part cuda;
  RefusedPart refused_part = RefusedPart::kBoth;
  Refusal refusal;

  bool Read(const FusedPart& asked, Part& part, RefusedPart which, const char* name) {
    refusal = ReadPart(asked, part);
    if (refusal.reason == Reason::kNone) return true;
    refused_part = which;
    refusal.message = std::string(name) + " cannot be fused. " + refusal.message;
    return false;
  }
  Parts(const FusedPart& asked_tensor, const FusedPart& asked_cuda) {
    if (Read(asked_tensor, tensor, RefusedPart::kTensor, "The first kernel")) {
      Read(asked_cuda, cuda, RefusedPart::kCuda, "The second kernel");
    }
  }
};

uint64_t BehindParameters(const Part& part, uint64_t begin) {
  const uint64_t align = part.parameters_align;
  const uint64_t header_end = (begin + 7) / 8 * 8 + sizeof(gpushare_worker_launch);
  return (header_end + align - 1) / align * align + part.parameters_bytes;
}

Refusal CheckParameters(const Parts& parts, const FusedHeader& header) {
  const bool large =
      header.version_major > 8 || (header.version_major == 8 && header.version_minor >= 1);
  const uint32_t limit = large ? kParametersBytesMaxFrom81 : kParametersBytesMax;
  const uint64_t bytes = BehindParameters(parts.cuda, BehindParameters(parts.tensor, 0));
  if (bytes <= limit) return {};
  return {Reason::kParameters, 0,
          "The fused kernel has " + std::to_string(bytes) +
              " bytes of parameters with both launch headers, and the limit is " +
              std::to_string(limit) + "."};
}

// Each copy of a part has the kernel's body again.
Refusal CheckSize(const FusedPart& tensor, const FusedPart& cuda) {
  const uint64_t bytes =
      uint64_t{tensor.copies} * tensor.text.size() + uint64_t{cuda.copies} * cuda.text.size();
  if (bytes <= kTextBytesMax) return {};
  return {Reason::kTooLarge, 0,
          "The texts of all copies have " + std::to_string(bytes) + " bytes, and the limit is " +
              std::to_string(kTextBytesMax) + "."};
}

}  // namespace

FusedChecked CheckFused(const FusedPart& tensor, const FusedPart& cuda) {
  const Parts parts(tensor, cuda);
  FusedChecked checked;
  checked.refused_part = parts.refused_part;
  checked.refusal = parts.refusal;
  if (!checked.ok()) return checked;
  checked.tensor = parts.tensor.needs;
  checked.cuda = parts.cuda.needs;
  FusedHeader header;
  checked.may_move_registers =
      JoinHeaders(parts.tensor, parts.cuda, true, header).reason == Reason::kNone;
  return checked;
}

FusedTwin Fuse(const FusedPart& tensor, const FusedPart& cuda, const FuseOptions& options) {
  const Parts parts(tensor, cuda);
  FusedTwin twin;
  twin.refused_part = parts.refused_part;
  twin.refusal = parts.refusal;
  FusedHeader header;
  const auto next = [&](auto&& step) {
    if (twin.ok()) twin.refusal = step();
  };
  next([&] { return JoinHeaders(parts.tensor, parts.cuda, options.move_registers, header); });
  next([&] { return CheckParameters(parts, header); });
  next([&] {
    const LayoutChoices choices = {.tensor_copies = tensor.copies,
                                   .cuda_copies = cuda.copies,
                                   .move_registers = options.move_registers,
                                   .blocks_per_sm = options.blocks_per_sm};
    return LayOut(parts.tensor.needs, parts.cuda.needs, choices, {}, twin.layout);
  });
  next([&] { return CheckSize(tensor, cuda); });
  next([&] { return CheckRegisters(options.registers_max); });
  if (!twin.ok()) return twin;
  twin.tensor_parameters_bytes = parts.tensor.parameters_bytes;
  twin.cuda_parameters_bytes = parts.cuda.parameters_bytes;
  twin.entry = std::string(parts.tensor.module.entry.name) + "_with_" +
               std::string(parts.cuda.module.entry.name) + "_gpushare_fused";
  twin.text =
      WriteFused(parts.tensor, parts.cuda, twin.layout, header, twin.entry, options.registers_max);
  return twin;
}

}  // namespace gpushare::ptx
