// The C surface of libgpushare_ptx.so over src/ptx/twin.h: see gpushare/ptx.h.
//
// Invariants: no function throws; a refused kernel is an answer, not an error. Threads: any.

#include "src/ptx/twin.h"

#include <gpushare/ptx.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

struct gpushare_twin {
  gpushare::ptx::Twin made;
};

namespace {

using gpushare::ptx::Check;
using gpushare::ptx::Checked;
using gpushare::ptx::KernelFacts;
using gpushare::ptx::Transform;
using gpushare::ptx::Twin;

constexpr uint32_t kAllForms = GPUSHARE_TWIN_WORKERS | GPUSHARE_TWIN_SLICE;

std::string_view TextOf(const char* text, uint64_t bytes) {
  return {text, bytes == 0 ? std::strlen(text) : static_cast<size_t>(bytes)};
}

Twin Make(const gpushare_twin_options& options) {
  const std::string_view text = TextOf(options.text, options.text_bytes);
  const std::string_view entry = options.entry == nullptr ? "" : options.entry;
  if (options.forms != 0) {
    return Transform(text, entry,
                     {.workers = (options.forms & GPUSHARE_TWIN_WORKERS) != 0,
                      .slice = (options.forms & GPUSHARE_TWIN_SLICE) != 0},
                     {.worker_registers_max = options.worker_registers_max,
                      .slice_registers_max = options.slice_registers_max});
  }
  Checked checked = Check(text, entry);
  Twin twin;
  twin.facts = std::move(checked.facts);
  twin.refusal = std::move(checked.refusal);
  return twin;
}

bool IsGood(const gpushare_twin_options* options) {
  return options != nullptr && options->struct_size == sizeof(gpushare_twin_options) &&
         options->text != nullptr && (options->forms & ~kAllForms) == 0;
}

}  // namespace

uint32_t gpushare_twin_version() noexcept { return GPUSHARE_TWIN_VERSION; }

gpushare_twin_status gpushare_twin_create(const gpushare_twin_options* options,
                                          gpushare_twin** out_twin) noexcept {
  if (out_twin == nullptr) return GPUSHARE_TWIN_INVALID_ARGUMENT;
  *out_twin = nullptr;
  if (!IsGood(options)) return GPUSHARE_TWIN_INVALID_ARGUMENT;
  try {
    *out_twin = new gpushare_twin{Make(*options)};
  } catch (...) {  // of all that can be thrown: memory, also a string beyond its greatest length
    return GPUSHARE_TWIN_OUT_OF_MEMORY;
  }
  return GPUSHARE_TWIN_OK;
}

gpushare_twin_status gpushare_twin_get_facts(const gpushare_twin* twin,
                                             gpushare_twin_facts* out_facts) noexcept {
  if (twin == nullptr || out_facts == nullptr ||
      out_facts->struct_size != sizeof(gpushare_twin_facts)) {
    return GPUSHARE_TWIN_INVALID_ARGUMENT;
  }
  const Twin& made = twin->made;
  const KernelFacts& facts = made.facts;
  gpushare_twin_facts& out = *out_facts;
  out = GPUSHARE_TWIN_FACTS_INIT;
  out.line = made.refusal.line;
  out.reason = gpushare::ptx::Name(made.refusal.reason);
  out.refusal = made.refusal.message.c_str();
  out.module = made.text.c_str();
  out.module_bytes = made.text.size();
  out.entry = facts.entry.c_str();
  out.worker_entry = made.worker_entry.c_str();
  out.slice_entry = made.slice_entry.c_str();
  if (!made.ok()) return GPUSHARE_TWIN_OK;
  out.parameter_count = static_cast<uint32_t>(facts.parameters.size());
  out.parameters_bytes = facts.parameters_bytes;
  std::copy(facts.block_required.begin(), facts.block_required.end(), out.block_required);
  std::copy(facts.block_max.begin(), facts.block_max.end(), out.block_max);
  out.static_shared_bytes = facts.static_shared_bytes;
  out.twin_shared_bytes = facts.twin_shared_bytes;
  out.dynamic_shared = facts.dynamic_shared ? 1 : 0;
  out.early_exits = facts.early_exits ? 1 : 0;
  out.uses_grid_size = facts.uses_grid_size ? 1 : 0;
  out.instructions = facts.instructions;
  out.needs_flat_block = facts.needs_flat_block ? 1 : 0;
  return GPUSHARE_TWIN_OK;
}

void gpushare_twin_release(gpushare_twin* twin) noexcept { delete twin; }

uint64_t gpushare_twin_entries(const char* text, uint64_t text_bytes, char* buffer,
                               uint64_t buffer_bytes) noexcept {
  if (text == nullptr || (buffer == nullptr && buffer_bytes != 0)) return 0;
  try {
    std::string names;
    for (const std::string& name : gpushare::ptx::Entries(TextOf(text, text_bytes))) {
      if (!names.empty()) names += '\n';
      names += name;
    }
    if (buffer_bytes != 0) {
      const size_t fits = std::min<size_t>(names.size(), buffer_bytes - 1);
      names.copy(buffer, fits);
      buffer[fits] = '\0';
    }
    return names.size() + 1;
  } catch (...) {
    return 0;
  }
}
