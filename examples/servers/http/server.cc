// A latency-critical (LC) model behind HTTP, with best-effort (BE) work on the same GPU, on
// cpp-httplib.
//
//   POST /infer    up to 64 numbers: {"input": [1, 2]} as application/json, else "1 2" as text.
//                  200: {"output": [...], "query_us": 231.4, "simulated": false}, or the output as
//                  text; 400 no such numbers; 413 too long; 503 the queue is full; 500 the device
//                  failed
//   GET /healthz   200; 503 while the server drains or once the device is lost
//   GET /metrics   OpenMetrics text of the library, and the server's own counter
//
// Bounds: one thread a connection, --connections of them; further connections wait in the kernel's
// backlog. At most --queue queries are on the device or wait for it; further ones get 503.
//
// SIGTERM: for --drain-ms every answer carries "Connection: close" and /healthz says 503, so that
// clients and balancers go elsewhere; requests are still answered. Then no connection is accepted,
// open ones end, and every accepted task runs. A request that a client sent before it could know of
// the drain is answered.
#include <httplib.h>
#include <pthread.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "examples/servers/http/input.h"
#include "examples/servers/http/options.h"
#include "examples/servers/model/be_job.h"
#include "examples/servers/model/lc_model.h"

namespace gpushare::example {
namespace {

using nlohmann::json;

constexpr int kBacklog = 1024;
constexpr size_t kBodyBytesMax = 16'384;
constexpr int kKeepAliveSeconds = 5;
constexpr int64_t kShutdownNs = 10'000'000'000;

Runtime MakeRuntime(const std::string& device) {
  RuntimeOptions options;
  if (!device.empty()) options.device = device.c_str();
  return Runtime::Create(options).value();
}

// The threads of the connections. The library's own pool keeps connections without a bound while
// its threads are busy; this one stops accepting.
class Connections : public httplib::ThreadPool {
 public:
  explicit Connections(int threads)
      : httplib::ThreadPool(static_cast<size_t>(threads)), free_(threads) {}
  void enqueue(std::function<void()> serve) override {
    free_.acquire();
    httplib::ThreadPool::enqueue([this, serve = std::move(serve)] {
      serve();
      free_.release();
    });
  }

 private:
  std::counting_semaphore<> free_;
};

bool IsJson(const httplib::Request& request) {
  return request.get_header_value("Content-Type").rfind("application/json", 0) == 0;
}

class Server {
 public:
  explicit Server(const Options& options)
      : options_(options),
        runtime_(MakeRuntime(options.device)),
        simulated_(runtime_.Device().value().simulated == 1),
        model_(runtime_, options.model) {
    if (options.best_effort) job_ = std::make_unique<BeJob>(runtime_, "background", 0);
    http_.new_task_queue = [this] { return new Connections(options_.connections); };
    http_.set_tcp_nodelay(true);
    http_.set_payload_max_length(kBodyBytesMax);
    http_.set_keep_alive_max_count(static_cast<size_t>(1) << 40U);
    http_.set_keep_alive_timeout(kKeepAliveSeconds);
    http_.set_socket_options([this](int socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
      listening_ = socket;
    });
    http_.set_post_routing_handler([this](const auto&, httplib::Response& response) {
      if (draining_.load()) response.set_header("Connection", "close");
    });
    http_.set_logger([this](const auto&, const httplib::Response& response) {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++answers_[response.status];
    });
    http_.Post("/infer", [this](const auto& request, auto& response) { Infer(request, response); });
    http_.Get("/healthz", [this](const auto&, auto& response) { Health(response); });
    http_.Get("/metrics", [this](const auto&, auto& response) {
      response.set_content(Metrics(), "application/openmetrics-text; version=1.0.0; charset=utf-8");
    });
  }

  // Serves until SIGTERM or SIGINT, which must be blocked in all threads. The exit code of the
  // process.
  int Run(const sigset_t& signals) {
    const int port = options_.port == 0 ? http_.bind_to_any_port(options_.host)
                     : http_.bind_to_port(options_.host, options_.port) ? options_.port
                                                                        : -1;
    if (port < 0)
      throw std::runtime_error("The port " + std::to_string(options_.port) + " cannot be bound.");
    listen(listening_, kBacklog);  // the library asks for a backlog of 5
    std::thread acceptor([this] { http_.listen_after_bind(); });
    std::printf("{\"port\": %d, \"simulated\": %s, \"shift\": %d}\n", port,
                simulated_ ? "true" : "false", model_.Shift());
    std::fflush(stdout);
    int signal = 0;
    sigwait(&signals, &signal);
    draining_.store(true);
    std::this_thread::sleep_for(std::chrono::milliseconds(options_.drain_ms));
    http_.stop();
    acceptor.join();  // after the last connection
    if (job_ != nullptr) job_->BeginStop();
    const bool whole = runtime_.Shutdown(runtime_.NowNs() + kShutdownNs).ok();
    std::printf("%s\n", Summary(whole).dump().c_str());
    return whole ? 0 : 1;
  }

 private:
  void Infer(const httplib::Request& request, httplib::Response& response) {
    std::vector<float> values;
    try {
      values = ParseInput(request.body, IsJson(request));
    } catch (const std::invalid_argument& error) {
      return Refuse(response, 400, error.what());
    }
    const Answer answer = model_.Finish(model_.Begin(values));
    if (!answer.status.ok()) {
      const bool full = answer.status.code() == GPUSHARE_RESOURCE_EXHAUSTED;
      if (full) response.set_header("Retry-After", "1");
      return Refuse(response, full ? 503 : 500, answer.status.message());
    }
    const json output = answer.output;
    if (IsJson(request)) {
      const double query_us = static_cast<double>(answer.query_ns) / 1e3;
      const json body = {{"output", output}, {"query_us", query_us}, {"simulated", simulated_}};
      return response.set_content(body.dump(), "application/json");
    }
    std::string text;
    for (const json& value : output) text += value.dump() + " ";
    text.back() = '\n';
    response.set_content(text, "text/plain");
  }

  void Health(httplib::Response& response) {
    Result<RuntimeStats> stats = runtime_.Stats();
    if (!stats.ok() || stats->device_lost == 1) return Refuse(response, 503, "The device is lost.");
    if (draining_.load()) return Refuse(response, 503, "The server drains.");
    response.set_content("ok\n", "text/plain");
  }

  static void Refuse(httplib::Response& response, int status, const std::string& sentence) {
    response.status = status;
    response.set_content(json({{"error", sentence}}).dump(), "application/json");
  }

  std::string Metrics() {
    std::string text = runtime_.Metrics().value();
    const size_t end = text.rfind("# EOF");
    if (end != std::string::npos) text.erase(end);
    text += "# TYPE http_answers counter\n";
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [status, count] : answers_) {
      text += "http_answers_total{code=\"" + std::to_string(status) + "\"} " +
              std::to_string(count) + "\n";
    }
    return text + "# EOF\n";
  }

  json Summary(bool whole) {
    const AppStats lc = model_.app().Stats().value();
    const AppStats be = job_ == nullptr ? AppStats() : job_->app().Stats().value();
    json answers = json::object();
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [status, count] : answers_) answers[std::to_string(status)] = count;
    return {
        {"answers", answers},
        {"whole", whole},
        {"lc", {{"submitted", lc.submitted}, {"completed", lc.completed}, {"failed", lc.failed}}},
        {"be",
         {{"submitted", be.submitted}, {"completed", be.completed}, {"evictions", be.evictions}}}};
  }

  const Options options_;
  Runtime runtime_;
  const bool simulated_;
  LcModel model_;
  std::unique_ptr<BeJob> job_;  // null: no BE work
  httplib::Server http_;
  int listening_ = -1;
  std::atomic<bool> draining_{false};
  std::mutex mutex_;  // guards answers_
  std::map<int, int64_t> answers_;
};

}  // namespace
}  // namespace gpushare::example

int main(int argc, char** argv) {
  // Before any thread starts, since each thread inherits the mask.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    return gpushare::example::Server(gpushare::example::ParseOptions(arguments)).Run(signals);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s\n%s", error.what(), gpushare::example::kUsage);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
