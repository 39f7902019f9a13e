// Twins of PTX as text: what may be made, why not, and the module. Threads: any; nothing is kept.

#include <string>

#include "absl/strings/str_cat.h"
#include "bindings/c/errors.h"
#include "bindings/c/options.h"
#include "bindings/c/ptx_code.h"
#include "src/core/base/status.h"

namespace gpushare::abi {
namespace {

// The forms of a check: one, WORKERS or SLICE.
absl::StatusOr<ptx::Forms> FormsOf(gpushare_form form) {
  ptx::Forms forms;
  forms.workers = form == GPUSHARE_FORM_WORKERS;
  forms.slice = form == GPUSHARE_FORM_SLICE;
  if (forms.workers || forms.slice) return forms;
  return absl::InvalidArgumentError(
      absl::StrCat("form is ", form, ", and twins are of form 1 (workers) or 2 (slice)."));
}

absl::Status Entries(const gpushare_ptx_code* code, std::string& out) {
  const absl::StatusOr<PtxSource> source = ReadPtxSource(code);
  if (!source.ok()) return source.status();
  for (const std::string& entry : ptx::Entries(source->text)) {
    absl::StrAppend(&out, out.empty() ? "" : "\n", entry);
  }
  return absl::OkStatus();
}

absl::StatusOr<core::PtxForm> Check(const gpushare_ptx_code* code, gpushare_form form) {
  absl::StatusOr<PtxSource> source = ReadPtxSource(code);
  if (!source.ok()) return source.status();
  GPUSHARE_ASSIGN_OR_RETURN(source->forms, FormsOf(form));
  return CheckPtxForm(*source);
}

absl::StatusOr<std::string> Module(const gpushare_ptx_code* code) {
  const absl::StatusOr<PtxSource> source = ReadPtxSource(code);
  if (!source.ok()) return source.status();
  absl::StatusOr<MadePtx> made = MakePtxCode(*source);
  if (!made.ok()) return made.status();
  for (const core::PtxForm& form : {made->code.worker, made->code.slice}) {
    if (!form.refusal.empty()) return absl::UnimplementedError(form.refusal);
  }
  return std::move(made->code.module);
}

}  // namespace
}  // namespace gpushare::abi

using gpushare::abi::CheckNotNull;
using gpushare::abi::CopyText;
using gpushare::abi::Enter;

gpushare_status gpushare_ptx_entries(const gpushare_ptx_code* code, char* buffer,
                                     size_t buffer_size_bytes, size_t* out_size_bytes) noexcept {
  return Enter([&]() -> absl::Status {
    std::string names;
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::Entries(code, names));
    return CopyText(names, buffer, buffer_size_bytes, out_size_bytes);
  });
}

gpushare_status gpushare_ptx_check(const gpushare_ptx_code* code, gpushare_form form,
                                   uint32_t* out_line, char* buffer, size_t buffer_size_bytes,
                                   size_t* out_size_bytes) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull("out_line", out_line));
    const absl::StatusOr<gpushare::core::PtxForm> checked = gpushare::abi::Check(code, form);
    if (!checked.ok()) return checked.status();
    *out_line = checked->line;
    return CopyText(checked->refusal, buffer, buffer_size_bytes, out_size_bytes);
  });
}

gpushare_status gpushare_ptx_transform(const gpushare_ptx_code* code, char* buffer,
                                       size_t buffer_size_bytes, size_t* out_size_bytes) noexcept {
  return Enter([&]() -> absl::Status {
    const absl::StatusOr<std::string> module = gpushare::abi::Module(code);
    if (!module.ok()) return module.status();
    return CopyText(*module, buffer, buffer_size_bytes, out_size_bytes);
  });
}
