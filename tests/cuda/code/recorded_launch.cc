#include "tests/cuda/code/recorded_launch.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "src/core/base/file_io.h"
#include "src/ptx/twin.h"
#include "tests/cuda/code/device_memory.h"
#include "tests/cuda/code/ptx_code.h"

namespace gpushare::cuda {
namespace {

using Json = nlohmann::json;

constexpr size_t kFileBytesMax = size_t{1} << 30;

absl::Status Bad(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", why));
}

size_t Aligned(size_t at, size_t to) { return (at + to - 1) / to * to; }

// The value of an argument: bytes as they are, or an address within a buffer.
std::string ValueOf(const Json& argument, const std::vector<void*>& buffers) {
  if (argument.contains("bytes")) {
    return absl::HexStringToBytes(argument.at("bytes").get<std::string>());
  }
  const uint64_t address =
      reinterpret_cast<uint64_t>(buffers.at(argument.at("buffer").get<size_t>())) +
      argument.at("offset").get<uint64_t>();
  std::string value(sizeof(address), '\0');
  std::memcpy(value.data(), &address, sizeof(address));
  return value;
}

}  // namespace

RecordedLaunch::~RecordedLaunch() {
  for (const Buffer& buffer : buffers_) {
    FreeBytes(buffer.work);
    FreeBytes(buffer.before);
    FreeBytes(buffer.expected);
  }
}

absl::StatusOr<std::unique_ptr<RecordedLaunch>> RecordedLaunch::Read(const std::string& path) {
  const auto file = core::ReadWholeFile(path, kFileBytesMax);
  if (!file.ok()) return file.status();
  const Json record = Json::parse(*file, nullptr, false);
  if (record.is_discarded()) return Bad(path, "is no JSON.");
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::unique_ptr<RecordedLaunch> launch(new RecordedLaunch);
  try {
    const auto text =
        core::ReadWholeFile(folder / record.at("ptx").get<std::string>(), kFileBytesMax);
    if (!text.ok()) return text.status();
    launch->source = record.at("source").get<std::string>();
    launch->kernel.name = record.at("entry").get<std::string>();
    launch->kernel.code = PtxCodeOf(*text, launch->kernel.name);
    launch->kernel.resources.threads_per_block = record.at("threads").get<int32_t>();
    launch->kernel.resources.dynamic_shared_memory_bytes = record.at("shared").get<int32_t>();
    launch->kernel.resources.registers_per_thread = launch->kernel.resources.workers_per_sm_max = 0;
    launch->grid = record.at("grid").get<std::array<int32_t, 3>>();
    launch->block_tasks = int64_t{launch->grid[0]} * launch->grid[1] * launch->grid[2];

    std::vector<void*> work;
    for (const Json& recorded : record.at("buffers")) {
      const auto bytes = core::ReadWholeFile(folder / recorded.get<std::string>(), kFileBytesMax);
      if (!bytes.ok()) return bytes.status();
      const size_t count = std::max<size_t>(bytes->size(), 1);
      launch->buffers_.push_back({count, MakeBytes(count), MakeBytes(count), MakeBytes(count)});
      const Buffer& buffer = launch->buffers_.back();
      if (buffer.expected == nullptr || !UploadBytes(buffer.before, bytes->data(), bytes->size())) {
        return absl::ResourceExhaustedError(
            absl::StrCat(path, ": no memory for ", count, " bytes."));
      }
      work.push_back(buffer.work);
    }
    const ptx::Checked checked = ptx::Check(*text, launch->kernel.name);
    const Json& given = record.at("arguments");
    if (given.size() != checked.facts.parameters.size()) {
      return Bad(path, absl::StrCat("has ", given.size(), " arguments, and the kernel takes ",
                                    checked.facts.parameters.size(), "."));
    }
    for (size_t i = 0; i < given.size(); ++i) {
      const ptx::ParameterFact& fact = checked.facts.parameters[i];
      const std::string value = ValueOf(given[i], work);
      if (value.size() != fact.size_bytes)
        return Bad(path, absl::StrCat("argument ", i, " has another size."));
      const size_t at = Aligned(launch->arguments.size(), fact.align_bytes);
      launch->arguments.resize(at + value.size());
      std::memcpy(launch->arguments.data() + at, value.data(), value.size());
    }
  } catch (const std::exception& error) {
    return Bad(path, error.what());
  }
  return launch;
}

bool RecordedLaunch::Restore() const {
  return std::all_of(buffers_.begin(), buffers_.end(), [](const Buffer& buffer) {
    return CopyBytes(buffer.work, buffer.before, buffer.bytes);
  });
}

bool RecordedLaunch::KeepAsExpected() const {
  return std::all_of(buffers_.begin(), buffers_.end(), [](const Buffer& buffer) {
    return CopyBytes(buffer.expected, buffer.work, buffer.bytes);
  });
}

uint64_t RecordedLaunch::Differing() const {
  uint64_t sum = 0;
  for (const Buffer& buffer : buffers_) {
    const uint64_t differing = DifferingBytes(buffer.work, buffer.expected, buffer.bytes);
    if (differing == kNotCompared) return kNotCompared;
    sum += differing;
  }
  return sum;
}

}  // namespace gpushare::cuda
