#include "tools/gpushare/profile/profile_files.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/gzip.h"
#include "tools/gpushare/base/json_reader.h"
#include "tools/gpushare/base/library.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/base/text.h"

namespace gpushare::tool {

namespace {

// The library reads no larger profile.
constexpr size_t kProfileBytesMax = size_t{16} << 20;

// Samples below which a model says that it is not trained.
constexpr double kTrainedSamples = 3;
// Size of a kernel's name with its NUL.
constexpr size_t kNameBytes = 256;

// The keys by which two records of a list are of the same thing.
struct RecordList {
  const char* list;
  std::vector<const char*> keys;
};
const RecordList kCalibrationLists[] = {
    {"kernels", {"name"}},
    {"co_resident", {"first", "second"}},
    {"fused", {"name"}},
    {"copies", {"to_device", "pinned", "bytes"}},
};
const RecordList kLearnedLists[] = {
    {"kernels", {"name"}},
    {"pairs", {"kernel", "neighbour", "sms"}},
    {"copies", {"direction", "pinned"}},
};

// A profile, and its learned text parsed.
struct ProfileFile {
  std::string file;
  Json document;
  Json learned;
};

ProfileFile LoadProfileFile(const std::string& name) {
  ProfileFile profile;
  profile.file = FindProfile(name);
  Check(gpushare_profile_validate(profile.file.c_str()));
  profile.document = ParseJson(ReadFile(profile.file, kProfileBytesMax), profile.file);
  const std::string learned = profile.document.value("learned", "");
  if (!learned.empty()) profile.learned = ParseJson(learned, profile.file + ", learned");
  return profile;
}

std::string KeyOf(const Json& record, const std::vector<const char*>& keys) {
  std::string key;
  for (const char* name : keys) key += (key.empty() ? "" : " ") + record.value(name, Json()).dump();
  return key;
}

// The list `name` of `owner`, empty if it is missing.
const Json& ListOf(const Json& owner, const char* name) {
  static const Json kEmpty = Json::array();
  const auto found = owner.find(name);
  return found == owner.end() ? kEmpty : *found;
}

const Json* Find(const Json& list, const std::vector<const char*>& keys, const std::string& key) {
  for (const Json& record : list) {
    if (KeyOf(record, keys) == key) return &record;
  }
  return nullptr;
}

// Puts the records of `added` into `list`; each replaces one with the same keys. Returns how many
// were new.
size_t MergeList(const std::vector<const char*>& keys, const Json& added, Json& list) {
  if (!list.is_array()) list = Json::array();
  std::map<std::string, size_t> known;
  for (size_t i = 0; i < list.size(); ++i) known[KeyOf(list[i], keys)] = i;
  size_t fresh = 0;
  for (const Json& record : added) {
    const auto found = known.find(KeyOf(record, keys));
    if (found != known.end()) {
      list[found->second] = record;
    } else {
      list.push_back(record);
      ++fresh;
    }
  }
  return fresh;
}

std::string Duration(const Json& owner, const char* key) {
  const auto ns = owner.is_object() ? owner.value(key, 0.0) : 0.0;
  return ns > 0 ? DurationText(ns) : "-";
}

// What the learned text has of a kernel; null: nothing.
const Json* LearnedOf(const ProfileFile& profile, const Json& kernel) {
  return Find(ListOf(profile.learned, "kernels"), {"name"}, KeyOf(kernel, {"name"}));
}

const Json& SimulationOf(const Json& kernel) {
  static const Json kEmpty = Json::object();
  const auto found = kernel.find("simulation");
  return found == kernel.end() ? kEmpty : *found;
}

std::string KernelRow(const ProfileFile& profile, const Json& kernel) {
  const Json& simulation = SimulationOf(kernel);
  const Json* learned = LearnedOf(profile, kernel);
  const Json eviction = learned == nullptr ? Json() : learned->value("eviction", Json());
  const bool evictable = kernel.value("evictable", false);
  return Format(
      "%-28.28s %-8s %11s %10s %3d %10s %6zu\n", kernel.value("name", "").c_str(),
      kernel.value("kind", "").c_str(), Duration(kernel, "solo_hint_ns").c_str(),
      Duration(simulation, "block_task_ns").c_str(), kernel.value("workers_per_sm_max", 0),
      evictable ? Duration(eviction, "mean_ns").c_str() : "-", ListOf(simulation, "speed").size());
}

// Measured values of a kernel, by name.
std::map<std::string, double> ValuesOf(const ProfileFile& profile, const Json& kernel) {
  std::map<std::string, double> values;
  const Json& simulation = SimulationOf(kernel);
  for (const char* key : {"block_task_ns", "worker_overhead", "saturating_occupancy"}) {
    values[key] = simulation.value(key, 0.0);
  }
  values["solo_hint_ns"] = kernel.value("solo_hint_ns", 0.0);
  for (const Json& point : ListOf(simulation, "speed")) {
    values[Format("speed on %d SMs", point.value("sms", 0))] = point.value("speed", 0.0);
  }
  const Json* learned = LearnedOf(profile, kernel);
  if (learned != nullptr && learned->contains("eviction")) {
    values["eviction mean_ns"] = learned->at("eviction").value("mean_ns", 0.0);
  }
  return values;
}

bool Differs(double before, double after, double least) {
  return std::abs(after - before) > least * std::max(std::abs(before), std::abs(after));
}

void AddDifferences(const std::string& name, const std::map<std::string, double>& before,
                    const std::map<std::string, double>& after, double least, std::string& text) {
  for (const auto& [key, value] : after) {
    const auto old = before.find(key);
    if (old == before.end() || !Differs(old->second, value, least)) continue;
    text +=
        Format("%-28.28s %-24s %12.6g -> %.6g\n", name.c_str(), key.c_str(), old->second, value);
  }
}

std::map<std::string, double> NumbersOf(const Json& owner) {
  std::map<std::string, double> numbers;
  for (const auto& [key, value] : owner.items()) {
    if (value.is_number()) numbers[key] = value.get<double>();
  }
  return numbers;
}

// Names of `list` that `other` does not have, one to a line.
std::string OnlyIn(const Json& list, const Json& other, const std::string& where) {
  std::string text;
  for (const Json& record : list) {
    if (Find(other, {"name"}, KeyOf(record, {"name"})) != nullptr) continue;
    text += record.value("name", "") + ": only in " + where + "\n";
  }
  return text;
}

// Throws on failure. FAILED_PRECONDITION is bad input here: files of two GPUs, or a kernel that has
// a record already.
void CheckInput(gpushare_status status) {
  if (status == GPUSHARE_FAILED_PRECONDITION) throw InputError(gpushare_last_error_message());
  Check(status);
}

// Puts the records of `added` into `owner`. Returns a line that counts them, "" for none.
std::string MergeRecords(const RecordList& kind, const Json& added, Json& owner) {
  const Json& records = ListOf(added, kind.list);
  if (records.empty()) return "";
  const size_t fresh = MergeList(kind.keys, records, owner[kind.list]);
  return Format("  %s: %zu, of which %zu are new\n", kind.list, records.size(), fresh);
}

// Drops what was learned of kernels whose records `more` replaced, because it describes the old
// records.
void ForgetReplaced(const ProfileFile& more, ProfileFile& merged) {
  if (!merged.learned.is_object() || !merged.learned.contains("kernels")) return;
  Json kept = Json::array();
  for (const Json& learned : merged.learned["kernels"]) {
    const std::string name = KeyOf(learned, {"name"});
    if (Find(ListOf(more.document, "kernels"), {"name"}, name) == nullptr) kept.push_back(learned);
  }
  merged.learned["kernels"] = kept;
}

}  // namespace

std::string ShowProfile(const std::string& profile) {
  const ProfileFile one = LoadProfileFile(profile);
  const Json& device = one.document.at("device");
  std::string text = one.file + ": " + device.value("gpu_model", "") +
                     Format(", %d SMs\n\n", device.value("sm_count", 0));
  text += Format("%-28s %-8s %11s %10s %3s %10s %6s\n", "kernel", "kind", "solo", "block task", "M",
                 "eviction", "speeds");
  for (const Json& kernel : ListOf(one.document, "kernels")) text += KernelRow(one, kernel);
  text += "\n";
  const Json calibration = one.document.value("calibration", Json::object());
  for (const RecordList& kind : kCalibrationLists) {
    text += Format("calibrated %-12s %zu\n", kind.list, ListOf(calibration, kind.list).size());
  }
  for (const RecordList& kind : kLearnedLists) {
    text += Format("learned    %-12s %zu\n", kind.list, ListOf(one.learned, kind.list).size());
  }
  return text;
}

std::string DiffProfiles(const std::string& before, const std::string& after, double least) {
  const ProfileFile old = LoadProfileFile(before);
  const ProfileFile now = LoadProfileFile(after);
  const Json& old_kernels = ListOf(old.document, "kernels");
  const Json& new_kernels = ListOf(now.document, "kernels");
  std::string text;
  const std::string models[] = {old.document.at("device").value("gpu_model", ""),
                                now.document.at("device").value("gpu_model", "")};
  if (models[0] != models[1]) text += "gpu_model: " + models[0] + " -> " + models[1] + "\n";
  AddDifferences("device", NumbersOf(old.document.at("device")),
                 NumbersOf(now.document.at("device")), least, text);
  text += OnlyIn(old_kernels, new_kernels, old.file) + OnlyIn(new_kernels, old_kernels, now.file);
  for (const Json& kernel : new_kernels) {
    const Json* same = Find(old_kernels, {"name"}, KeyOf(kernel, {"name"}));
    if (same == nullptr) continue;
    AddDifferences(kernel.value("name", ""), ValuesOf(old, *same), ValuesOf(now, kernel), least,
                   text);
  }
  return text.empty() ? Format("No measured value differs by more than %g %%.\n", 100 * least)
                      : text;
}

std::string MergeProfiles(const std::string& base, const std::string& added,
                          const std::string& out) {
  ProfileFile merged = LoadProfileFile(base);
  const ProfileFile more = LoadProfileFile(added);
  const std::string model = merged.document.at("device").value("gpu_model", "");
  const std::string other = more.document.at("device").value("gpu_model", "");
  if (model != other) {
    throw InputError("'" + merged.file + "' is of '" + model + "' and '" + more.file + "' of '" +
                     other + "', and a profile is of one GPU.");
  }
  std::string summary = "From " + more.file + ":\n";
  merged.document["device"] = more.document.at("device");
  summary += MergeRecords({"kernels", {"name"}}, more.document, merged.document);
  const Json calibration = more.document.value("calibration", Json::object());
  for (const RecordList& kind : kCalibrationLists) {
    if (calibration.empty()) break;
    summary += MergeRecords(kind, calibration, merged.document["calibration"]);
  }
  ForgetReplaced(more, merged);
  if (more.learned.is_object()) {
    if (!merged.learned.is_object()) merged.learned = more.learned;
    summary += " learned\n";
    for (const RecordList& kind : kLearnedLists) {
      summary += MergeRecords(kind, more.learned, merged.learned);
    }
  }
  if (merged.learned.is_object()) merged.document["learned"] = merged.learned.dump();
  // Checked under another name, so that a profile that the library refuses is never at `out`.
  const std::string checked = out + ".merged";
  WriteFile(checked, merged.document.dump(1) + "\n");
  if (gpushare_profile_validate(checked.c_str()) != GPUSHARE_OK) {
    const std::string why = gpushare_last_error_message();
    std::remove(checked.c_str());
    throw InputError("The two profiles do not go together: " + why);
  }
  if (std::rename(checked.c_str(), out.c_str()) != 0) {
    throw RunError("'" + out + "' cannot be written: " + std::strerror(errno) + ".");
  }
  return summary + "Profile: " + out + "\n";
}

std::string TrainProfile(const std::string& profile, const std::string& samples,
                         bool replace_demands, const std::string& out) {
  const std::string file = FindProfile(profile);
  const Uncompressed rows(samples, kSamplesBytesMax);
  gpushare_profile_train_options options = GPUSHARE_PROFILE_TRAIN_OPTIONS_INIT;
  options.profile_path = file.c_str();
  options.samples_path = rows.path().c_str();
  options.output_path = out.c_str();
  options.replace_demands = replace_demands ? 1 : 0;
  CheckInput(gpushare_profile_train(&options));
  const ProfileFile trained = LoadProfileFile(out);
  size_t counted = 0;
  size_t lines = 0;
  const Json& kernels = ListOf(trained.document, "kernels");
  for (const Json& kernel : kernels) {
    counted += kernel.contains("counters") ? 1 : 0;
    const Json* learned = LearnedOf(trained, kernel);
    const Json solo = learned == nullptr ? Json::object() : learned->value("solo", Json::object());
    lines += solo.value("samples", 0.0) >= kTrainedSamples ? 1 : 0;
  }
  return Format("Of %zu kernels %zu are trained and %zu have counters.\nProfile: %s\n",
                kernels.size(), lines, counted, out.c_str());
}

std::string LikeKernel(const std::string& profile, const std::string& kernel,
                       const std::string& like, const std::string& samples,
                       const std::string& out) {
  const std::string file = FindProfile(profile);
  gpushare_profile_like_options options = GPUSHARE_PROFILE_LIKE_OPTIONS_INIT;
  options.profile_path = file.c_str();
  options.kernel = kernel.c_str();
  options.like = like.empty() ? nullptr : like.c_str();
  options.samples_path = samples.empty() ? nullptr : samples.c_str();
  options.output_path = out.c_str();
  char taken[kNameBytes] = "";
  size_t size = 0;
  CheckInput(gpushare_profile_like(&options, taken, sizeof(taken), &size));
  const ProfileFile filled = LoadProfileFile(out);
  size_t pairs = 0;
  for (const Json& pair : ListOf(filled.learned, "pairs")) {
    pairs += pair.value("kernel", "") == kernel || pair.value("neighbour", "") == kernel ? 1 : 0;
  }
  return Format("%s is like %s, with %zu pairs.\nProfile: %s\n", kernel.c_str(), taken, pairs,
                out.c_str());
}

}  // namespace gpushare::tool
