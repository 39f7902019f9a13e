#include "benchmarks/faults/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "benchmarks/harness/failure.h"
#include "benchmarks/harness/gpu_device.h"

namespace gpushare::benchmarks {
namespace {

constexpr int kPollMs = 20;
constexpr size_t kErrorsMax = 4000;

[[noreturn]] void Become(const std::string& name, int output, int errors) {
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  execl("/proc/self/exe", "faults_benchmark", "--run", name.c_str(), nullptr);
  _exit(127);
}

// Appends what is there. False: the other end is closed.
bool ReadSome(int fd, std::string& text) {
  char buffer[4096];
  for (;;) {
    const ssize_t count = read(fd, buffer, sizeof buffer);
    if (count < 0) return true;
    if (count == 0) return false;
    text.append(buffer, static_cast<size_t>(count));
  }
}

struct Pipe {
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) Fail("There is no pipe left.");
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    close(ends[0]);
    if (ends[1] >= 0) close(ends[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void CloseWriter() {
    close(ends[1]);
    ends[1] = -1;
  }
  int ends[2] = {-1, -1};
};

}  // namespace

ChildResult RunChild(const std::string& name, int seconds_max) {
  ChildResult result;
  Pipe output;
  Pipe errors;
  const double begin = NowSeconds();
  const pid_t child = fork();
  if (child < 0) Fail("The process cannot fork.");
  if (child == 0) Become(name, output.ends[1], errors.ends[1]);
  output.CloseWriter();
  errors.CloseWriter();
  int status = 0;
  for (;;) {
    pollfd ready[] = {{output.ends[0], POLLIN, 0}, {errors.ends[0], POLLIN, 0}};
    poll(ready, 2, kPollMs);
    ReadSome(output.ends[0], result.output);
    ReadSome(errors.ends[0], result.errors);
    if (waitpid(child, &status, WNOHANG) == child) break;
    if (!result.cut_off && NowSeconds() - begin > seconds_max) {
      result.cut_off = true;
      kill(child, SIGKILL);
    }
  }
  ReadSome(output.ends[0], result.output);
  ReadSome(errors.ends[0], result.errors);
  result.seconds = NowSeconds() - begin;
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  if (result.errors.size() > kErrorsMax) {
    result.errors.erase(0, result.errors.size() - kErrorsMax);
  }
  return result;
}

}  // namespace gpushare::benchmarks
