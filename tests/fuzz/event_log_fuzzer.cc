// Fuzzes the event-log reader and the readers of its records: the digest, the check before a replay
// and the Perfetto writer.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "src/core/log/event_log.h"
#include "src/core/replay/log_check.h"
#include "src/trace/perfetto_writer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using gpushare::core::EventRecord;
  auto file = gpushare::core::ParseEventLog(absl::MakeConstSpan(data, size));
  // The digest in the header rejects random bytes, so this also reads the bytes as records.
  std::vector<EventRecord> records(size / sizeof(EventRecord));
  if (!records.empty()) std::memcpy(records.data(), data, records.size() * sizeof(EventRecord));
  if (!file.ok()) file = gpushare::core::EventLogFile{{}, std::move(records)};
  (void)gpushare::core::DecisionDigest(file->records);
  (void)gpushare::core::CheckLog(*file).ok();
  (void)gpushare::trace::FormatPerfettoTrace(file->records, gpushare::trace::TraceNames());
  return 0;
}
