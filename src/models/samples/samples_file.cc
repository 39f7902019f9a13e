// Lines of a samples file; see samples_file.h.

#include "src/models/samples/samples_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "src/core/base/file_io.h"
#include "src/core/base/status.h"
#include "src/models/json/json_fields.h"
#include "src/models/profile/profile_limits.h"
#include "src/models/samples/json_sample_row.h"
#include "src/models/samples/samples_limits.h"

namespace gpushare::models {
namespace {

constexpr int64_t kVersion = 1;

const Field<SamplesHead> kHeadFields[] = {
    {"samples_version", VersionField<SamplesHead, kVersion>()},
    {"gpu_model", &SamplesHead::gpu_model, 1, core::kMaxNameBytes},
    {"sm_count", &SamplesHead::sm_count, 1, kSmsMax},
    {"simulated", &SamplesHead::simulated},
};

absl::StatusOr<SamplesHead> ReadHead(const JsonValue& value) {
  SamplesHead head;
  GPUSHARE_RETURN_IF_ERROR(ReadObject<SamplesHead>(kHeadFields, value, "", head));
  for (const char* key : {"samples_version", "gpu_model", "sm_count"}) {
    if (!value.Has(key)) return KeyError(key, "is missing, and the first line must have it.");
  }
  return head;
}

absl::Status AtLine(int64_t line, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("Line ", line, ": ", status.message()));
}

absl::Status ReadLine(absl::string_view text, bool first, Samples& out) {
  GPUSHARE_ASSIGN_OR_RETURN(const JsonDocument json,
                            ParseStrictJson(text, "The line", kSampleLineBytesMax));
  if (first) {
    GPUSHARE_ASSIGN_OR_RETURN(out.head, ReadHead(json.root()));
    return absl::OkStatus();
  }
  GPUSHARE_ASSIGN_OR_RETURN(SampleRow row, ReadSampleRow(json.root()));
  out.rows.push_back(std::move(row));
  return absl::OkStatus();
}

absl::Status InFile(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("In '", path, "': ", status.message()));
}

absl::Status FileError(const std::string& path, absl::string_view action) {
  return absl::UnavailableError(
      absl::StrCat("The samples file '", path, "' cannot be ", action, ": ", std::strerror(errno)));
}

bool IsSameDevice(const SamplesHead& a, const SamplesHead& b) {
  return a.gpu_model == b.gpu_model && a.sm_count == b.sm_count && a.simulated == b.simulated;
}

std::string NameOf(const SamplesHead& head) {
  return absl::StrCat("'", head.gpu_model, "' with ", head.sm_count, " SMs",
                      head.simulated ? ", simulated" : "");
}

std::string HeadLine(const SamplesHead& head) {
  std::string line;
  JsonWriter json(line, -1);
  WriteObject<SamplesHead>(kHeadFields, head, json);
  return line + '\n';
}

// What a writer that was stopped left of its last line.
absl::Status CutLastLine(const std::string& path, const std::string& text) {
  std::error_code error;
  std::filesystem::resize_file(path, text.rfind('\n') + 1, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("The samples file '", path, "' cannot be cut: ", error.message()));
}

}  // namespace

absl::StatusOr<Samples> ParseSamples(absl::string_view text) {
  Samples samples;
  int64_t line = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == absl::string_view::npos) break;
    const absl::Status status = ReadLine(text.substr(0, end), line == 0, samples);
    ++line;
    if (!status.ok()) return AtLine(line, status);
    text.remove_prefix(end + 1);
  }
  if (line == 0) return absl::InvalidArgumentError("The samples have no first line.");
  return samples;
}

absl::StatusOr<Samples> LoadSamples(const std::string& path) {
  GPUSHARE_ASSIGN_OR_RETURN(const std::string text, core::ReadWholeFile(path, kSamplesBytesMax));
  absl::StatusOr<Samples> samples = ParseSamples(text);
  if (samples.ok()) return samples;
  return InFile(path, samples.status());
}

absl::StatusOr<SamplesWriter> SamplesWriter::Open(const std::string& path,
                                                  const SamplesHead& head) {
  absl::StatusOr<std::string> text = core::ReadWholeFile(path, kSamplesBytesMax);
  if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
  const bool begun = text.ok() && text->find('\n') != std::string::npos;
  if (!begun && text.ok() && !absl::StartsWith(HeadLine(head), *text)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is no samples file, and nothing was written to it."));
  }
  if (begun) {
    const absl::string_view first = absl::string_view(*text).substr(0, text->find('\n') + 1);
    const absl::StatusOr<Samples> known = ParseSamples(first);
    if (!known.ok()) return InFile(path, known.status());
    if (!IsSameDevice(known->head, head)) {
      return absl::FailedPreconditionError(
          absl::StrCat("The samples file '", path, "' is of ", NameOf(known->head),
                       ", and this device is ", NameOf(head), "."));
    }
    if (text->back() != '\n') GPUSHARE_RETURN_IF_ERROR(CutLastLine(path, *text));
  }
  SamplesWriter writer(path, std::fopen(path.c_str(), begun ? "a" : "w"));
  if (writer.file_ == nullptr) return FileError(path, "opened");
  if (!begun) {
    writer.line_ = HeadLine(head);
    writer.WriteLine();
  }
  return writer;
}

void SamplesWriter::Add(const SampleRow& row) {
  line_.clear();
  WriteSampleRow(row, line_);
  Samples read;
  if (!ReadLine(line_, /*first=*/false, read).ok()) {
    ++left_out_;
    return;
  }
  line_ += '\n';
  WriteLine();
}

void SamplesWriter::WriteLine() {
  if (!status_.ok()) return;
  const bool written = std::fwrite(line_.data(), 1, line_.size(), file_.get()) == line_.size();
  if (!written || std::fflush(file_.get()) != 0) status_ = FileError(path_, "written");
}

absl::Status SamplesWriter::Close() {
  file_.reset();
  return status_;
}

}  // namespace gpushare::models
