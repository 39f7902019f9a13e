// A run's files land together, or the earlier ones are back; what else is in the folder stays.

#include "tools/gpushare/colocate/result_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tools/gpushare/base/errors.h"

namespace gpushare::tool {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;

class ResultSetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "gpushare_result_set_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
  }

  // The earlier set, with a file that is not of it.
  Files WriteEarlier() const {
    for (const char* name : {"result.json", "report.html", "trace.pftrace", "events/a.gpulog"}) {
      Write(folder_ + "/" + name, std::string("earlier ") + name);
    }
    Write(folder_ + "/table.txt", "the user's");
    return All();
  }

  static void WriteNew(const ResultSet& set) {
    for (const char* name : {"result.json", "report.html", "events/b.gpulog"}) {
      Write(set.partial() + "/" + name, std::string("new ") + name);
    }
  }

  Files All() const {
    Files files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      if (!entry.is_regular_file()) continue;
      std::stringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      files[fs::relative(entry.path(), folder_).string()] = text.str();
    }
    return files;
  }

  std::string folder_;
};

TEST_F(ResultSetTest, APublishedSetReplacesAllOfTheEarlierOneAndNothingElse) {
  WriteEarlier();
  {
    ResultSet set(folder_);
    EXPECT_TRUE(set.HasEarlierResults());
    WriteNew(set);
    set.Publish();
  }
  EXPECT_EQ(All(), (Files{{"events/b.gpulog", "new events/b.gpulog"},
                          {"report.html", "new report.html"},
                          {"result.json", "new result.json"},
                          {"table.txt", "the user's"}}));
  EXPECT_FALSE(fs::exists(folder_ + "/gpushare.partial"));
}

TEST_F(ResultSetTest, ASetThatIsNotPublishedLeavesTheEarlierOne) {
  const Files before = WriteEarlier();
  { WriteNew(ResultSet(folder_)); }
  EXPECT_EQ(All(), before);
}

TEST_F(ResultSetTest, ARenameThatFailsBringsTheEarlierSetBack) {
  const Files before = WriteEarlier();
  {
    ResultSet set(folder_);
    WriteNew(set);
    // The earlier report cannot go where a folder is.
    fs::create_directories(set.partial() + "/earlier/report.html/in_the_way");
    try {
      set.Publish();
      FAIL() << "the failure is lost";
    } catch (const RunError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("'" + folder_ + "/report.html'"));
    }
  }
  EXPECT_EQ(All(), before);
}

TEST_F(ResultSetTest, AKeptPartialSetStaysUntilARunEmptiesIt) {
  {
    ResultSet set(folder_);
    WriteNew(set);
    Write(set.partial() + "/rows.json", "rows");
    set.KeepPartial(true);
  }
  const Files before = All();
  { const ResultSet refused_before_the_first_run(folder_); }
  EXPECT_EQ(All(), before);
  {
    ResultSet set(folder_);
    set.Empty();
    EXPECT_EQ(All(), Files());
    EXPECT_TRUE(fs::exists(set.partial() + "/events"));
  }
  EXPECT_FALSE(fs::exists(folder_));
}

// Publish() makes one rename after the other; the process may end between any two.
TEST_F(ResultSetTest, AProcessThatEndsInsidePublishLosesNoEarlierSet) {
  const std::vector<std::string> entries = {"result.json", "report.html", "trace.pftrace",
                                            "events"};
  for (size_t moved = 0; moved < 2 * entries.size(); ++moved) {
    SCOPED_TRACE(moved);
    fs::remove_all(folder_);
    const Files before = WriteEarlier();
    const std::string partial = folder_ + "/gpushare.partial";
    for (const char* name : {"result.json", "report.html", "trace.pftrace", "events/b.gpulog"}) {
      Write(partial + "/" + name, std::string("new ") + name);
    }
    fs::create_directories(partial + "/earlier");
    for (size_t i = 0; i < moved; ++i) {
      const bool away = i < entries.size();
      const std::string& entry = entries[away ? i : 2 * entries.size() - 1 - i];
      fs::rename((away ? folder_ : partial) + "/" + entry,
                 (away ? partial + "/earlier" : folder_) + "/" + entry);
    }
    { const ResultSet next(folder_); }
    EXPECT_EQ(All(), before);
  }
}

TEST_F(ResultSetTest, ASecondWriterIsRefusedAndTakesNothingAway) {
  ResultSet first(folder_);
  WriteNew(first);
  EXPECT_THROW(ResultSet{folder_}, InputError);
  EXPECT_TRUE(fs::exists(first.partial() + "/report.html"));
}

}  // namespace
}  // namespace gpushare::tool
