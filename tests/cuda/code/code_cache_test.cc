// The code cache gives back what was kept, and nothing that is damaged, foreign or of other makers.

#include "src/cuda/code/code_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/core/base/file_io.h"
#include "tests/temporary_folder.h"

namespace gpushare::cuda {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

CodeSource Source(absl::string_view text) {
  return {.text = text,
          .form = "worker",
          .options = "-O3",
          .assembler = "nvJitLink 13.0",
          .architecture = "sm_90a"};
}

class CodeCacheTest : public testing::Test {
 protected:
  CodeCache Cache(int64_t bytes_max = core::kMaxCodeCacheBytes) const {
    return CodeCache(folder_, bytes_max);
  }
  std::vector<fs::path> Entries() const {
    std::vector<fs::path> out;
    for (const auto& file : fs::directory_iterator(folder_)) {
      if (file.path().extension() == ".code") out.push_back(file.path());
    }
    return out;
  }
  // The file of the only entry.
  std::string Only() const {
    const std::vector<fs::path> entries = Entries();
    EXPECT_EQ(entries.size(), 1u);
    return entries.empty() ? "" : entries[0].string();
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path() + "/a/code";
};

TEST_F(CodeCacheTest, AnotherObjectFindsWhatWasKept) {
  const std::string code(
      "\x7f"
      "ELF\0more",
      9);
  EXPECT_EQ(Cache().Find(Source("text")), std::nullopt);
  ASSERT_TRUE(Cache().Keep(Source("text"), code).ok());
  EXPECT_EQ(Cache().Find(Source("text")), code);
  ASSERT_TRUE(Cache().Keep(Source("text"), "newer").ok());
  EXPECT_EQ(Cache().Find(Source("text")), "newer");
  Cache().Drop(Source("text"));
  EXPECT_EQ(Cache().Find(Source("text")), std::nullopt);
}

TEST_F(CodeCacheTest, EveryPartOfTheSourceCounts) {
  ASSERT_TRUE(Cache().Keep(Source("text"), "code").ok());
  CodeSource other = Source("text");
  other.form = "slice";
  EXPECT_EQ(Cache().Find(other), std::nullopt);
  other = Source("text");
  other.options = "-O0";
  EXPECT_EQ(Cache().Find(other), std::nullopt);
  other = Source("text");
  other.assembler = "nvJitLink 13.1";
  EXPECT_EQ(Cache().Find(other), std::nullopt);
  other = Source("text");
  other.architecture = "sm_100a";
  EXPECT_EQ(Cache().Find(other), std::nullopt);
  EXPECT_EQ(Cache().Find(Source("texts")), std::nullopt);
}

TEST_F(CodeCacheTest, AnEntryOfAnotherSourceUnderTheSameNameIsNotTaken) {
  ASSERT_TRUE(Cache().Keep(Source("one"), "code of one").ok());
  const std::string one = Only();
  ASSERT_TRUE(Cache().Keep(Source("two"), "code of two").ok());
  for (const fs::path& entry : Entries()) {
    if (entry != one) fs::copy_file(one, entry, fs::copy_options::overwrite_existing);
  }
  EXPECT_EQ(Cache().Find(Source("two")), std::nullopt) << "their digests collide";
  EXPECT_EQ(Cache().Find(Source("one")), "code of one");
  EXPECT_EQ(Entries().size(), 2u) << "it is whole, so it stays";
}

TEST_F(CodeCacheTest, DamagedEntriesAreRemoved) {
  ASSERT_TRUE(Cache().Keep(Source("text"), "the code").ok());
  const std::string path = Only();
  const std::string good = *core::ReadWholeFile(path, 1 << 20);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    std::ofstream(path, std::ios::binary) << bad;
    EXPECT_EQ(Cache().Find(Source("text")), std::nullopt) << at;
    EXPECT_FALSE(fs::exists(path)) << at;
  }
  for (const size_t bytes : {size_t{0}, size_t{39}, good.size() / 2, good.size() - 1}) {
    std::ofstream(path, std::ios::binary) << good.substr(0, bytes);
    EXPECT_EQ(Cache().Find(Source("text")), std::nullopt) << bytes;
    EXPECT_FALSE(fs::exists(path)) << bytes;
  }
  std::ofstream(path, std::ios::binary) << good << "more";
  EXPECT_EQ(Cache().Find(Source("text")), std::nullopt);
  std::ofstream(path, std::ios::binary) << good;
  EXPECT_EQ(Cache().Find(Source("text")), "the code");
}

TEST_F(CodeCacheTest, TheLeastRecentlyUsedGoesFirst) {
  const CodeCache cache = Cache(3 * core::kMinCodeCacheEntryBytes);
  for (const char* const text : {"one", "two", "three"}) {
    ASSERT_TRUE(cache.Keep(Source(text), "code").ok());
    const auto now = fs::file_time_type::clock::now();
    for (const fs::path& entry : Entries()) {  // each is an hour older than the next
      fs::last_write_time(entry, std::min(fs::last_write_time(entry), now) - std::chrono::hours(1));
    }
  }
  EXPECT_TRUE(cache.Find(Source("one")).has_value()) << "its use counts";
  ASSERT_TRUE(cache.Keep(Source("four"), "code").ok());
  EXPECT_EQ(Entries().size(), 3u);
  EXPECT_EQ(cache.Find(Source("two")), std::nullopt);
  for (const char* const text : {"one", "three", "four"}) {
    EXPECT_TRUE(cache.Find(Source(text)).has_value()) << text;
  }
  const absl::Status status = cache.Keep(Source("five"), std::string(1 << 20, 'x'));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(Entries().size(), 3u) << "nothing goes for what never fits";
}

TEST_F(CodeCacheTest, OnlyItsOwnFilesCountAndGo) {
  const CodeCache cache = Cache(core::kMinCodeCacheEntryBytes);
  ASSERT_TRUE(cache.Keep(Source("one"), "code").ok());
  const std::string left_behind = Only() + ".123.0.tmp";
  std::ofstream(left_behind) << "half";
  std::ofstream(folder_ + "/notes.code") << std::string(1 << 16, 'x');
  std::ofstream(folder_ + "/letter.tmp") << "mine";
  ASSERT_TRUE(cache.Keep(Source("two"), "code").ok());
  EXPECT_FALSE(fs::exists(left_behind));
  EXPECT_TRUE(fs::exists(folder_ + "/notes.code"));
  EXPECT_TRUE(fs::exists(folder_ + "/letter.tmp"));
  EXPECT_EQ(cache.Find(Source("one")), std::nullopt);
  EXPECT_EQ(cache.Find(Source("two")), "code");
}

TEST_F(CodeCacheTest, AFolderThatOthersMayWriteToIsNotTrusted) {
  ASSERT_TRUE(Cache().Keep(Source("text"), "code").ok());
  for (const mode_t mode : {0770, 0702}) {
    ASSERT_EQ(chmod(folder_.c_str(), mode), 0);
    EXPECT_EQ(Cache().Find(Source("text")), std::nullopt) << mode;
    const absl::Status status = Cache().Keep(Source("text"), "code");
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(status.message(), HasSubstr(folder_));
  }
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  EXPECT_EQ(Cache().Find(Source("text")), "code") << "others may read it";
}

TEST_F(CodeCacheTest, AReadOnlyFolderStillGivesWhatItHas) {
  ASSERT_TRUE(Cache().Keep(Source("text"), "code").ok());
  ASSERT_EQ(chmod(folder_.c_str(), 0500), 0);
  EXPECT_EQ(Cache().Find(Source("text")), "code");
  if (geteuid() != 0) {  // root writes everywhere
    EXPECT_FALSE(Cache().Keep(Source("other"), "code").ok());
  }
  ASSERT_EQ(chmod(folder_.c_str(), 0700), 0);
}

TEST_F(CodeCacheTest, WithoutAFolderNothingIsKept) {
  const CodeCache none("");
  EXPECT_EQ(none.Keep(Source("text"), "code").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(none.Find(Source("text")), std::nullopt);
  std::ofstream(temporary_.path() + "/file") << "no folder";
  const CodeCache below_a_file(temporary_.path() + "/file/code");
  EXPECT_FALSE(below_a_file.Keep(Source("text"), "code").ok());
  EXPECT_EQ(below_a_file.Find(Source("text")), std::nullopt);
}

TEST_F(CodeCacheTest, AWriterWaitsOnlySoLongForAnother) {
  ASSERT_TRUE(Cache().Keep(Source("text"), "code").ok());
  const int lock = open((folder_ + "/lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(lock, 0);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  EXPECT_EQ(Cache().Keep(Source("other"), "code").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Cache().Find(Source("text")), "code") << "readers do not wait";
  close(lock);
  EXPECT_TRUE(Cache().Keep(Source("other"), "code").ok());
}

// Writes and reads as another process does, and exits with 0 if all that it found was right.
void UseFrom(const CodeCache& cache, int process) {
  for (int i = 0; i < 60; ++i) {
    const std::string text = std::to_string((i * 7 + process) % 12);
    const std::string code = "code of " + text;
    const auto found = cache.Find(Source(text));
    if (found.has_value() && *found != code) _exit(1);
    if (!found.has_value()) cache.Keep(Source(text), code).IgnoreError();
  }
  _exit(0);
}

TEST_F(CodeCacheTest, ProcessesShareItWithoutTearingAndKeepItsBound) {
  constexpr int kEntries = 5;
  const CodeCache cache = Cache(kEntries * core::kMinCodeCacheEntryBytes);
  std::vector<pid_t> processes;
  for (int process = 0; process < 4; ++process) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) UseFrom(cache, process);
    processes.push_back(child);
  }
  for (const pid_t process : processes) {
    int status = -1;
    ASSERT_EQ(waitpid(process, &status, 0), process);
    EXPECT_EQ(status, 0);
  }
  EXPECT_LE(Entries().size(), static_cast<size_t>(kEntries));
  EXPECT_GE(Entries().size(), 1u);
  for (const auto& file : fs::directory_iterator(folder_)) {
    EXPECT_NE(file.path().extension(), ".tmp") << file.path();
  }
}

TEST_F(CodeCacheTest, TheEnvironmentNamesItsFolder) {
  const auto with = [](const char* given, const char* cache, const char* home) {
    setenv("GPUSHARE_CODE_CACHE", given, 1);
    setenv("XDG_CACHE_HOME", cache, 1);
    setenv("HOME", home, 1);
    return CodeCache::FolderOfEnvironment();
  };
  EXPECT_EQ(with("/my/folder", "/cache", "/home"), "/my/folder");
  EXPECT_EQ(with("off", "/cache", "/home"), "");
  EXPECT_EQ(with("", "/cache", "/home"), "/cache/gpushare/code");
  EXPECT_EQ(with("", "relative", "/home"), "/home/.cache/gpushare/code");
  EXPECT_EQ(with("", "", ""), "");
}

}  // namespace
}  // namespace gpushare::cuda
