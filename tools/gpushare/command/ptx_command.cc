// Twins of a file's kernels, through the C API; see ptx_command.h.

#include "tools/gpushare/command/ptx_command.h"

#include <gpushare/gpushare.h>

#include <algorithm>
#include <functional>
#include <sstream>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/library.h"
#include "tools/gpushare/base/limits.h"

namespace gpushare::tool {

namespace {

constexpr const char* kWorker = "worker";
constexpr const char* kSlice = "slice";

// Most texts fit: verdicts, and modules of one small kernel.
constexpr size_t kFirstBytes = size_t{64} << 10;

// What a text function of the library writes. Each call does the whole work, so a second one is
// made only for a text that does not fit.
std::string Written(const std::function<gpushare_status(char*, size_t, size_t*)>& write) {
  size_t bytes = 0;
  std::string text(kFirstBytes, '\0');
  gpushare_status status = write(text.data(), text.size(), &bytes);
  if (status == GPUSHARE_OUT_OF_RANGE && bytes > text.size()) {
    text.resize(bytes);
    status = write(text.data(), text.size(), &bytes);
  }
  Check(status);
  text.resize(text.find('\0'));
  return text;
}

gpushare_ptx_code CodeOf(const std::string& text, const std::string& entry,
                         const std::string& form) {
  gpushare_ptx_code code = GPUSHARE_PTX_CODE_INIT;
  code.text = text.c_str();
  code.text_bytes = text.size();
  if (!entry.empty()) code.entry = entry.c_str();
  if (form == kWorker) code.forms = GPUSHARE_PTX_FORM_WORKERS;
  if (form == kSlice) code.forms = GPUSHARE_PTX_FORM_SLICE;
  return code;
}

PtxVerdict VerdictOf(const std::string& text, const std::string& entry, const std::string& form) {
  const gpushare_ptx_code code = CodeOf(text, entry, form);
  const gpushare_form number = form == kWorker ? GPUSHARE_FORM_WORKERS : GPUSHARE_FORM_SLICE;
  PtxVerdict out = {.kernel = entry, .form = form, .line = 0, .reason = ""};
  out.reason = Written([&](char* buffer, size_t size, size_t* bytes) {
    return gpushare_ptx_check(&code, number, &out.line, buffer, size, bytes);
  });
  return out;
}

// Those that the user names, else those of the text; of a text that does not parse, one without a
// name.
std::vector<std::string> KernelsOf(const std::string& text, const std::string& entry) {
  if (!entry.empty()) return {entry};
  const gpushare_ptx_code code = CodeOf(text, "", "");
  std::istringstream names(Written([&](char* buffer, size_t size, size_t* bytes) {
    return gpushare_ptx_entries(&code, buffer, size, bytes);
  }));
  std::vector<std::string> out;
  for (std::string name; std::getline(names, name);) out.push_back(name);
  if (out.empty()) out.emplace_back();
  return out;
}

}  // namespace

std::vector<PtxVerdict> CheckPtx(const PtxRequest& request) {
  const std::string text = ReadFile(request.file, kPtxBytesMax);
  std::vector<PtxVerdict> out;
  for (const std::string& kernel : KernelsOf(text, request.entry)) {
    for (const char* const form : {kWorker, kSlice}) {
      if (!request.form.empty() && request.form != form) continue;
      out.push_back(VerdictOf(text, kernel, form));
    }
  }
  return out;
}

std::string TextOf(const std::vector<PtxVerdict>& verdicts) {
  size_t width = sizeof("kernel") - 1;
  for (const PtxVerdict& one : verdicts) width = std::max(width, one.kernel.size());
  std::string out;
  const auto add = [&](const std::string& kernel, const char* form, const char* verdict,
                       const std::string& line, const std::string& reason) {
    std::string row = kernel + std::string(width - kernel.size(), ' ') + "  " + form;
    row.resize(width + 10, ' ');
    row += verdict;
    row.resize(width + 20, ' ');
    row += line;
    row.resize(width + 28, ' ');
    row += reason;
    row.erase(row.find_last_not_of(' ') + 1);
    out += row + "\n";
  };
  add("kernel", "form", "verdict", "line", "reason");
  for (const PtxVerdict& one : verdicts) {
    const std::string line = one.line == 0 ? "" : std::to_string(one.line);
    add(one.kernel.empty() ? "-" : one.kernel, one.form.c_str(),
        one.reason.empty() ? "made" : "refused", line, one.reason);
  }
  return out;
}

std::string TransformPtx(const PtxRequest& request) {
  const std::string text = ReadFile(request.file, kPtxBytesMax);
  const gpushare_ptx_code code = CodeOf(text, request.entry, request.form);
  return Written([&](char* buffer, size_t size, size_t* bytes) {
    const gpushare_status status = gpushare_ptx_transform(&code, buffer, size, bytes);
    if (status == GPUSHARE_UNIMPLEMENTED) throw Differs(gpushare_last_error_message());
    return status;
  });
}

}  // namespace gpushare::tool
