// Where the command looks for scenarios and profiles that a user names, before and after
// installation.

#include "tools/gpushare/base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/scenario/scenario.h"

namespace gpushare::tool {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

class PlacesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "gpushare_files_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_ + "/share/scenarios");
    fs::create_directories(folder_ + "/share/profiles");
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Make(const std::string& name) const {
    std::ofstream(folder_ + "/" + name) << "{}";
    return folder_ + "/" + name;
  }

  std::string folder_;
};

TEST_F(PlacesTest, ANameIsAFileFirstAndAnInstalledOneThen) {
  EXPECT_THAT(PlacesOf("smoke", "scenarios", "/s"),
              ElementsAre("smoke", "/s/scenarios/smoke", "/s/scenarios/smoke.json"));
  EXPECT_THAT(PlacesOf("/a/smoke", "scenarios", "/s"), ElementsAre("/a/smoke"));
  EXPECT_THAT(PlacesOf("smoke", "scenarios", ""), ElementsAre("smoke"));
}

TEST_F(PlacesTest, AProfileIsBesideItsScenarioFirst) {
  EXPECT_THAT(ProfilePlaces("../../profiles/h.json", "/a/b/c/s.json", "/s"),
              ElementsAre("/a/profiles/h.json", "../../profiles/h.json", "/s/profiles/h.json"));
  EXPECT_THAT(ProfilePlaces("h.json", "s.json", "/s"), ElementsAre("h.json", "/s/profiles/h.json"));
  EXPECT_THAT(ProfilePlaces("/p/h.json", "/a/s.json", "/s"), ElementsAre("/p/h.json"));
}

TEST_F(PlacesTest, TheInstalledFileIsFoundWhenNoneIsNearer) {
  const std::string share = folder_ + "/share";
  const std::string installed = Make("share/scenarios/smoke.json");
  EXPECT_EQ(FirstExisting(PlacesOf("smoke", "scenarios", share)), installed);
  const std::string profile = Make("share/profiles/h.json");
  const std::string scenario = share + "/scenarios/smoke.json";
  EXPECT_EQ(FirstExisting(ProfilePlaces("../../profiles/h.json", scenario, share)), profile);
  // A nearer one wins.
  fs::create_directories(folder_ + "/profiles");
  const std::string nearer = Make("profiles/h.json");
  EXPECT_EQ(FirstExisting(ProfilePlaces("../../profiles/h.json", scenario, share)), nearer);
}

TEST_F(PlacesTest, AFolderOfTheNameDoesNotHideTheFile) {
  const std::string installed = Make("share/scenarios/smoke");
  EXPECT_EQ(FirstExisting({folder_ + "/share", installed}), installed);
  EXPECT_EQ(FirstExisting({folder_ + "/none", folder_ + "/share"}), folder_ + "/share");
  EXPECT_EQ(FirstExisting({folder_ + "/none"}), "");
}

TEST_F(PlacesTest, AnErrorNamesEveryPlaceThatWasSearched) {
  try {
    FindScenario("no_such_scenario");
    FAIL() << "the scenario is nowhere";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("The scenario 'no_such_scenario' does not exist"),
                      HasSubstr(InstalledShare() + "/scenarios/no_such_scenario'"),
                      HasSubstr(InstalledShare() + "/scenarios/no_such_scenario.json'.")));
  }
  EXPECT_THROW(FindProfile("no_such_profile"), InputError);
}

TEST_F(PlacesTest, AScenarioWithoutItsProfileNamesEveryPlace) {
  const std::string file = folder_ + "/s.json";
  std::ofstream(file) << R"({"schema_version": 1, "name": "s", "profile": "none.json",
    "lc": [{"name": "a", "kernel": "chain1"}], "be": [],
    "cases": [{"name": "c", "lc": ["a"], "load": 0.3}]})";
  try {
    LoadScenario(file);
    FAIL() << "the profile is nowhere";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("'" + folder_ + "/none.json', 'none.json' and '"),
                                    HasSubstr(InstalledShare() + "/profiles/none.json'.")));
  }
}

TEST_F(PlacesTest, TheShareFolderIsBesideTheProgram) {
  EXPECT_EQ(fs::path(InstalledShare()).filename(), "gpushare");
  EXPECT_TRUE(fs::path(InstalledShare()).is_absolute());
}

TEST_F(PlacesTest, AFifoIsWrittenAndNotReplaced) {
  const std::string path = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  WriteFile(path, "some bytes");
  char bytes[32] = {};
  EXPECT_EQ(read(reader, bytes, sizeof(bytes)), 10);
  close(reader);
  EXPECT_STREQ(bytes, "some bytes");
  EXPECT_TRUE(fs::is_fifo(path));
  EXPECT_FALSE(fs::exists(path + ".tmp"));
}

}  // namespace
}  // namespace gpushare::tool
