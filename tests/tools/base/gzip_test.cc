// Compressed files are read like others, within a bound.

#include "tools/gpushare/base/gzip.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/temporary_folder.h"
#include "tests/tools/run_tool.h"
#include "tools/gpushare/base/errors.h"

namespace gpushare::tool {
namespace {

// A file of 3,000 bytes, compressed.
std::string Compressed(const TemporaryFolder& folder) {
  const std::string path = folder.path() + "/rows";
  std::ofstream(path) << std::string(3000, 'a');
  EXPECT_EQ(std::system(("gzip '" + path + "'").c_str()), 0);
  return path + ".gz";
}

TEST(GzipTest, ACompressedFileIsDecompressedAndTheTemporaryFileRemoved) {
  const TemporaryFolder folder;
  std::string temporary;
  {
    const Uncompressed file(Compressed(folder), 3000);
    temporary = file.path();
    EXPECT_EQ(Read(temporary), std::string(3000, 'a'));
  }
  EXPECT_FALSE(std::filesystem::exists(temporary));
}

TEST(GzipTest, OtherFilesAreLeftToTheirReader) {
  const TemporaryFolder folder;
  const std::string plain = folder.path() + "/plain";
  std::ofstream(plain) << "a";
  EXPECT_EQ(Uncompressed(plain, 1).path(), plain);
  EXPECT_EQ(Uncompressed("/no/such/file", 1).path(), "/no/such/file");
}

TEST(GzipTest, WhatIsTooLargeOrCutIsRefused) {
  const TemporaryFolder folder;
  const std::string path = Compressed(folder);
  EXPECT_THROW(Uncompressed(path, 2999), InputError);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  EXPECT_THROW(Uncompressed(path, 3000), InputError);
}

TEST(GzipTest, EvaluateModelsReadsThem) {
  const TemporaryFolder folder;
  const Answer answer =
      RunTool({"evaluate-models", Compressed(folder), "--out", folder.path() + "/models"});
  EXPECT_EQ(answer.code, 2);
  EXPECT_NE(answer.err.find("no first line"), std::string::npos)
      << "the text inside: " << answer.err;
}

}  // namespace
}  // namespace gpushare::tool
