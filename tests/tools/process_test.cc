// The program as a process of its own: a full disk, an interrupt in the middle, a second one.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/temporary_folder.h"

namespace gpushare::tool {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Every file below a folder with its bytes.
std::map<std::string, std::string> Contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  if (!fs::exists(folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      files[fs::relative(entry.path(), folder).string()] = Read(entry.path());
    }
  }
  return files;
}

struct Ending {
  int exit_code = -1;  // -1: ended by a signal
  int signal = 0;
  std::string out;
  std::string err;
};

// How a child starts, beyond its arguments.
struct Start {
  std::string out;  // where stdout goes, empty: a file that Wait() reads
  rlim_t file_bytes_max = RLIM_INFINITY;
};

class Child {
 public:
  Child(const std::vector<std::string>& arguments, const fs::path& folder, const Start& start = {})
      : err_(folder / "stderr"), out_(start.out.empty() ? folder / "stdout" : fs::path(start.out)) {
    const char* program = std::getenv("GPUSHARE_TEST_TOOL");
    if (program == nullptr) return;
    std::vector<char*> argv = {const_cast<char*>(program)};
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ != 0) return;
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
    dup2(open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), STDOUT_FILENO);
    dup2(open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), STDERR_FILENO);
    const rlimit limit = {start.file_bytes_max, start.file_bytes_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    execv(program, argv.data());
    _exit(127);
  }
  ~Child() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void Signal(int number) const { kill(pid_, number); }

  // False if the child ends, or a minute passes, before the condition holds.
  bool WaitUntil(const std::function<bool()>& condition) const {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!condition()) {
      siginfo_t info = {};
      waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
      if (info.si_pid != 0 || std::chrono::steady_clock::now() > give_up) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
  }

  Ending Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    Ending ending;
    if (WIFEXITED(status)) ending.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
    ending.err = Read(err_);
    if (fs::is_regular_file(out_)) ending.out = Read(out_);
    return ending;
  }

 private:
  pid_t pid_ = -1;
  fs::path err_;
  fs::path out_;
};

// Two cases that take a tenth of a second each with a few queries. Without --queries the second
// one takes much longer, so that a signal can meet it.
constexpr char kScenario[] = R"json({
  "schema_version": 1, "name": "small", "queries": 200, "be_alone_ns": 2000000,
  "policies": ["fifo", "adaptive"],
  "lc": [{"name": "decode16", "kernel": "decode16", "p99_bound": 1.05}],
  "be": [{"name": "sincos", "kernel": "sincos_267us", "block_tasks": 10560}],
  "cases": [{"name": "first", "lc": ["decode16"], "be": ["sincos"], "load": 0.3},
            {"name": "second", "lc": ["decode16"], "be": ["sincos"], "load": 0.4,
             "queries": 4000}],
  "traced": {"case": "second", "policy": "adaptive"}
})json";

class ProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(std::getenv("GPUSHARE_TEST_TOOL"), nullptr) << "the test needs the program";
    scenario_ = folder_ / "small.json";
    std::ofstream(scenario_) << kScenario;
    out_ = folder_ / "out";
  }

  Ending Run(const std::vector<std::string>& arguments, const Start& start = {}) const {
    return Child(arguments, folder_, start).Wait();
  }

  // With the scenario's numbers of queries.
  std::vector<std::string> ColocateAll(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"colocate",   scenario_, "--device",  "sim",
                                          "--out",      out_,      "--threads", "1",
                                          "--trace-ms", "5"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  std::vector<std::string> Colocate(const std::string& queries) const {
    return ColocateAll({"--queries", queries});
  }

  // Interrupts a run of two cases in its second case.
  Ending InterruptInTheSecondCase(int number) const {
    Child child(ColocateAll(), folder_);
    const fs::path log = out_ / "gpushare.partial/events/second-fifo.gpulog";
    EXPECT_TRUE(child.WaitUntil([&] { return fs::exists(log); })) << Read(folder_ / "stderr");
    child.Signal(number);
    return child.Wait();
  }

  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
  fs::path out_;
  std::string scenario_;
};

TEST_F(ProcessTest, OutputThatDoesNotFitIsAnError) {
  ASSERT_EQ(Run(Colocate("5")).exit_code, 0);
  const std::vector<std::vector<std::string>> commands = {
      Colocate("5"),
      {"colocate", scenario_, "--device", "sim", "--queries", "20", "--json"},
      {"explain", out_},
      {"validate", scenario_},
      {"calibrate", "--device", "sim", "--kernels", "decode16", "--repeats", "1", "--seconds",
       "0.01", "--out", folder_ / "profile.json"},
      {"--help"},
      {"colocate", "--help"},
      {"--version"}};
  for (const auto& command : commands) {
    const Ending ending = Run(command, {"/dev/full", RLIM_INFINITY});
    EXPECT_EQ(ending.exit_code, 1) << command[0];
    EXPECT_THAT(ending.err, HasSubstr("standard output")) << command[0];
    EXPECT_THAT(ending.err, HasSubstr("No space left on device.")) << command[0];
  }
}

TEST_F(ProcessTest, AFileThatDoesNotFitIsNamedAndTheOldResultsStay) {
  ASSERT_EQ(Run(Colocate("5")).exit_code, 0);
  const auto before = Contents(out_);
  std::vector<size_t> sizes;
  for (const auto& [name, bytes] : before) sizes.push_back(bytes.size());
  std::sort(sizes.begin(), sizes.end());
  for (const size_t size : {sizes.front(), sizes[sizes.size() / 2], sizes.back()}) {
    const Ending ending = Run(Colocate("5"), {folder_ / "table", static_cast<rlim_t>(size - 1)});
    EXPECT_EQ(ending.exit_code, 1) << size << " signal " << ending.signal;
    EXPECT_THAT(ending.err, HasSubstr(out_.string() + "/gpushare.partial/")) << size;
    EXPECT_THAT(ending.err, HasSubstr("File too large.")) << size;
    EXPECT_EQ(Contents(out_), before) << size;
  }
}

TEST_F(ProcessTest, AProfileThatDoesNotFitIsNamedAndTheOldOneStays) {
  const std::string out = folder_ / "profile.json";
  std::vector<std::string> calibrate = {"calibrate", "--device", "sim",   "--kernels", "decode16",
                                        "--repeats", "1",        "--out", out};
  ASSERT_EQ(Run(calibrate).exit_code, 0);
  const std::string before = Read(out);
  const Ending ending = Run(calibrate, {"", static_cast<rlim_t>(before.size() / 2)});
  EXPECT_EQ(ending.exit_code, 1) << ending.signal;
  EXPECT_THAT(ending.err, HasSubstr(out));
  EXPECT_EQ(Read(out), before);
}

TEST_F(ProcessTest, AnInterruptLeavesTheOldResultsAndAPartialSetThatResumes) {
  ASSERT_EQ(Run(Colocate("5")).exit_code, 0);
  const auto before = Contents(out_);
  const Ending ending = InterruptInTheSecondCase(SIGINT);
  EXPECT_EQ(ending.exit_code, 130) << ending.err;
  EXPECT_EQ(ending.out, "");
  EXPECT_THAT(ending.err, HasSubstr("SIGINT"));
  EXPECT_THAT(ending.err, HasSubstr("1 of 2 cases"));
  EXPECT_THAT(ending.err,
              HasSubstr("The earlier results in '" + out_.string() + "' are unchanged"));
  EXPECT_THAT(ending.err, HasSubstr("--resume"));
  auto after = Contents(out_);
  const auto partial = Contents(out_ / "gpushare.partial");
  for (const auto& [name, bytes] : partial) after.erase("gpushare.partial/" + name);
  EXPECT_EQ(after, before);

  const auto result = nlohmann::json::parse(partial.at("result.json"));
  EXPECT_EQ(result.at("partial").at("missing_cases"), std::vector<std::string>{"second"});
  EXPECT_EQ(result.at("runs").size(), 3u + 2u);
  EXPECT_THAT(partial.at("report.html"), HasSubstr("PARTIAL"));
  EXPECT_EQ(partial.count("events/first-adaptive.gpulog"), 1u);
  EXPECT_EQ(partial.count("events/second-fifo.gpulog"), 0u);
  EXPECT_EQ(Run({"explain", out_ / "gpushare.partial"}).exit_code, 0);

  // The rest gives the bytes of a run that nothing interrupted.
  const Ending rest = Run(ColocateAll({"--resume"}));
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  const auto resumed = Contents(out_);
  fs::remove_all(out_);
  ASSERT_EQ(Run(ColocateAll()).exit_code, 0);
  EXPECT_EQ(resumed, Contents(out_));
}

TEST_F(ProcessTest, AnInterruptInTheFirstCaseKeepsNothingAndSaysSo) {
  Child child(Colocate("100000"), folder_);
  ASSERT_TRUE(child.WaitUntil([&] { return fs::exists(out_ / "gpushare.partial/events"); }));
  child.Signal(SIGTERM);
  const Ending ending = child.Wait();
  EXPECT_EQ(ending.exit_code, 143) << ending.err;
  EXPECT_THAT(ending.err, HasSubstr("SIGTERM"));
  EXPECT_THAT(ending.err, HasSubstr("nothing is kept"));
  EXPECT_FALSE(fs::exists(out_));
}

TEST_F(ProcessTest, APartialSetOfOtherOptionsIsNotResumed) {
  ASSERT_EQ(InterruptInTheSecondCase(SIGINT).exit_code, 130);
  const auto before = Contents(out_);
  const Ending queries = Run(ColocateAll({"--resume", "--queries", "201"}));
  EXPECT_EQ(queries.exit_code, 2);
  EXPECT_THAT(queries.err, HasSubstr("made with queries"));
  EXPECT_EQ(Contents(out_), before);
  // A set of one case would take the place of the case that is finished.
  const Ending cases = Run(ColocateAll({"--resume", "--case", "second"}));
  EXPECT_EQ(cases.exit_code, 2);
  EXPECT_THAT(cases.err, HasSubstr("made with cases"));
  EXPECT_EQ(Contents(out_), before);
  // Nor does a run that is refused before it begins take it away.
  EXPECT_EQ(Run(ColocateAll({"--policy", "adaptve"})).exit_code, 2);
  EXPECT_EQ(Contents(out_), before);
  // Rows of another version may lack fields, and they are no damage.
  const fs::path rows = out_ / "gpushare.partial/rows.json";
  auto older = nlohmann::json::parse(Read(rows));
  older["schema_version"] = 1;
  for (auto& row : older["rows"]) {
    for (auto& app : row["lc"]) app.erase("partition_sms");
  }
  std::ofstream(rows) << older.dump();
  const Ending version = Run(ColocateAll({"--resume"}));
  EXPECT_EQ(version.exit_code, 2);
  EXPECT_THAT(version.err, HasSubstr("is of another version of gpushare"));
  std::ofstream(rows) << "{";
  EXPECT_EQ(Run(ColocateAll({"--resume"})).exit_code, 2);
  // Without --resume the run starts again and leaves one complete set.
  EXPECT_EQ(Run(Colocate("5")).exit_code, 0);
  EXPECT_FALSE(fs::exists(out_ / "gpushare.partial"));
}

TEST_F(ProcessTest, ACaseOfARealDeviceOutlivesAKilledRun) {
  // Without BE: on a busy machine a BE app may do nothing in a short real time.
  std::string text = kScenario;
  for (size_t at = 0; (at = text.find("[\"sincos\"]", at)) != std::string::npos;) {
    text.replace(at, 10, "[]");
  }
  const std::string scenario = folder_ / "lc_only.json";
  std::ofstream(scenario) << text;
  const std::vector<std::string> arguments = {
      "colocate", scenario,   "--device", "null",     "--out", out_,      "--queries",
      "5",        "--rounds", "1",        "--policy", "fifo",  "--resume"};
  {
    Child child(arguments, folder_);
    ASSERT_TRUE(child.WaitUntil([&] { return fs::exists(out_ / "gpushare.partial/rows.json"); }))
        << Read(folder_ / "stderr");
    child.Signal(SIGKILL);
    EXPECT_EQ(child.Wait().signal, SIGKILL);
  }
  EXPECT_FALSE(fs::exists(out_ / "result.json"));
  const auto rows = nlohmann::json::parse(Read(out_ / "gpushare.partial/rows.json")).at("rows");
  const Ending ending = Run(arguments);
  ASSERT_EQ(ending.exit_code, 0) << ending.err;
  const auto result = nlohmann::json::parse(Read(out_ / "result.json"));
  EXPECT_FALSE(result.contains("partial"));
  ASSERT_EQ(result.at("runs").size(), 2u * (2 + 1));
  // The first case is the one of the killed run: wall-clock times do not repeat.
  EXPECT_EQ(result.at("runs")[0].at("lc")[0].at("p99_ns"), rows[0].at("lc")[0].at("p99_ns"));
  EXPECT_EQ(result.at("runs")[2].at("span_ns"), rows[2].at("span_ns"));
}

TEST_F(ProcessTest, TwoRunsDoNotWriteIntoOneFolder) {
  Child first(Colocate("100000"), folder_);
  ASSERT_TRUE(first.WaitUntil([&] { return fs::exists(out_ / "gpushare.partial/events"); }));
  fs::create_directory(folder_ / "second");
  const Ending second = Child(Colocate("5"), folder_ / "second").Wait();
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_THAT(second.err, HasSubstr("Another run writes into"));
}

TEST_F(ProcessTest, AnInterruptedCalibrationSaysHowToResume) {
  const std::string out = folder_ / "profile.json";
  std::ofstream(out) << "old";
  Child child({"calibrate", "--device", "sim", "--out", out}, folder_);
  ASSERT_TRUE(child.WaitUntil([&] { return fs::exists(out + ".partial"); }));
  child.Signal(SIGINT);
  const Ending ending = child.Wait();
  EXPECT_EQ(ending.exit_code, 130) << ending.err;
  EXPECT_THAT(ending.err, HasSubstr("--resume"));
  EXPECT_THAT(ending.err, HasSubstr(out));
  EXPECT_EQ(Read(out), "old");
}

}  // namespace
}  // namespace gpushare::tool
