// Whole-file reads and atomic writes: all bytes or a sentence, and never half a file.

#include "src/core/base/file_io.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gpushare::core {
namespace {

using ::testing::HasSubstr;

class FileIoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string Write(const std::string& name, const std::string& bytes) const {
    EXPECT_TRUE(WriteFileAtomically(Path(name), {bytes}).ok());
    return Path(name);
  }
  int Files() const {
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      files += entry.exists() ? 1 : 0;
    }
    return files;
  }

  const std::string folder_ = ::testing::TempDir() + "/gpushare_file_io_test";
};

TEST_F(FileIoTest, PiecesAreReadBackAsOneFile) {
  const std::string large(3 << 16, 'x');
  ASSERT_TRUE(WriteFileAtomically(Path("file"), {"one ", "", large, " two"}).ok());
  EXPECT_EQ(*ReadWholeFile(Path("file"), 1 << 20), "one " + large + " two");
  EXPECT_EQ(Files(), 1) << "no temporary file is left";
  ASSERT_TRUE(WriteFileAtomically(Path("file"), {"shorter"}).ok());
  EXPECT_EQ(*ReadWholeFile(Path("file"), 1 << 20), "shorter");
}

TEST_F(FileIoTest, AFifoIsWrittenAndNotReplaced) {
  const std::string path = Path("fifo");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(WriteFileAtomically(path, {"nobody reads"}).ok());
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(WriteFileAtomically(path, {"some", " bytes"}).ok());
  char bytes[32] = {};
  EXPECT_EQ(read(reader, bytes, sizeof(bytes)), 10);
  close(reader);
  EXPECT_STREQ(bytes, "some bytes");
  EXPECT_TRUE(std::filesystem::is_fifo(path));
  EXPECT_EQ(Files(), 1) << "no temporary file is left";
}

TEST_F(FileIoTest, AFileMayHaveAsManyBytesAsTheLimit) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1} << 16, (size_t{1} << 16) + 1}) {
    const std::string path = Write("file", std::string(size, 'x'));
    const auto limit = static_cast<int64_t>(size);
    EXPECT_EQ(ReadWholeFile(path, limit)->size(), size);
    if (size == 0) continue;
    const auto beyond = ReadWholeFile(path, limit - 1);
    EXPECT_EQ(beyond.status().code(), absl::StatusCode::kInvalidArgument) << size;
    EXPECT_THAT(std::string(beyond.status().message()), HasSubstr(std::to_string(limit - 1)));
  }
}

TEST_F(FileIoTest, AMissingFileIsNotFoundAndNamed) {
  const absl::Status missing = ReadWholeFile(Path("missing"), 100).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(missing.message(),
            "The file '" + Path("missing") + "' cannot be opened: No such file or directory.");
  const absl::Status folder = WriteFileAtomically(Path("missing/file"), {"x"});
  EXPECT_EQ(folder.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(folder.message()), HasSubstr("cannot be created"));
}

// Opening a FIFO without a writer would block for ever.
TEST_F(FileIoTest, OnlyRegularFilesAreRead) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  for (const std::string& path : {Path("fifo"), folder_, std::string("/dev/zero")}) {
    const absl::Status status = ReadWholeFile(path, 100).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << path;
    EXPECT_EQ(status.message(), "'" + path + "' is not a regular file.");
  }
}

// As on a full disk.
TEST_F(FileIoTest, AWriteThatIsRefusedIsReportedAndLeavesNoFile) {
  const std::string path = Write("file", "old");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = WriteFileAtomically(path, {"more than ten bytes"});
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot be written"));
  EXPECT_EQ(*ReadWholeFile(path, 100), "old");
  EXPECT_EQ(Files(), 1) << "no temporary file is left";
}

// The memory of a process is a regular file, and its first page cannot be read.
TEST_F(FileIoTest, AReadThatFailsIsReported) {
  const absl::Status status = ReadWholeFile("/proc/self/mem", 100).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot be read"));
}

TEST_F(FileIoTest, AWriteThatFailsLeavesTheFileAsItWas) {
  EXPECT_EQ(WriteFileAtomically("", {"x"}).code(), absl::StatusCode::kInvalidArgument);
  // A folder cannot be replaced by a file.
  std::filesystem::create_directory(Path("folder"));
  const absl::Status status = WriteFileAtomically(Path("folder"), {"x"});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot be replaced"));
  EXPECT_TRUE(std::filesystem::is_directory(Path("folder")));
  EXPECT_EQ(Files(), 1) << "no temporary file is left";
}

}  // namespace
}  // namespace gpushare::core
