// The checkpoint of a calibration; see checkpoint.h.
//
// A line of the text is a kernel: digest, kind, numbers in a fixed order, then the counted lists,
// and last the name, which may contain spaces. A line that begins with "pair" has two digests and
// the counted lists of a pair.

#include "src/calibration/profile/checkpoint.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "src/core/base/digest.h"
#include "src/core/base/limits.h"
#include "src/models/profile/profile.h"

namespace gpushare::models {
namespace {

constexpr char kAnyVersion[] = "gpushare calibration ";
constexpr char kFirstLine[] = "gpushare calibration 4";
constexpr char kPairWord[] = "pair";
constexpr size_t kPairListMax = 1024;

// The fewest digits that carry a double exactly, with a point in every locale. (absl::StrFormat
// writes in a destructor, and so ends the process when memory is exhausted.)
std::string Exactly(double value) {
  std::array<char, 32> text{};
  const std::to_chars_result end = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end.ptr};
}

std::string KernelLineOf(uint64_t digest, const KernelMeasurement& kernel) {
  std::string line =
      absl::StrCat(digest, " ", static_cast<int>(kernel.kind), " ", kernel.block_tasks, " ",
                   kernel.solo_ns, " ", kernel.worker_solo_ns, " ", kernel.block_task_ns, " ",
                   Exactly(kernel.block_task_spread), " ", kernel.workers_per_sm, " ",
                   Exactly(kernel.worker_overhead), " ", Exactly(kernel.saturating_occupancy), " ",
                   kernel.eviction_p50_ns, " ", kernel.eviction_p99_ns, " ", kernel.spent_ns);
  absl::StrAppend(&line, " ", kernel.eviction_ns.size());
  for (const int64_t sample : kernel.eviction_ns) absl::StrAppend(&line, " ", sample);
  absl::StrAppend(&line, " ", kernel.speed.size());
  for (const core::SpeedPoint& point : kernel.speed) {
    absl::StrAppend(&line, " ", point.sms, " ", Exactly(point.speed));
  }
  absl::StrAppend(&line, " ", kernel.knees.size());
  for (const int32_t sms : kernel.knees) absl::StrAppend(&line, " ", sms);
  absl::StrAppend(&line, " ", static_cast<int>(kernel.intensity), " ", kernel.flat_from_sms, " ",
                  kernel.slice_block_tasks, " ", Exactly(kernel.slice_overhead), " ",
                  kernel.workers_per_sm_least, " ", kernel.rest_measured ? 1 : 0);
  absl::StrAppend(&line, " ", kernel.solo_sizes.size());
  for (const SoloSize& size : kernel.solo_sizes) {
    absl::StrAppend(&line, " ", size.block_tasks, " ", size.ns.size());
    for (const int64_t ns : size.ns) absl::StrAppend(&line, " ", ns);
  }
  return absl::StrCat(line, " ", kernel.name, "\n");
}

// Reads a count of at most `most`, then as many elements with `read(element)`.
template <class Element, class Read>
bool ReadList(std::istringstream& in, size_t most, std::vector<Element>& list, Read read) {
  size_t count = 0;
  if (!(in >> count) || count > most) return false;
  list.resize(count);
  for (Element& element : list) read(element);
  return true;
}

// A wrong list of durations leaves the stream in a failed state.
bool ReadSoloSizes(std::istringstream& in, std::vector<SoloSize>& sizes) {
  return ReadList(in, kSoloSizesMax, sizes, [&](SoloSize& size) {
    in >> size.block_tasks;
    const bool complete = ReadList(in, kSoloRepeatsMax, size.ns, [&](int64_t& ns) { in >> ns; });
    const bool possible = size.block_tasks >= 0 && std::all_of(size.ns.begin(), size.ns.end(),
                                                               [](int64_t ns) { return ns >= 0; });
    if (!complete || !possible) in.setstate(std::ios::failbit);
  });
}

// False for values that no measurement has: the file may have been changed.
bool IsMeasurement(const KernelMeasurement& kernel) {
  const int64_t least = std::min({kernel.block_tasks, kernel.solo_ns, kernel.worker_solo_ns,
                                  kernel.block_task_ns, kernel.slice_block_tasks});
  return least >= 0 && kernel.workers_per_sm >= 0 && kernel.workers_per_sm_least >= 0;
}

bool ReadKernelLine(const std::string& line, uint64_t& digest, KernelMeasurement& out) {
  std::istringstream in(line);
  in.exceptions(std::ios::badbit);  // without memory: an exception, not a corrupt line
  int kind = 0;
  in >> digest >> kind >> out.block_tasks >> out.solo_ns >> out.worker_solo_ns >>
      out.block_task_ns >> out.block_task_spread >> out.workers_per_sm >> out.worker_overhead >>
      out.saturating_occupancy >> out.eviction_p50_ns >> out.eviction_p99_ns >> out.spent_ns;
  if (!in || kind < 0 || kind > static_cast<int>(core::TaskKind::kLibrary)) return false;
  out.kind = static_cast<core::TaskKind>(kind);
  if (!ReadList(in, kEvictionSamplesMax, out.eviction_ns, [&](int64_t& ns) { in >> ns; }) ||
      !ReadList(in, core::kMaxSpeedPoints, out.speed,
                [&](core::SpeedPoint& point) { in >> point.sms >> point.speed; }) ||
      !ReadList(in, core::kMaxSpeedPoints, out.knees, [&](int32_t& sms) { in >> sms; })) {
    return false;
  }
  int intensity = 0;
  in >> intensity >> out.flat_from_sms >> out.slice_block_tasks >> out.slice_overhead >>
      out.workers_per_sm_least >> out.rest_measured;
  if (intensity < 0 || intensity > static_cast<int>(Intensity::kMemory)) return false;
  out.intensity = static_cast<Intensity>(intensity);
  if (!ReadSoloSizes(in, out.solo_sizes)) return false;
  in.get();  // the space before the name
  std::getline(in, out.name);
  return !in.fail() && !out.name.empty() && IsMeasurement(out);
}

std::string PairLineOf(const std::pair<uint64_t, uint64_t>& digests, const PairMeasurement& pair) {
  std::string line = absl::StrCat(kPairWord, " ", digests.first, " ", digests.second, " ",
                                  pair.query_ns, " ", pair.speeds.size());
  for (const PairMeasurement::Speed& speed : pair.speeds) {
    absl::StrAppend(&line, " ", speed.lc_sms, " ", Exactly(speed.alone), " ",
                    Exactly(speed.beside));
  }
  absl::StrAppend(&line, " ", pair.blocking_ns.size());
  for (const int64_t sample : pair.blocking_ns) absl::StrAppend(&line, " ", sample);
  return line + "\n";
}

bool ReadPairLine(const std::string& line, std::pair<uint64_t, uint64_t>& digests,
                  PairMeasurement& out) {
  std::istringstream in(line);
  in.exceptions(std::ios::badbit);
  std::string word;
  in >> word >> digests.first >> digests.second >> out.query_ns;
  const bool complete = ReadList(in, kPairListMax, out.speeds,
                                 [&](PairMeasurement::Speed& speed) {
                                   in >> speed.lc_sms >> speed.alone >> speed.beside;
                                 }) &&
                        ReadList(in, kPairListMax, out.blocking_ns, [&](int64_t& ns) { in >> ns; });
  return complete && !in.fail();
}

absl::Status Corrupt(const std::string& path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("The checkpoint '", path, "' is corrupt: ", what,
                                          " Remove it, or calibrate without resuming."));
}

}  // namespace

uint64_t DigestOf(const CalibrationItem& item, const core::DeviceProfile& device) {
  const std::string text = absl::StrCat(
      item.kernel.name, "\n", static_cast<int>(item.kernel.kind()), " ", item.kernel.evictable, " ",
      item.kernel.confinable, " ", item.kernel.resources.threads_per_block, " ",
      item.arguments.size(), " ", item.block_tasks, " ", item.grid_x, " ", item.grid_y, " ",
      item.grid_z, "\n", device.gpu_model, " ", device.sm_count);
  return core::Fnv1a(core::kEmptyDigest, text);
}

absl::Status SaveCheckpoint(const std::string& path, const Checkpoint& checkpoint) {
  Profile profile;
  profile.device = checkpoint.device;
  profile.learned =
      absl::StrCat(kFirstLine, " ", checkpoint.device_measured ? "device" : "none", "\n");
  for (const auto& [digest, kernel] : checkpoint.kernels) {
    absl::StrAppend(&profile.learned, KernelLineOf(digest, kernel));
  }
  for (const auto& [digests, pair] : checkpoint.pairs) {
    absl::StrAppend(&profile.learned, PairLineOf(digests, pair));
  }
  profile.calibration = checkpoint.record;
  return SaveProfile(path, profile);
}

absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& path) {
  absl::StatusOr<Profile> profile = LoadProfile(path);
  if (absl::IsNotFound(profile.status())) return profile.status();
  if (!profile.ok()) return Corrupt(path, profile.status().message());
  Checkpoint checkpoint;
  checkpoint.device = profile->device;
  checkpoint.record = profile->calibration;
  const std::vector<std::string> lines = absl::StrSplit(profile->learned, '\n', absl::SkipEmpty());
  if (lines.empty() || lines[0].rfind(kAnyVersion, 0) != 0) {
    return Corrupt(path, "it does not say that it is one.");
  }
  if (lines[0].rfind(kFirstLine, 0) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("The checkpoint '", path, "' begins with '", lines[0].substr(0, 40),
                     "', and this version goes on from '", kFirstLine,
                     "'. Remove it, or calibrate without resuming."));
  }
  checkpoint.device_measured = lines[0] == absl::StrCat(kFirstLine, " device");
  for (size_t i = 1; i < lines.size(); ++i) {
    const bool is_pair = lines[i].rfind(kPairWord, 0) == 0;
    uint64_t digest = 0;
    std::pair<uint64_t, uint64_t> digests;
    KernelMeasurement kernel;
    PairMeasurement pair;
    if (is_pair ? !ReadPairLine(lines[i], digests, pair)
                : !ReadKernelLine(lines[i], digest, kernel)) {
      return Corrupt(path, absl::StrCat("line ", i + 1, " is not a measurement."));
    }
    if (is_pair) {
      checkpoint.pairs[digests] = std::move(pair);
    } else {
      checkpoint.kernels[digest] = std::move(kernel);
    }
  }
  return checkpoint;
}

std::string CheckpointPath(const std::string& output_path) { return output_path + ".partial"; }

// Where a checkpoint exists, an earlier call could write it.
absl::Status CheckpointWriter::CheckWritable() {
  std::error_code ignored;
  if (options_.output_path.empty() ||
      std::filesystem::exists(CheckpointPath(options_.output_path), ignored)) {
    return absl::OkStatus();
  }
  return Write();
}

absl::Status CheckpointWriter::Write() {
  unsaved_ = false;
  written_ns_ = clock_.NowNs();
  if (options_.output_path.empty()) return absl::OkStatus();
  return SaveCheckpoint(CheckpointPath(options_.output_path), checkpoint_);
}

absl::Status CheckpointWriter::WriteIfOlder(core::TimeNs age_ns_least) {
  unsaved_ = true;
  return clock_.NowNs() - written_ns_ >= age_ns_least ? Write() : absl::OkStatus();
}

absl::Status CheckpointWriter::WriteUnsaved() { return unsaved_ ? Write() : absl::OkStatus(); }

}  // namespace gpushare::models
