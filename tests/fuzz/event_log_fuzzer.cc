// Fuzzes the event-log reader and the readers of its records: the digest and the Perfetto writer.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "src/core/log/event_log.h"
#include "src/trace/perfetto_writer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using gpushare::core::EventRecord;
  const auto file = gpushare::core::ParseEventLog(absl::MakeConstSpan(data, size));
  // The digest in the header rejects random bytes, so this also reads the bytes as records.
  std::vector<EventRecord> records(size / sizeof(EventRecord));
  if (!records.empty()) std::memcpy(records.data(), data, records.size() * sizeof(EventRecord));
  if (file.ok()) records = file->records;
  (void)gpushare::core::DecisionDigest(records);
  (void)gpushare::trace::FormatPerfettoTrace(records, gpushare::trace::TraceNames());
  return 0;
}
