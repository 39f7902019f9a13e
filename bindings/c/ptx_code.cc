// Twins of a kernel's PTX; see ptx_code.h.

#include "bindings/c/ptx_code.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bindings/c/options.h"
#include "src/core/base/limits.h"
#include "src/core/base/status.h"
#include "src/ptx/base/limits.h"

namespace gpushare::abi {
namespace {

constexpr uint32_t kAllForms = GPUSHARE_PTX_FORM_WORKERS | GPUSHARE_PTX_FORM_SLICE;
constexpr uint32_t kAllBits = kAllForms | GPUSHARE_PTX_FORM_GRAPH_NODES;
static_assert(GPUSHARE_PTX_FORM_WORKERS == 1 << GPUSHARE_FORM_WORKERS);
static_assert(GPUSHARE_PTX_FORM_SLICE == 1 << GPUSHARE_FORM_SLICE);
static_assert(core::kMaxPtxBytes == ptx::kTextBytesMax);

// `form` is "worker" or "slice".
core::PtxForm Refused(const std::string& entry, const char* form, const ptx::Refusal& refusal) {
  const std::string kernel =
      entry.empty() ? std::string("The kernel") : absl::StrCat("Kernel '", entry, "'");
  const std::string place =
      refusal.line == 0 ? std::string("text") : absl::StrCat("line ", refusal.line);
  return {.refusal = absl::StrCat(kernel, " has no ", form, " form (", place, ", ",
                                  ptx::Name(refusal.reason), "): ", refusal.message),
          .line = refusal.line};
}

absl::Status CheckEntry(const PtxSource& source, const ptx::Refusal& refusal) {
  if (refusal.reason != ptx::Reason::kNoEntry) return absl::OkStatus();
  const std::string asked = source.entry.empty()
                                ? std::string("null")
                                : absl::StrCat("'", std::string(source.entry), "'");
  return absl::NotFoundError(absl::StrCat("ptx_code.entry is ", asked, ". ", refusal.message));
}

// The kernel's name; "" where nobody says it and the text does not.
std::string EntryOf(const PtxSource& source) {
  if (!source.entry.empty()) return std::string(source.entry);
  const std::vector<std::string> entries = ptx::Entries(source.text);
  return entries.size() == 1 ? entries.front() : "";
}

void Take(ptx::Twin twin, MadePtx& made) {
  const std::array<uint32_t, 3>& most = twin.facts.block_max;
  made.threads_max = uint64_t{most[0]} * most[1] * most[2];
  made.needs_flat_block = twin.facts.needs_flat_block;
  core::PtxCode& code = made.code;
  const std::array<uint32_t, 3>& block = twin.facts.block_required;
  for (size_t i = 0; i < block.size() && block[0] != 0; ++i) {
    code.block[i] = static_cast<int32_t>(std::max(block[i], 1u));
  }
  code.module = std::move(twin.text);
  code.entry = std::move(twin.facts.entry);
  code.worker.entry = std::move(twin.worker_entry);
  code.slice.entry = std::move(twin.slice_entry);
}

// 0 where a dimension is out of range.
int64_t ThreadsOf(const std::array<int32_t, 3>& shape) {
  int64_t threads = 1;
  for (const int32_t dimension : shape) {
    if (dimension < 1 || dimension > core::kMaxThreadsPerBlock) return 0;
    threads *= dimension;
  }
  return threads;
}

// The block that the text requires counts where the caller says nothing of it, whatever the profile
// says. A caller's shape that no kernel has is left to the kernel's check.
// INVALID_ARGUMENT: no block is that large, or the caller's is another one. A launch fails unless
// each dimension is the required one, so that equal numbers of threads are not enough.
absl::Status TakeBlock(const gpushare_kernel_options& options,
                       const std::array<int32_t, 3>& required, core::KernelResources& out) {
  if (required[0] == 0) return absl::OkStatus();
  const int64_t threads = ThreadsOf(required);
  if (threads == 0 || threads > core::kMaxThreadsPerBlock) {
    return absl::InvalidArgumentError(
        absl::StrCat("The PTX of kernel '", options.name, "' requires blocks of ",
                     absl::StrJoin(required, " x "), " threads, and CUDA allows 1 to ",
                     core::kMaxThreadsPerBlock, "."));
  }
  const std::array<int32_t, 3> shape = {options.block_x, options.block_y, options.block_z};
  const bool has_shape = shape != std::array<int32_t, 3>{};
  if (has_shape && ThreadsOf(shape) == 0) return absl::OkStatus();
  const bool is_other =
      has_shape ? shape != required
                : options.threads_per_block != 0 && options.threads_per_block != threads;
  if (is_other) {
    const std::string stated =
        has_shape ? absl::StrJoin(shape, " x ") : absl::StrCat(options.threads_per_block);
    return absl::InvalidArgumentError(absl::StrCat("Kernel '", options.name, "' has blocks of ",
                                                   stated, " threads, and its PTX requires ",
                                                   absl::StrJoin(required, " x "), "."));
  }
  if (has_shape) return absl::OkStatus();
  out.block_x = required[0];
  out.block_y = required[1];
  out.block_z = required[2];
  out.threads_per_block = static_cast<int32_t>(threads);
  return absl::OkStatus();
}

// INVALID_ARGUMENT: the block has more threads than the text allows. It is the caller's, the one
// that the text requires, or that of the profile.
absl::Status CheckThreadsMax(const gpushare_kernel_options& options,
                             const core::KernelResources& block, uint64_t threads_max) {
  const int64_t shape = ThreadsOf({block.block_x, block.block_y, block.block_z});
  const int64_t threads = std::max<int64_t>({shape, block.threads_per_block, 0});
  if (threads_max == 0 || static_cast<uint64_t>(threads) <= threads_max) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "Kernel '", options.name, "' has blocks of ", threads, " threads, and its PTX allows ",
      threads_max, " (.maxntid). State threads_per_block or the block's shape."));
}

// Refuses twins whose text says nothing of the block's shape, where the block is not the one that
// they were made for.
void RefuseDeepBlock(const core::KernelResources& block, MadePtx& made) {
  if (!made.needs_flat_block || (block.block_y <= 1 && block.block_z <= 1)) return;
  const std::array<int32_t, 3> shape = {block.block_x, block.block_y, block.block_z};
  const ptx::Refusal refusal = {
      ptx::Reason::kWarpSync, 0,
      absl::StrCat("It reads %tid.x alone, so that each warp was taken as a part of a row, and its "
                   "blocks have ",
                   absl::StrJoin(shape, " x "), " threads. With '.reqntid ",
                   absl::StrJoin(shape, ", "), "' in the text it is checked for them.")};
  core::PtxCode& code = made.code;
  if (code.worker.made()) code.worker = Refused(code.entry, "worker", refusal);
  if (code.slice.made()) code.slice = Refused(code.entry, "slice", refusal);
  code.module = {};
}

}  // namespace

absl::StatusOr<PtxSource> ReadPtxSource(const gpushare_ptx_code* code) {
  gpushare_ptx_code known;
  GPUSHARE_RETURN_IF_ERROR(ReadOptions("ptx_code", code, &known));
  GPUSHARE_RETURN_IF_ERROR(CheckNotNull("ptx_code.text", known.text));
  uint64_t bytes = known.text_bytes;
  if (bytes == 0) bytes = strnlen(known.text, core::kMaxPtxBytes + 1);
  if (bytes == 0 || bytes > core::kMaxPtxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("ptx_code.text has ", bytes == 0 ? "no" : "too many",
                     " bytes, and it must have 1 to ", core::kMaxPtxBytes, "."));
  }
  if ((known.forms & ~kAllBits) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("ptx_code.forms is ", known.forms,
                                                   ", and it is 0 or bits of ", kAllBits,
                                                   " (2 workers, 4 slice, 65536 graph nodes)."));
  }
  const uint32_t named = known.forms & kAllForms;
  const uint32_t forms = named == 0 ? kAllForms : named;
  PtxSource out;
  out.text = {known.text, static_cast<size_t>(bytes)};
  if (known.entry != nullptr) out.entry = known.entry;
  out.forms.workers = (forms & GPUSHARE_PTX_FORM_WORKERS) != 0;
  out.forms.slice = (forms & GPUSHARE_PTX_FORM_SLICE) != 0;
  out.graph_nodes = (known.forms & GPUSHARE_PTX_FORM_GRAPH_NODES) != 0;
  return out;
}

absl::StatusOr<MadePtx> MakePtxCode(const PtxSource& source) {
  ptx::Twin twin = ptx::Transform(source.text, source.entry, source.forms);
  GPUSHARE_RETURN_IF_ERROR(CheckEntry(source, twin.refusal));
  MadePtx made;
  core::PtxCode& code = made.code;
  code.text = std::string(source.text);
  code.graph_nodes = source.graph_nodes;
  if (twin.ok()) {
    Take(std::move(twin), made);
    return made;
  }
  // What refuses a kernel refuses each of its forms.
  code.entry = EntryOf(source);
  if (source.forms.workers) code.worker = Refused(code.entry, "worker", twin.refusal);
  if (source.forms.slice) code.slice = Refused(code.entry, "slice", twin.refusal);
  return made;
}

absl::StatusOr<core::PtxForm> CheckPtxForm(const PtxSource& source) {
  const ptx::Checked checked = ptx::Check(source.text, source.entry);
  GPUSHARE_RETURN_IF_ERROR(CheckEntry(source, checked.refusal));
  if (checked.ok()) return core::PtxForm();
  return Refused(EntryOf(source), source.forms.workers ? "worker" : "slice", checked.refusal);
}

absl::Status TakePtx(const gpushare_kernel_options& options, MadePtx made,
                     core::KernelDesc& kernel) {
  if (kernel.kind() != core::TaskKind::kKernel) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", options.name, "' has PTX, and it is not of kind kernel."));
  }
  if (options.worker_function != nullptr || options.slice_function != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", options.name, "' has a worker or slice function, and it gets both from its PTX."));
  }
  if (options.yield_interval_ns != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", options.name,
                     "' has yield points (yield_interval_ns), and a kernel of PTX has none."));
  }
  kernel.yield_interval_ns = 0;  // the profile's is of another body
  core::PtxCode& code = made.code;
  GPUSHARE_RETURN_IF_ERROR(TakeBlock(options, code.block, kernel.resources));
  GPUSHARE_RETURN_IF_ERROR(CheckThreadsMax(options, kernel.resources, made.threads_max));
  RefuseDeepBlock(kernel.resources, made);
  code.must_evict = options.evictable == GPUSHARE_CHOICE_YES;
  if (code.must_evict && !code.worker.made()) {
    return absl::UnimplementedError(
        code.worker.refusal.empty()
            ? absl::StrCat("Kernel '", options.name,
                           "' is evictable, and ptx_code.forms has no worker form.")
            : code.worker.refusal);
  }
  kernel.evictable = code.worker.made() && options.evictable != GPUSHARE_CHOICE_NO;
  code.functions.original = options.original_function;
  kernel.code = std::move(code);
  return absl::OkStatus();
}

}  // namespace gpushare::abi
