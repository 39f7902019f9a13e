// The module of a fused twin. See writer.h.

#include "src/ptx/fused/writer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/ptx/fused/body.h"
#include "src/ptx/text/lexer.h"
#include "src/ptx/twins/protocol.h"
#include "src/ptx/twins/text_edits.h"

namespace gpushare::ptx {
namespace {

// A target of one architecture or family alone: sm_90a, sm_100f.
bool HasSuffix(std::string_view target) { return target.ends_with('a') || target.ends_with('f'); }

uint32_t OffsetIn(std::string_view text, std::string_view part) {
  return static_cast<uint32_t>(part.data() - text.data());
}

// The text [begin, end) with new names for `names`, which are in its order.
std::string Renamed(std::string_view text, uint32_t begin, uint32_t end,
                    const std::vector<std::string_view>& names, FusedSide side) {
  TextEdits edits;
  for (const std::string_view name : names) {
    const uint32_t at = OffsetIn(text, name);
    edits.Replace(at, static_cast<uint32_t>(at + name.size()), RenamedFor(side, name));
  }
  return edits.Apply(text, begin, end);
}

std::string Variables(const Part& part, FusedSide side) {
  std::string out;
  for (const uint32_t index : part.variable_items) {
    const VariableItem& item = part.outline.variables[index];
    out += Renamed(part.module.text, item.begin, item.end, item.names, side) + "\n";
  }
  return out;
}

// The header, then the kernel's own parameters as one. A kernel without any gets a byte, as an
// empty struct has.
std::string Parameters(const Part& part, FusedSide side) {
  return "\n\t.param .align 8 .b8 " + LaunchOf(side) + "[128],\n\t.param .align " +
         std::to_string(part.parameters_align) + " .b8 " + ParametersOf(side) + "[" +
         std::to_string(std::max(1u, part.parameters_bytes)) + "]";
}

std::string Memory(const FusedLayout& layout) {
  std::string out = layout.dynamic_shared ? ".extern .shared" : "\t.shared";
  out += " .align " + std::to_string(layout.shared_align) + " .b8 " + kFusedMemory + "[";
  if (!layout.dynamic_shared) out += std::to_string(layout.shared_bytes);
  return out + "];\n";
}

// Sends threads from `end` on to the next worker's label.
std::string WhereThreadsAre(uint32_t end, uint32_t worker) {
  return "\tsetp.ge.u32 %gpushare_behind, %gpushare_thread, " + std::to_string(end) +
         ";\n\t@%gpushare_behind bra $gpushare_worker_" + std::to_string(worker) + ";\n";
}

}  // namespace

Refusal JoinHeaders(const Part& tensor, const Part& cuda, bool moves_registers,
                    FusedHeader& header) {
  const Module& a = tensor.module;
  const Module& b = cuda.module;
  const bool a_is_newer =
      std::pair(a.version_major, a.version_minor) >= std::pair(b.version_major, b.version_minor);
  header.version_major = a_is_newer ? a.version_major : b.version_major;
  header.version_minor = a_is_newer ? a.version_minor : b.version_minor;
  const std::string_view of_a = tensor.outline.target;
  const std::string_view of_b = cuda.outline.target;
  const bool takes_a = a.target > b.target || (a.target == b.target && HasSuffix(of_a));
  header.target = takes_a ? of_a : of_b;
  const std::string_view lesser = takes_a ? of_b : of_a;
  if (lesser != header.target && HasSuffix(lesser)) {
    return {Reason::kVersion, 0,
            "The parts' targets are " + std::string(of_a.substr(0, 80)) + " and " +
                std::string(of_b.substr(0, 80)) + ", and no GPU runs both."};
  }
  if (!moves_registers) return {};
  if (header.target == "sm_90a" && header.version_major >= 8) return {};
  return {Reason::kVersion, 0,
          "setmaxnreg needs target sm_90a and PTX 8.0, and the parts have " +
              std::string(header.target.substr(0, 80)) + " and PTX " +
              std::to_string(header.version_major) + "." + std::to_string(header.version_minor) +
              "."};
}

std::string WriteFused(const Part& tensor, const Part& cuda, const FusedLayout& layout,
                       const FusedHeader& header, std::string_view name, uint32_t registers_max) {
  std::string out;
  out.reserve(size_t{32} * 1024 + layout.tensor.copies * 2 * tensor.module.text.size() +
              layout.cuda.copies * 2 * cuda.module.text.size());
  out += ".version " + std::to_string(header.version_major) + "." +
         std::to_string(header.version_minor) + "\n.target " + std::string(header.target) +
         "\n.address_size 64\n\n";
  if (tensor.calls_assert || cuda.calls_assert) {
    out += (tensor.calls_assert ? tensor : cuda).outline.assert_declaration;
    out += "\n";
  }
  out += Variables(tensor, FusedSide::kTensor) + Variables(cuda, FusedSide::kCuda);
  if (layout.dynamic_shared) out += Memory(layout);
  out += ".visible .entry " + std::string(name) + "(" + Parameters(tensor, FusedSide::kTensor) +
         "," + Parameters(cuda, FusedSide::kCuda) + "\n)\n.reqntid " +
         std::to_string(layout.threads) + "\n";
  const uint32_t registers = layout.registers != 0 ? layout.registers : registers_max;
  if (registers != 0) out += ".maxnreg " + std::to_string(registers) + "\n";
  out += "{\n";
  if (!layout.dynamic_shared) out += Memory(layout);
  out +=
      "\t.reg .pred %gpushare_behind;\n\t.reg .b32 %gpushare_thread;\n"
      "\tmov.u32 %gpushare_thread, %tid.x;\n";
  for (uint32_t copy = 0; copy < layout.tensor.copies; ++copy) {
    const bool is_last = copy + 1 == layout.tensor.copies;
    const uint32_t end = is_last ? layout.tensor.threads_in_all : (copy + 1) * layout.tensor.stride;
    out += WhereThreadsAre(end, copy + 1);
    out += WriteScope(tensor, layout.tensor, FusedSide::kTensor, copy);
    out += "$gpushare_worker_" + std::to_string(copy + 1) + ":\n";
  }
  for (uint32_t copy = 0; copy < layout.cuda.copies; ++copy) {
    const uint32_t worker = layout.tensor.copies + copy + 1;
    const bool is_last = copy + 1 == layout.cuda.copies;
    const uint32_t end = layout.cuda.first_thread + (copy + 1) * layout.cuda.stride;
    if (!is_last) out += WhereThreadsAre(end, worker);
    out += WriteScope(cuda, layout.cuda, FusedSide::kCuda, copy);
    if (!is_last) out += "$gpushare_worker_" + std::to_string(worker) + ":\n";
  }
  out += "}\n";
  return out;
}

}  // namespace gpushare::ptx
