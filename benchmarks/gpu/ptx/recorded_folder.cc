#include "benchmarks/gpu/ptx/recorded_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "benchmarks/gpu/ptx/fused_plan.h"
#include "benchmarks/harness/failure.h"

namespace gpushare::benchmarks {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

RecordedFile ReadFile(const fs::path& path) {
  const Json record = Json::parse(ReadText(path.string()), nullptr, false);
  if (record.is_discarded()) Fail(path.string() + " is no JSON.");
  RecordedFile file;
  file.path = path.string();
  file.name = path.stem().string();
  try {
    file.entry = record.at("entry").get<std::string>();
    file.source = record.at("source").get<std::string>();
    file.ptx = (path.parent_path() / record.at("ptx").get<std::string>()).string();
    file.threads = record.at("threads").get<int>();
    file.dynamic_shared_bytes = record.at("shared").get<int>();
    const auto grid = record.at("grid").get<std::array<int64_t, 3>>();
    file.blocks = grid[0] * grid[1] * grid[2];
    for (const Json& buffer : record.at("buffers")) {
      file.bytes +=
          static_cast<double>(fs::file_size(path.parent_path() / buffer.get<std::string>()));
    }
  } catch (const std::exception& error) {
    Fail(path.string() + ": " + error.what());
  }
  file.tensor = UsesTensorCores(ReadText(file.ptx));
  return file;
}

// An order has a line for each launch: the function, a tab, the launch's name.
void CountCalls(const fs::path& path, std::map<std::string, double>& calls) {
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    const size_t tab = line.rfind('\t');
    if (tab == std::string::npos) Fail(path.string() + " has a line without a tab: " + line);
    ++calls[line.substr(tab + 1)];
  }
}

}  // namespace

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Fail("The file " + path + " cannot be read.");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<RecordedFile> ReadRecordedFolder(const std::string& folder) {
  std::vector<RecordedFile> files;
  std::map<std::string, double> calls;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(folder, error)) {
    if (file.path().extension() == ".json") files.push_back(ReadFile(file.path()));
    if (file.path().extension() == ".tsv") CountCalls(file.path(), calls);
  }
  if (error) Fail("The folder " + folder + " cannot be read: " + error.message() + ".");
  if (files.empty()) Fail("The folder " + folder + " has no recorded launch.");
  for (RecordedFile& file : files) {
    if (const auto found = calls.find(file.name); found != calls.end()) file.calls = found->second;
  }
  std::sort(files.begin(), files.end(),
            [](const RecordedFile& a, const RecordedFile& b) { return a.name < b.name; });
  return files;
}

std::vector<RecordedFile> Shortlist(std::vector<RecordedFile> files, size_t count,
                                    int64_t blocks_min, bool ordered_only) {
  std::stable_sort(files.begin(), files.end(),
                   [](const RecordedFile& a, const RecordedFile& b) { return a.bytes > b.bytes; });
  std::array<size_t, 2> taken = {};
  std::vector<RecordedFile> found;
  for (RecordedFile& file : files) {
    if (file.blocks < blocks_min || (ordered_only && file.calls == 0)) continue;
    if (taken[file.tensor ? 1 : 0]++ < count) found.push_back(std::move(file));
  }
  return found;
}

}  // namespace gpushare::benchmarks
