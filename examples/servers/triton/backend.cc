// A backend for Triton Inference Server: latency-critical (LC) models beside best-effort (BE) ones.
//
// The backend has one gpushare runtime for each GPU, which the first model on it creates. Each
// model is an app with the class and the bounds of its configuration. A BE model has no requests:
// its work starts when the model is loaded and ends when it is unloaded.
//
// Threads: the server calls the functions of one model or instance one at a time, and those of
// different ones at once.
#include <chrono>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "examples/servers/model/be_job.h"
#include "examples/servers/model/lc_model.h"
#include "examples/servers/triton/model_config.h"
#include "triton/core/tritonbackend.h"

namespace gpushare::example {
namespace {

using ServerError = TRITONSERVER_Error;

constexpr int64_t kShutdownNs = 10'000'000'000;

// An error of the server, thrown on.
struct Failure {
  ServerError* error;
};

void Check(ServerError* error) {
  if (error != nullptr) throw Failure{error};
}

// Runs one function of the backend, and returns what it throws as an error of the server.
template <class Function>
ServerError* Guard(Function&& function) {
  try {
    function();
    return nullptr;
  } catch (const Failure& failure) {
    return failure.error;
  } catch (const std::invalid_argument& error) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, error.what());
  } catch (const std::exception& error) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, error.what());
  }
}

uint64_t NowNs() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                               std::chrono::nanoseconds(1));
}

struct Backend {
  std::mutex mutex;  // guards runtimes, and lets one model at a time register its kernels
  std::map<int64_t, Runtime> runtimes;

  // Requires the mutex.
  const Runtime& RuntimeOf(int64_t ordinal) {
    const auto found = runtimes.find(ordinal);
    if (found != runtimes.end()) return found->second;
    RuntimeOptions options;  // the device: GPUSHARE_DEVICE, else the GPU if there is one
    options.device_ordinal = static_cast<int32_t>(ordinal);
    return runtimes.emplace(ordinal, Runtime::Create(options).value()).first->second;
  }
};

struct Model {
  ModelConfig config;
  std::unique_ptr<LcModel> lc;  // of the two one is not null
  std::unique_ptr<BeJob> be;
};

std::string ConfigOf(TRITONBACKEND_Model* model) {
  TRITONSERVER_Message* message = nullptr;
  Check(TRITONBACKEND_ModelConfig(model, 1, &message));
  const char* text = nullptr;
  size_t size = 0;
  ServerError* const error = TRITONSERVER_MessageSerializeToJson(message, &text, &size);
  std::string copy = error == nullptr ? std::string(text, size) : std::string();
  Check(TRITONSERVER_MessageDelete(message));
  Check(error);
  return copy;
}

std::unique_ptr<Model> MakeModel(Backend& backend, const std::string& name,
                                 const std::string& config) {
  auto model = std::make_unique<Model>();
  model->config = ParseModelConfig(config);
  const std::lock_guard<std::mutex> lock(backend.mutex);
  const Runtime& runtime = backend.RuntimeOf(model->config.device_ordinal);
  if (model->config.best_effort) {
    model->be = std::make_unique<BeJob>(runtime, name, model->config.weight);
    return model;
  }
  LcModelOptions options;
  options.name = name;
  options.p99_bound = model->config.p99_bound;
  options.target_ns = model->config.target_us * 1'000;
  options.graph_ns = model->config.graph_us * 1'000;
  options.queries_max = static_cast<int>(model->config.queries_max);
  model->lc = std::make_unique<LcModel>(runtime, options);
  return model;
}

Model& ModelOf(TRITONBACKEND_ModelInstance* instance) {
  TRITONBACKEND_Model* model = nullptr;
  void* state = nullptr;
  Check(TRITONBACKEND_ModelInstanceModel(instance, &model));
  Check(TRITONBACKEND_ModelState(model, &state));
  return *static_cast<Model*>(state);
}

// The numbers of a request's one input, which may lie in several buffers.
std::vector<float> ReadInput(TRITONBACKEND_Request* request) {
  TRITONBACKEND_Input* input = nullptr;
  Check(TRITONBACKEND_RequestInputByIndex(request, 0, &input));
  TRITONSERVER_DataType type = TRITONSERVER_TYPE_FP32;
  uint64_t bytes = 0;
  uint32_t buffers = 0;
  Check(TRITONBACKEND_InputProperties(input, nullptr, &type, nullptr, nullptr, &bytes, &buffers));
  std::vector<float> values(kValues);
  const uint64_t wanted = values.size() * sizeof(float);
  if (type != TRITONSERVER_TYPE_FP32 || bytes != wanted) {
    throw std::invalid_argument("The input has " + std::to_string(bytes) +
                                " bytes, and must have " + std::to_string(wanted) + ", of FP32.");
  }
  uint64_t filled = 0;
  for (uint32_t i = 0; i < buffers; ++i) {
    const void* buffer = nullptr;
    uint64_t size = 0;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t memory_id = 0;
    Check(TRITONBACKEND_InputBuffer(input, i, &buffer, &size, &memory, &memory_id));
    if (memory == TRITONSERVER_MEMORY_GPU)
      throw std::invalid_argument("The input lies in memory of the GPU.");
    if (size > wanted - filled)
      throw std::invalid_argument("The buffers of the input are longer than the input.");
    std::memcpy(reinterpret_cast<char*>(values.data()) + filled, buffer, size);
    filled += size;
  }
  if (filled != wanted)
    throw std::invalid_argument("The buffers of the input are shorter than the input.");
  return values;
}

// One request of an execution.
struct Execution {
  TRITONBACKEND_Request* request = nullptr;
  TRITONBACKEND_Response* response = nullptr;  // null: it could not be made
  LcModel::Pending query;
  bool begun = false;
  ServerError* error = nullptr;
  uint64_t start_ns = 0;
};

Execution Begin(Model& model, TRITONBACKEND_Request* request) {
  Execution execution;
  execution.request = request;
  execution.start_ns = NowNs();
  execution.error = Guard([&] {
    Check(TRITONBACKEND_ResponseNew(&execution.response, request));
    if (model.lc == nullptr) {
      Check(TRITONSERVER_ErrorNew(
          TRITONSERVER_ERROR_UNSUPPORTED,
          "The model is best-effort: it runs while it is loaded, and takes no requests."));
    }
    execution.query = model.lc->Begin(ReadInput(request));
    execution.begun = true;
  });
  return execution;
}

void WriteOutput(const Model& model, TRITONBACKEND_Response* response, const Answer& answer) {
  if (!answer.status.ok()) {
    const bool full = answer.status.code() == GPUSHARE_RESOURCE_EXHAUSTED;
    Check(TRITONSERVER_ErrorNew(full ? TRITONSERVER_ERROR_UNAVAILABLE : TRITONSERVER_ERROR_INTERNAL,
                                answer.status.message().c_str()));
  }
  const int64_t shape[] = {kValues};
  const uint64_t bytes = answer.output.size() * sizeof(float);
  TRITONBACKEND_Output* output = nullptr;
  void* buffer = nullptr;
  TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
  int64_t memory_id = 0;
  Check(TRITONBACKEND_ResponseOutput(response, &output, model.config.output.c_str(),
                                     TRITONSERVER_TYPE_FP32, shape, 1));
  Check(TRITONBACKEND_OutputBuffer(output, &buffer, bytes, &memory, &memory_id));
  if (memory == TRITONSERVER_MEMORY_GPU)
    throw std::invalid_argument("The output lies in memory of the GPU.");
  std::memcpy(buffer, answer.output.data(), bytes);
}

void LogAndDelete(ServerError* error) {
  if (error == nullptr) return;
  if (ServerError* logged = TRITONSERVER_LogMessage(TRITONSERVER_LOG_ERROR, __FILE__, __LINE__,
                                                    TRITONSERVER_ErrorMessage(error))) {
    TRITONSERVER_ErrorDelete(logged);
  }
  TRITONSERVER_ErrorDelete(error);
}

// Sends the response and gives the request back, whatever happened.
void Finish(Model& model, TRITONBACKEND_ModelInstance* instance, Execution& execution) {
  if (execution.begun) {
    const Answer answer = model.lc->Finish(execution.query);
    execution.error = Guard([&] { WriteOutput(model, execution.response, answer); });
  }
  const uint64_t end_ns = NowNs();
  const bool success = execution.error == nullptr;
  if (execution.response != nullptr) {
    LogAndDelete(TRITONBACKEND_ResponseSend(execution.response,
                                            TRITONSERVER_RESPONSE_COMPLETE_FINAL, execution.error));
    if (!success) TRITONSERVER_ErrorDelete(execution.error);  // the response has a copy
  } else {
    LogAndDelete(execution.error);
  }
  LogAndDelete(TRITONBACKEND_ModelInstanceReportStatistics(instance, execution.request, success,
                                                           execution.start_ns, execution.start_ns,
                                                           end_ns, NowNs()));
  LogAndDelete(TRITONBACKEND_RequestRelease(execution.request, TRITONSERVER_REQUEST_RELEASE_ALL));
}

}  // namespace
}  // namespace gpushare::example

using gpushare::example::Backend;
using gpushare::example::Check;
using gpushare::example::Execution;
using gpushare::example::Guard;
using gpushare::example::Model;
using gpushare::example::ServerError;

extern "C" {

TRITONBACKEND_ISPEC ServerError* TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend) {
  return Guard([&] {
    uint32_t major = 0;
    uint32_t minor = 0;
    Check(TRITONBACKEND_ApiVersion(&major, &minor));
    if (major != TRITONBACKEND_API_VERSION_MAJOR || minor < TRITONBACKEND_API_VERSION_MINOR) {
      Check(TRITONSERVER_ErrorNew(
          TRITONSERVER_ERROR_UNSUPPORTED,
          "The server is older than the interface that the backend was built for."));
    }
    auto state = std::make_unique<Backend>();
    Check(TRITONBACKEND_BackendSetState(backend, state.get()));
    static_cast<void>(state.release());
  });
}

TRITONBACKEND_ISPEC ServerError* TRITONBACKEND_Finalize(TRITONBACKEND_Backend* backend) {
  return Guard([&] {
    void* state = nullptr;
    Check(TRITONBACKEND_BackendState(backend, &state));
    const std::unique_ptr<Backend> owned(static_cast<Backend*>(state));
    for (const auto& [ordinal, runtime] : owned->runtimes) {
      const gpushare::Status status =
          runtime.Shutdown(runtime.NowNs() + gpushare::example::kShutdownNs);
      if (!status.ok()) throw gpushare::Error(status);
    }
  });
}

TRITONBACKEND_ISPEC ServerError* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  return Guard([&] {
    const char* name = nullptr;
    TRITONBACKEND_Backend* backend = nullptr;
    void* state = nullptr;
    Check(TRITONBACKEND_ModelName(model, &name));
    Check(TRITONBACKEND_ModelBackend(model, &backend));
    Check(TRITONBACKEND_BackendState(backend, &state));
    auto made = gpushare::example::MakeModel(*static_cast<Backend*>(state), name,
                                             gpushare::example::ConfigOf(model));
    Check(TRITONBACKEND_ModelSetState(model, made.get()));
    static_cast<void>(made.release());
  });
}

TRITONBACKEND_ISPEC ServerError* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* model) {
  return Guard([&] {
    void* state = nullptr;
    Check(TRITONBACKEND_ModelState(model, &state));
    delete static_cast<Model*>(state);
  });
}

TRITONBACKEND_ISPEC ServerError* TRITONBACKEND_ModelInstanceInitialize(
    TRITONBACKEND_ModelInstance* instance) {
  return Guard([&] {
    TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
    int32_t device = 0;
    Check(TRITONBACKEND_ModelInstanceKind(instance, &kind));
    Check(TRITONBACKEND_ModelInstanceDeviceId(instance, &device));
    const int64_t ordinal = gpushare::example::ModelOf(instance).config.device_ordinal;
    if (kind == TRITONSERVER_INSTANCEGROUPKIND_GPU && device != ordinal) {
      throw std::invalid_argument("The instance is on GPU " + std::to_string(device) +
                                  ", and gpushare_device_ordinal of its model is " +
                                  std::to_string(ordinal) + ".");
    }
  });
}

TRITONBACKEND_ISPEC ServerError* TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance*) {
  return nullptr;
}

// After an error the requests are the server's still; else each of them has been given back.
TRITONBACKEND_ISPEC ServerError* TRITONBACKEND_ModelInstanceExecute(
    TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request** requests,
    const uint32_t request_count) {
  Model* model = nullptr;
  std::vector<Execution> executions;
  ServerError* const error = Guard([&] {
    model = &gpushare::example::ModelOf(instance);
    executions.reserve(request_count);
  });
  if (error != nullptr) return error;
  for (uint32_t i = 0; i < request_count; ++i)
    executions.push_back(gpushare::example::Begin(*model, requests[i]));
  for (Execution& execution : executions) gpushare::example::Finish(*model, instance, execution);
  return nullptr;
}

}  // extern "C"
