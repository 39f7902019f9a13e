// Fuzzes the reader of samples files and the judges of models. A row that is accepted must be
// readable again after it was written, and give the same text.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "src/models/evaluation/judged.h"
#include "src/models/samples/json_sample_row.h"
#include "src/models/samples/samples_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using gpushare::models::Samples;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Samples> samples = gpushare::models::ParseSamples(text);
  if (!samples.ok()) return 0;
  std::string written = "{\"samples_version\":1,\"gpu_model\":\"a\",\"sm_count\":1}\n";
  const size_t head = written.size();
  for (const gpushare::models::SampleRow& row : samples->rows) {
    gpushare::models::WriteSampleRow(row, written);
    written += '\n';
  }
  const absl::StatusOr<Samples> again = gpushare::models::ParseSamples(written);
  if (!again.ok() || again->rows.size() != samples->rows.size()) std::abort();
  std::string twice;
  for (const gpushare::models::SampleRow& row : again->rows) {
    gpushare::models::WriteSampleRow(row, twice);
    twice += '\n';
  }
  if (twice != written.substr(head)) std::abort();
  gpushare::models::JudgeModels(*samples);
  return 0;
}
