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
#include <charconv>
#include <chrono>
#include <cmath>
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

#include "examples/servers/model/be_job.h"
#include "examples/servers/model/lc_model.h"

namespace gpushare::example {
namespace {

using nlohmann::json;

constexpr int kBacklog = 1024;
constexpr size_t kBodyBytesMax = 16'384;
constexpr int kKeepAliveSeconds = 5;
constexpr int64_t kShutdownNs = 10'000'000'000;

struct Options {
  std::string host = "127.0.0.1";
  int port = 8080;
  int connections = 128;
  int drain_ms = 500;
  std::string device;  // as GPUSHARE_DEVICE; "": the environment's
  bool best_effort = true;
  LcModelOptions model;
};

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

std::vector<float> Padded(std::vector<float> values) {
  if (values.empty() || values.size() > kValues) {
    throw std::invalid_argument("The input has " + std::to_string(values.size()) +
                                " numbers, and must have 1 to " + std::to_string(kValues) + ".");
  }
  for (const float value : values) {
    if (!std::isfinite(value))
      throw std::invalid_argument("The input has a number that float32 does not hold.");
  }
  values.resize(kValues);
  return values;
}

std::vector<float> ParseText(const std::string& body) {
  std::vector<float> values;
  const char* at = body.data();
  const char* const end = at + body.size();
  for (;;) {
    while (at != end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) ++at;
    if (at == end) return values;
    float value = 0;
    const auto [next, code] = std::from_chars(at, end, value);
    if (code != std::errc()) throw std::invalid_argument("The body is no list of numbers.");
    values.push_back(value);
    at = next;
  }
}

bool IsJson(const httplib::Request& request) {
  return request.get_header_value("Content-Type").rfind("application/json", 0) == 0;
}

std::vector<float> ParseBody(const httplib::Request& request) {
  if (!IsJson(request)) return Padded(ParseText(request.body));
  const json body = json::parse(request.body, nullptr, false);
  if (body.is_discarded() || !body.is_object() || !body.contains("input") ||
      !body["input"].is_array()) {
    throw std::invalid_argument("The body is not JSON of the form {\"input\": [1, 2]}.");
  }
  std::vector<float> values;
  for (const json& value : body["input"]) {
    if (!value.is_number()) throw std::invalid_argument("The input has a value that is no number.");
    values.push_back(value.get<float>());
  }
  return Padded(std::move(values));
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
      values = ParseBody(request);
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

constexpr const char* kUsage =
    "example_http_server [--host ADDRESS] [--port N, 0: any] [--connections N] [--queue N] "
    "[--drain-ms N]\n"
    "                    [--device NAME] [--p99-bound X] [--graph-us N] [--no-be]\n";

int Number(const std::string& name, const std::string& text, int least, int most) {
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc() && end == text.data() + text.size() && value >= least && value <= most)
    return value;
  throw std::invalid_argument(name + " is '" + text + "', and must be a number from " +
                              std::to_string(least) + " to " + std::to_string(most) + ".");
}

double Real(const std::string& name, const std::string& text, double least, double most) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc() && end == text.data() + text.size() && value >= least && value <= most)
    return value;
  throw std::invalid_argument(name + " is '" + text + "', and must be a number from " +
                              json(least).dump() + " to " + json(most).dump() + ".");
}

Options ParseOptions(const std::vector<std::string>& arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    if (name == "--no-be") {
      options.best_effort = false;
      continue;
    }
    if (i + 1 == arguments.size())
      throw std::invalid_argument("There is no option '" + name + "', or it lacks a value.");
    const std::string& value = arguments[++i];
    if (name == "--host")
      options.host = value;
    else if (name == "--port")
      options.port = Number(name, value, 0, 65'535);
    else if (name == "--connections")
      options.connections = Number(name, value, 1, 4'096);
    else if (name == "--queue")
      options.model.queries_max = Number(name, value, 0, 1'024);
    else if (name == "--drain-ms")
      options.drain_ms = Number(name, value, 0, 60'000);
    else if (name == "--device")
      options.device = value;
    else if (name == "--p99-bound")
      options.model.p99_bound = Real(name, value, 1, 100);
    else if (name == "--graph-us")
      options.model.graph_ns = Number(name, value, 10, 100'000) * int64_t{1'000};
    else
      throw std::invalid_argument("There is no option '" + name + "'.");
  }
  return options;
}

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
