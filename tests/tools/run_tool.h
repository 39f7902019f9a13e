// Runs the command inside a test, and reads the files that it wrote. Threads: one.

#ifndef GPUSHARE_TESTS_TOOLS_RUN_TOOL_H_
#define GPUSHARE_TESTS_TOOLS_RUN_TOOL_H_

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tools/gpushare/command/command.h"

namespace gpushare::tool {

// How the command ended, and what it printed.
struct Answer {
  int code = 0;
  std::string out;
  std::string err;
};

// Runs the command with these arguments, as a user would.
inline Answer RunTool(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"gpushare"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Answer answer;
  answer.code = RunCommand(static_cast<int>(argv.size()), argv.data());
  std::fflush(stdout);
  answer.out = ::testing::internal::GetCapturedStdout();
  answer.err = ::testing::internal::GetCapturedStderr();
  return answer;
}

// All bytes of the file.
inline std::string Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace gpushare::tool

#endif  // GPUSHARE_TESTS_TOOLS_RUN_TOOL_H_
