// The facade: reads a text, checks it, and puts its twins together. See twin.h.

#include "src/ptx/twin.h"

#include <cstddef>
#include <utility>

#include "src/ptx/analysis/checks.h"
#include "src/ptx/text/module.h"
#include "src/ptx/text/parser.h"
#include "src/ptx/twins/protocol.h"
#include "src/ptx/twins/twin_writer.h"

namespace gpushare::ptx {
namespace {

KernelFacts FactsOf(const Module& module, const Findings& findings) {
  const Entry& entry = module.entry;
  KernelFacts facts;
  facts.entry = entry.name;
  facts.line = entry.line;
  for (const Parameter& parameter : entry.parameters) {
    facts.parameters.push_back({parameter.size_bytes, parameter.align_bytes});
  }
  facts.parameters_bytes = findings.parameters_bytes;
  facts.block_required = entry.block_required;
  facts.block_max = entry.block_max;
  facts.static_shared_bytes = module.static_shared_bytes;
  facts.twin_shared_bytes = TwinSharedBytes(module);
  facts.dynamic_shared = module.dynamic_shared;
  facts.early_exits = findings.barriers.early_exits;
  facts.uses_grid_size = findings.reads_grid_size;
  facts.needs_flat_block = findings.needs_flat_block;
  facts.instructions = findings.instructions;
  return facts;
}

Refusal Read(std::string_view text, std::string_view entry, Module& module, Findings& findings) {
  Refusal refusal = Parse(text, entry, false, module);
  if (refusal.reason == Reason::kNone) refusal = CheckReservedNames(text);
  if (refusal.reason == Reason::kNone) refusal = CheckKernel(module, findings);
  return refusal;
}

}  // namespace

std::vector<std::string> Entries(std::string_view text) {
  Module module;
  if (Parse(text, {}, true, module).reason != Reason::kNone) return {};
  return {module.entries.begin(), module.entries.end()};
}

Checked Check(std::string_view text, std::string_view entry) {
  Module module;
  Findings findings;
  Checked checked;
  checked.refusal = Read(text, entry, module, findings);
  if (checked.ok()) checked.facts = FactsOf(module, findings);
  return checked;
}

Twin Transform(std::string_view text, std::string_view entry, const Forms& forms,
               const Options& options) {
  Module module;
  Findings findings;
  Twin twin;
  twin.refusal = Read(text, entry, module, findings);
  if (!twin.ok()) return twin;
  twin.facts = FactsOf(module, findings);
  const uint32_t cut = forms.original ? module.entry.end : module.entry.begin;
  twin.text.reserve(text.size() * 3 + size_t{16} * 1024);
  twin.text = text.substr(0, cut);
  const auto add = [&](TwinForm form, const char* suffix, uint32_t registers_max) {
    std::string name = twin.facts.entry + "_gpushare_" + suffix;
    twin.text += '\n';
    twin.text += WriteTwin(module, findings, form, name, registers_max);
    return name;
  };
  if (forms.workers) {
    twin.worker_entry = add(TwinForm::kWorkers, "workers", options.worker_registers_max);
  }
  if (forms.slice) twin.slice_entry = add(TwinForm::kSlice, "slice", options.slice_registers_max);
  twin.text += text.substr(module.entry.end);
  return twin;
}

}  // namespace gpushare::ptx
