// Cache and assemblers in turn. See assemble.h.

#include "src/cuda/code/assemble.h"

#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace gpushare::cuda {
namespace {

// Compute capability from which a GPU has instructions that no later one has.
constexpr int kFirstSpecificMajor = 9;
// Of an assembler's log: the first error and what it points to.
constexpr size_t kExcerptBytesMax = 300;

// Whether another code of the text may do: this one is not made, or the driver does not take it.
// Whatever else went wrong is no fault of the code.
bool IsOfThisCode(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsUnimplemented(status) ||
         absl::IsInternal(status);
}

}  // namespace

std::string ArchitectureOf(int major, int minor) {
  return absl::StrCat("sm_", 10 * major + minor, major >= kFirstSpecificMajor ? "a" : "");
}

std::string Excerpt(absl::string_view log) {
  std::string out;
  for (absl::string_view line : absl::StrSplit(log, absl::ByAnyChar("\r\n"), absl::SkipEmpty())) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '\0') continue;
    absl::StrAppend(&out, out.empty() ? "" : "; ", line);
    if (out.size() > kExcerptBytesMax) break;
  }
  if (out.size() > kExcerptBytesMax) out.resize(kExcerptBytesMax);
  return out;
}

absl::Status Assembly::Make(absl::string_view text, absl::string_view form,
                            absl::FunctionRef<absl::Status(absl::string_view code)> load) const {
  if (assemblers_.empty()) {
    return absl::UnavailableError("No assembler is there: neither nvJitLink nor a driver.");
  }
  absl::Status failed;
  for (const std::unique_ptr<Assembler>& assembler : assemblers_) {
    absl::Status status = MakeWith(*assembler, text, form, load);
    if (!IsOfThisCode(status)) return status;
    const absl::string_view before = failed.message();
    failed = absl::Status(status.code(), absl::StrCat(before, before.empty() ? "" : " ",
                                                      assembler->Name(), ": ", status.message()));
  }
  return failed;
}

absl::Status Assembly::MakeWith(
    const Assembler& assembler, absl::string_view text, absl::string_view form,
    absl::FunctionRef<absl::Status(absl::string_view code)> load) const {
  const std::string name = assembler.Name();
  const std::string options = assembler.Options();
  const CodeSource source = {.text = text,
                             .form = form,
                             .options = options,
                             .assembler = name,
                             .architecture = architecture_};
  if (const std::optional<std::string> kept = cache_.Find(source); kept.has_value()) {
    absl::Status status = load(*kept);
    if (!IsOfThisCode(status)) return status;
    cache_.Drop(source);
  }
  const absl::StatusOr<std::string> code = assembler.Assemble(text, architecture_);
  if (!code.ok()) return code.status();
  if (absl::Status status = load(*code); !status.ok()) return status;
  cache_.Keep(source, *code).IgnoreError();  // without it the next process assembles again
  return absl::OkStatus();
}

}  // namespace gpushare::cuda
