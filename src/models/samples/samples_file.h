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
  bool simulated = false;
};

struct Samples {
  SamplesHead head;
  std::vector<SampleRow> rows;  // in the order of the file; a last line without an end is left out
};

// Errors: INVALID_ARGUMENT names the line and the key (samples_limits.h has the bounds).
absl::StatusOr<Samples> ParseSamples(absl::string_view text);
// Errors: also NOT_FOUND, UNAVAILABLE.
absl::StatusOr<Samples> LoadSamples(const std::string& path);

class SamplesWriter {
 public:
  // Makes the file with its head, or goes on behind the rows of an existing one. A line without an
  // end is cut off first. Errors: FAILED_PRECONDITION the file is of another GPU; INVALID_ARGUMENT
  // it is no samples file, and stays as it is; those of LoadSamples.
  static absl::StatusOr<SamplesWriter> Open(const std::string& path, const SamplesHead& head);

  // Appends a row, and leaves it to the system at once. A row that a reader would refuse is counted
  // and left out. After an error nothing is written any more, and Close() returns it.
  void Add(const SampleRow& row);
  bool ok() const { return status_.ok(); }
  int64_t left_out() const { return left_out_; }
  // Errors: UNAVAILABLE.
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
  int64_t left_out_ = 0;
  absl::Status status_;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_SAMPLES_SAMPLES_FILE_H_
