// The samples file of a machine: a head and rows, a line of JSON each.
//
// Rows are only appended, so that a crash costs at most the line that was being written, which the
// reader skips. A file is of one GPU model, or of its simulation. JSON keys are the field names of
// SampleRow. Threads: one for each writer; readers share nothing.

#ifndef GPUSHARE_SRC_MODELS_SAMPLES_SAMPLES_FILE_H_
#define GPUSHARE_SRC_MODELS_SAMPLES_SAMPLES_FILE_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/models/samples/sample_row.h"

namespace gpushare::models {

struct SamplesHead {
  std::string gpu_model;
  int32_t sm_count = 0;
  bool simulated = false;  // rows of a simulated device judge no model
};

struct Samples {
  SamplesHead head;
  std::vector<SampleRow> rows;  // in the order of the file
  bool last_line_cut = false;   // the last line has no end and was skipped
};

// Errors: INVALID_ARGUMENT names the line and the key (samples_limits.h has the bounds).
absl::StatusOr<Samples> ParseSamples(absl::string_view text);
// Errors: also NOT_FOUND, UNAVAILABLE.
absl::StatusOr<Samples> LoadSamples(const std::string& path);

class SamplesWriter {
 public:
  // Makes the file with its head, or goes on behind the rows of an existing one. A line without an
  // end is cut off first. Errors: FAILED_PRECONDITION the file is of another GPU; those of
  // LoadSamples.
  static absl::StatusOr<SamplesWriter> Open(const std::string& path, const SamplesHead& head);

  // Appends a row. After an error nothing is written any more, and Close() returns it.
  void Add(const SampleRow& row);
  // Writes what is buffered. Errors: UNAVAILABLE.
  absl::Status Close();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  SamplesWriter(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  void WriteLine();

  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::string line_;
  absl::Status status_;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_SAMPLES_SAMPLES_FILE_H_
