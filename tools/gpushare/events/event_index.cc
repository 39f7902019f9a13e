#include "tools/gpushare/events/event_index.h"

#include <filesystem>
#include <system_error>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/json_reader.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/base/text.h"

namespace gpushare::tool {

namespace {

constexpr int kSchemaVersion = 1;
constexpr size_t kNamesMax = 1024;
constexpr double kNumberMax = 1e15;

std::string NameOf(const std::vector<NamedId>& names, uint32_t id) {
  for (const NamedId& name : names) {
    if (name.id == id) return name.name;
  }
  return Format("?%u", id);
}

Json NamesToJson(const std::vector<NamedId>& names, bool with_class) {
  Json list = Json::array();
  for (const NamedId& name : names) {
    Json entry = {{"id", name.id}, {"name", name.name}};
    if (with_class) entry["latency_critical"] = name.latency_critical;
    list.push_back(std::move(entry));
  }
  return list;
}

std::vector<NamedId> NamesFromJson(ObjectReader& in, const char* key, const std::string& file,
                                   bool with_class) {
  std::vector<NamedId> names;
  const Json* list = in.Array(key, kNamesMax);
  if (list == nullptr) return names;
  for (const Json& entry : *list) {
    ObjectReader reader(entry, file, in.Where(key));
    NamedId name;
    name.id = static_cast<uint32_t>(reader.Integer("id", 0, 0, UINT32_MAX));
    name.name = reader.Name("name");
    if (with_class) name.latency_critical = reader.Flag("latency_critical", false);
    reader.Finish();
    names.push_back(std::move(name));
  }
  return names;
}

Json PromisesToJson(const std::vector<LcPromise>& promises) {
  Json list = Json::array();
  for (const LcPromise& promise : promises) {
    list.push_back({{"app", promise.app_id},
                    {"target_ns", promise.target_ns},
                    {"p99_bound", promise.p99_bound},
                    {"p50_bound", promise.p50_bound},
                    {"p99_alone_ns", promise.p99_alone_ns},
                    {"p50_alone_ns", promise.p50_alone_ns},
                    {"solo_ns", promise.solo_ns},
                    {"tail_credit", promise.tail_credit},
                    {"queries_late_for_be", promise.queries_late_for_be}});
  }
  return list;
}

Json OriginToJson(const RunOrigin& origin) {
  return {{"scenario", origin.scenario},
          {"scenario_digest", origin.scenario_digest},
          {"device", origin.device},
          {"tier", origin.tier},
          {"seed", origin.seed}};
}

std::optional<RunOrigin> OriginFromJson(ObjectReader& in, const std::string& file) {
  const Json* object = in.Member("origin");
  if (object == nullptr) return std::nullopt;
  ObjectReader reader(*object, file, in.Where("origin"));
  RunOrigin origin;
  origin.scenario = reader.Text("scenario");
  origin.scenario_digest = reader.Text("scenario_digest");
  origin.device = reader.Text("device");
  origin.tier = reader.Text("tier");
  origin.seed = static_cast<uint64_t>(reader.Integer("seed", 0, 0, INT64_MAX));
  reader.Finish();
  return origin;
}

std::vector<LcPromise> PromisesFromJson(ObjectReader& in, const std::string& file) {
  std::vector<LcPromise> promises;
  const Json* list = in.Array("promises", kNamesMax);
  if (list == nullptr) return promises;
  for (const Json& entry : *list) {
    ObjectReader reader(entry, file, in.Where("promises"));
    LcPromise promise;
    promise.app_id = static_cast<uint32_t>(reader.Integer("app", 0, 0, UINT32_MAX));
    promise.target_ns = reader.Integer("target_ns", 0, 0, INT64_MAX);
    promise.p99_bound = reader.Number("p99_bound", 0, 0, kNumberMax);
    promise.p50_bound = reader.Number("p50_bound", 0, 0, kNumberMax);
    promise.p99_alone_ns = reader.Integer("p99_alone_ns", 0, 0, INT64_MAX);
    promise.p50_alone_ns = reader.Integer("p50_alone_ns", 0, 0, INT64_MAX);
    promise.solo_ns = reader.Integer("solo_ns", 0, 0, INT64_MAX);
    promise.tail_credit = reader.Number("tail_credit", 0, -kNumberMax, kNumberMax);
    promise.queries_late_for_be = reader.Integer("queries_late_for_be", 0, 0, INT64_MAX);
    reader.Finish();
    promises.push_back(promise);
  }
  return promises;
}

}  // namespace

std::string EventIndexEntry::AppName(uint32_t id) const { return NameOf(apps, id); }
std::string EventIndexEntry::KernelName(uint32_t id) const { return NameOf(kernels, id); }

std::string FormatEventIndex(const std::vector<EventIndexEntry>& entries) {
  Json runs = Json::array();
  for (const EventIndexEntry& entry : entries) {
    runs.push_back({{"case", entry.case_name},
                    {"policy", entry.policy},
                    {"file", entry.file},
                    {"chosen", entry.chosen},
                    {"start_ns", entry.start_ns},
                    {"apps", NamesToJson(entry.apps, true)},
                    {"kernels", NamesToJson(entry.kernels, false)},
                    {"promises", PromisesToJson(entry.promises)}});
    if (entry.origin.has_value()) runs.back()["origin"] = OriginToJson(*entry.origin);
  }
  const Json document = {{"schema_version", kSchemaVersion}, {"runs", std::move(runs)}};
  return document.dump(1) + "\n";
}

std::vector<EventIndexEntry> LoadEventIndex(const std::string& folder) {
  const std::string file = folder + "/events/index.json";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    throw InputError("The folder '" + folder +
                     "' holds no results of gpushare colocate: it has no "
                     "'events/index.json'.");
  }
  const std::string text = ReadFile(file, kScenarioBytesMax);
  const Json document = ParseJson(text, file);
  ObjectReader in(document, file, "");
  if (in.Integer("schema_version", 0, 0, INT32_MAX) != kSchemaVersion) {
    in.Fail("schema_version", "is not " + std::to_string(kSchemaVersion));
  }
  std::vector<EventIndexEntry> entries;
  const Json* runs = in.Array("runs", kCasesMax * 64);
  if (runs == nullptr) in.Fail("runs", "is missing");
  for (const Json& run : *runs) {
    ObjectReader reader(run, file, "runs");
    EventIndexEntry entry;
    entry.case_name = reader.Name("case");
    entry.policy = reader.Name("policy");
    entry.file = reader.Text("file");
    if (entry.file.empty() || entry.file[0] == '/' || entry.file.find("..") != std::string::npos) {
      reader.Fail("file", "does not lie inside the output folder");
    }
    entry.chosen = reader.Flag("chosen", false);
    entry.start_ns = reader.Integer("start_ns", 0, 0, INT64_MAX);
    entry.apps = NamesFromJson(reader, "apps", file, true);
    entry.kernels = NamesFromJson(reader, "kernels", file, false);
    entry.promises = PromisesFromJson(reader, file);
    entry.origin = OriginFromJson(reader, file);
    reader.Finish();
    entries.push_back(std::move(entry));
  }
  in.Finish();
  return entries;
}

std::vector<gpushare_event> LoadEvents(const std::string& path) {
  int64_t count = 0;
  const EventLogHandle log = OpenEventLog(path, count);
  std::vector<gpushare_event> events(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    gpushare_event event = GPUSHARE_EVENT_INIT;
    Check(gpushare_event_log_get(log.get(), i, &event));
    events[static_cast<size_t>(i)] = event;
  }
  return events;
}

}  // namespace gpushare::tool
