// The folder of recorded launches as the benchmark of fused twins reads it.

#include "benchmarks/gpu/ptx/recorded_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "benchmarks/harness/failure.h"
#include "tests/temporary_folder.h"

namespace gpushare::benchmarks {
namespace {

class RecordedFolderTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() + "/" + name, std::ios::binary) << text;
  }
  void WriteLaunch(const std::string& name, const std::string& grid, size_t bytes,
                   const std::string& ptx) const {
    Write(name + ".ptx", ptx);
    Write(name + ".0.bin", std::string(bytes, 'x'));
    Write(name + ".1.bin", std::string(10, 'x'));
    Write(name + ".json",
          R"({"entry": "k_)" + name + R"(", "ptx": ")" + name +
              R"(.ptx", "source": "mm", "grid": )" + grid +
              R"(, "threads": 128, "shared": 4096, "arguments": [], "buffers": [")" + name +
              R"(.0.bin", ")" + name + R"(.1.bin"]})");
  }
  std::vector<RecordedFile> Read() const { return ReadRecordedFolder(folder_.path()); }

  const TemporaryFolder folder_;
};

TEST_F(RecordedFolderTest, FilesTellWhatALaunchIs) {
  WriteLaunch("b", "[4, 3, 2]", 90, "wgmma.mma_async");
  WriteLaunch("a", "[7, 1, 1]", 20, "add.f32");
  Write("order.0.tsv", "gpt2\ta\ngpt2\tb\ngpt2\ta\n");
  const std::vector<RecordedFile> files = Read();
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].name, "a");
  EXPECT_FALSE(files[0].tensor);
  EXPECT_EQ(files[0].calls, 2);
  EXPECT_EQ(files[1].entry, "k_b");
  EXPECT_TRUE(files[1].tensor);
  EXPECT_EQ(files[1].blocks, 24);
  EXPECT_EQ(files[1].bytes, 100);
  EXPECT_EQ(files[1].threads, 128);
  EXPECT_EQ(files[1].dynamic_shared_bytes, 4096);
  EXPECT_EQ(ReadText(files[1].ptx), "wgmma.mma_async");
}

TEST_F(RecordedFolderTest, TheShortlistHasTheLargestOfEachSide) {
  WriteLaunch("gemm", "[200, 1, 1]", 50, "mma.sync");
  WriteLaunch("gemm_large", "[200, 1, 1]", 80, "mma.sync");
  WriteLaunch("norm", "[900, 1, 1]", 70, "add.f32");
  WriteLaunch("norm_small_grid", "[5, 1, 1]", 500, "add.f32");
  Write("order.0.tsv", "gpt2\tgemm\ngpt2\tnorm\n");
  const auto names = [this](size_t count, bool ordered) {
    std::vector<std::string> found;
    for (const RecordedFile& file : Shortlist(Read(), count, 132, ordered)) {
      found.push_back(file.name);
    }
    return found;
  };
  EXPECT_EQ(names(1, false), (std::vector<std::string>{"gemm_large", "norm"}));
  EXPECT_EQ(names(9, false), (std::vector<std::string>{"gemm_large", "norm", "gemm"}));
  EXPECT_EQ(names(9, true), (std::vector<std::string>{"norm", "gemm"}));
}

TEST_F(RecordedFolderTest, WhatTheRecorderDidNotWriteIsAnError) {
  EXPECT_THROW(Read(), Failure) << "no launch";
  EXPECT_THROW(ReadRecordedFolder("/nowhere/at/all"), Failure);
  WriteLaunch("a", "[7, 1]", 20, "add.f32");
  EXPECT_THROW(Read(), Failure) << "a grid of two dimensions";
  WriteLaunch("a", "[7, 1, 1]", 20, "add.f32");
  EXPECT_EQ(Read().size(), 1u);
  std::filesystem::remove(folder_.path() + "/a.1.bin");
  EXPECT_THROW(Read(), Failure) << "a buffer is missing";
  Write("a.json", "{");
  EXPECT_THROW(Read(), Failure);
}

}  // namespace
}  // namespace gpushare::benchmarks
