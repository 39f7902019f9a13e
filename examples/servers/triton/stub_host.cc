// A stand-in for Triton Inference Server: defines what the backend uses of it, loads the backend as
// a library, and drives it through load, execute, unload and errors. It checks every answer, and
// that each request and each error was given back once.
//
//   example_triton_stub_host BACKEND
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "triton/core/tritonbackend.h"

struct TRITONSERVER_Error {
  TRITONSERVER_Error_Code code;
  std::string message;
};
struct TRITONSERVER_Message {
  std::string text;
};
struct TRITONBACKEND_Backend {
  void* state = nullptr;
};
struct TRITONBACKEND_Model {
  TRITONBACKEND_Backend* backend = nullptr;
  std::string name;
  std::string config;
  void* state = nullptr;
};
struct TRITONBACKEND_ModelInstance {
  TRITONBACKEND_Model* model = nullptr;
  int32_t device = 0;
  int64_t successes = 0;
  int64_t failures = 0;
};
struct TRITONBACKEND_Input {
  std::vector<std::vector<float>> buffers;
  TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
};
struct TRITONBACKEND_Output {
  std::string name;
  std::vector<char> bytes;
};
struct TRITONBACKEND_Request {
  TRITONBACKEND_Input input;
  int responses = 0;
  int releases = 0;
  std::string error;  // of its response; "": none
  std::vector<float> output;
  bool has_response_new = true;  // false: making a response fails
};
struct TRITONBACKEND_Response {
  TRITONBACKEND_Request* request = nullptr;
  TRITONBACKEND_Output output;
};

namespace {

int errors_alive = 0;
int messages_alive = 0;
int logged = 0;
uint32_t api_minor = TRITONBACKEND_API_VERSION_MINOR;
int failures = 0;

TRITONSERVER_Error* New(TRITONSERVER_Error_Code code, const char* message) {
  ++errors_alive;
  return std::make_unique<TRITONSERVER_Error>(TRITONSERVER_Error{code, message}).release();
}

}  // namespace

// --- what the server has -------------------------------------------------------------------------

extern "C" {

TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code,
                                                              const char* message) {
  return New(code, message);
}
TRITONBACKEND_ISPEC void TRITONSERVER_ErrorDelete(TRITONSERVER_Error* error) {
  --errors_alive;
  delete error;
}
TRITONBACKEND_ISPEC const char* TRITONSERVER_ErrorMessage(TRITONSERVER_Error* error) {
  return error->message.c_str();
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONSERVER_LogMessage(TRITONSERVER_LogLevel, const char*,
                                                                const int, const char* message) {
  ++logged;
  std::printf("  log: %s\n", message);
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONSERVER_MessageDelete(TRITONSERVER_Message* message) {
  --messages_alive;
  delete message;
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONSERVER_MessageSerializeToJson(
    TRITONSERVER_Message* message, const char** base, size_t* size_bytes) {
  *base = message->text.data();
  *size_bytes = message->text.size();
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_ApiVersion(uint32_t* major, uint32_t* minor) {
  *major = TRITONBACKEND_API_VERSION_MAJOR;
  *minor = api_minor;
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_BackendState(TRITONBACKEND_Backend* backend,
                                                                   void** state) {
  *state = backend->state;
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_BackendSetState(
    TRITONBACKEND_Backend* backend, void* state) {
  backend->state = state;
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_ModelName(TRITONBACKEND_Model* model,
                                                                const char** name) {
  *name = model->name.c_str();
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_ModelConfig(TRITONBACKEND_Model* model,
                                                                  const uint32_t version,
                                                                  TRITONSERVER_Message** config) {
  if (version != 1)
    return New(TRITONSERVER_ERROR_INVALID_ARG, "There is no such version of a configuration.");
  ++messages_alive;
  *config = std::make_unique<TRITONSERVER_Message>(TRITONSERVER_Message{model->config}).release();
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_ModelBackend(
    TRITONBACKEND_Model* model, TRITONBACKEND_Backend** backend) {
  *backend = model->backend;
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_ModelState(TRITONBACKEND_Model* model,
                                                                 void** state) {
  *state = model->state;
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_ModelSetState(TRITONBACKEND_Model* model,
                                                                    void* state) {
  model->state = state;
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_ModelInstanceKind(
    TRITONBACKEND_ModelInstance*, TRITONSERVER_InstanceGroupKind* kind) {
  *kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_ModelInstanceDeviceId(
    TRITONBACKEND_ModelInstance* instance, int32_t* device) {
  *device = instance->device;
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_ModelInstanceModel(
    TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Model** model) {
  *model = instance->model;
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request*, const bool success,
    const uint64_t start_ns, const uint64_t compute_start_ns, const uint64_t compute_end_ns,
    const uint64_t end_ns) {
  if (start_ns > compute_start_ns || compute_start_ns > compute_end_ns || compute_end_ns > end_ns)
    ++failures;
  ++(success ? instance->successes : instance->failures);
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_RequestInputByIndex(
    TRITONBACKEND_Request* request, const uint32_t index, TRITONBACKEND_Input** input) {
  if (index != 0) return New(TRITONSERVER_ERROR_INVALID_ARG, "There is one input.");
  *input = &request->input;
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_RequestRelease(TRITONBACKEND_Request* request,
                                                                     uint32_t flags) {
  if (flags != TRITONSERVER_REQUEST_RELEASE_ALL) ++failures;
  ++request->releases;
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_InputProperties(
    TRITONBACKEND_Input* input, const char**, TRITONSERVER_DataType* type, const int64_t**,
    uint32_t*, uint64_t* size_bytes, uint32_t* buffer_count) {
  *type = TRITONSERVER_TYPE_FP32;
  *size_bytes = 0;
  for (const auto& buffer : input->buffers) *size_bytes += buffer.size() * sizeof(float);
  *buffer_count = static_cast<uint32_t>(input->buffers.size());
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_InputBuffer(
    TRITONBACKEND_Input* input, const uint32_t index, const void** buffer, uint64_t* size_bytes,
    TRITONSERVER_MemoryType* memory, int64_t* memory_id) {
  *buffer = input->buffers[index].data();
  *size_bytes = input->buffers[index].size() * sizeof(float);
  *memory = input->memory;
  *memory_id = 0;
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_ResponseNew(TRITONBACKEND_Response** response,
                                                                  TRITONBACKEND_Request* request) {
  if (!request->has_response_new)
    return New(TRITONSERVER_ERROR_INTERNAL, "There is no memory for a response.");
  *response = std::make_unique<TRITONBACKEND_Response>().release();
  (*response)->request = request;
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(
    TRITONBACKEND_Response* response, TRITONBACKEND_Output** output, const char* name,
    const TRITONSERVER_DataType type, const int64_t* shape, const uint32_t dims_count) {
  if (type != TRITONSERVER_TYPE_FP32 || dims_count != 1 || shape[0] != 64) ++failures;
  response->output.name = name;
  *output = &response->output;
  return nullptr;
}
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output* output,
                                                                   void** buffer,
                                                                   const uint64_t size_bytes,
                                                                   TRITONSERVER_MemoryType* memory,
                                                                   int64_t*) {
  output->bytes.resize(size_bytes);
  *buffer = output->bytes.data();
  *memory = TRITONSERVER_MEMORY_CPU;
  return nullptr;
}
// Copies the error and frees the response, as the server does.
TRITONBACKEND_ISPEC TRITONSERVER_Error* TRITONBACKEND_ResponseSend(TRITONBACKEND_Response* response,
                                                                   const uint32_t flags,
                                                                   TRITONSERVER_Error* error) {
  if (flags != TRITONSERVER_RESPONSE_COMPLETE_FINAL) ++failures;
  TRITONBACKEND_Request& request = *response->request;
  ++request.responses;
  if (error != nullptr) request.error = error->message;
  if (error == nullptr && response->output.name == "OUTPUT") {
    request.output.resize(response->output.bytes.size() / sizeof(float));
    std::memcpy(request.output.data(), response->output.bytes.data(),
                response->output.bytes.size());
  }
  delete response;
  return nullptr;
}

}  // extern "C"

// --- the test ------------------------------------------------------------------------------------

namespace {

constexpr int kValues = 64;
constexpr int kShift = 8;  // of the model on a simulated device

template <class Function>
Function* Find(void* library, const char* name) {
  void* const symbol = dlsym(library, name);
  if (symbol != nullptr) return reinterpret_cast<Function*>(symbol);
  std::fprintf(stderr, "The backend has no function %s.\n", name);
  std::exit(1);
}

struct Api {
  decltype(&TRITONBACKEND_Initialize) initialize;
  decltype(&TRITONBACKEND_Finalize) finalize;
  decltype(&TRITONBACKEND_ModelInitialize) model_initialize;
  decltype(&TRITONBACKEND_ModelFinalize) model_finalize;
  decltype(&TRITONBACKEND_ModelInstanceInitialize) instance_initialize;
  decltype(&TRITONBACKEND_ModelInstanceFinalize) instance_finalize;
  decltype(&TRITONBACKEND_ModelInstanceExecute) execute;
};

Api Load(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(1);
  }
  Api api = {};
  api.initialize = Find<decltype(TRITONBACKEND_Initialize)>(library, "TRITONBACKEND_Initialize");
  api.finalize = Find<decltype(TRITONBACKEND_Finalize)>(library, "TRITONBACKEND_Finalize");
  api.model_initialize =
      Find<decltype(TRITONBACKEND_ModelInitialize)>(library, "TRITONBACKEND_ModelInitialize");
  api.model_finalize =
      Find<decltype(TRITONBACKEND_ModelFinalize)>(library, "TRITONBACKEND_ModelFinalize");
  api.instance_initialize = Find<decltype(TRITONBACKEND_ModelInstanceInitialize)>(
      library, "TRITONBACKEND_ModelInstanceInitialize");
  api.instance_finalize = Find<decltype(TRITONBACKEND_ModelInstanceFinalize)>(
      library, "TRITONBACKEND_ModelInstanceFinalize");
  api.execute = Find<decltype(TRITONBACKEND_ModelInstanceExecute)>(
      library, "TRITONBACKEND_ModelInstanceExecute");
  return api;
}

void Expect(bool condition, const std::string& what) {
  std::printf("%s: %s\n", condition ? "ok" : "FAILED", what.c_str());
  if (!condition) ++failures;
}

// The message of an error, which is deleted; "": none.
std::string Take(TRITONSERVER_Error* error) {
  if (error == nullptr) return "";
  std::string message = error->message;
  TRITONSERVER_ErrorDelete(error);
  return message;
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string LcConfig(const std::string& parameters, const std::string& dims = "[\"64\"]") {
  const std::string tensor = R"("data_type": "TYPE_FP32", "dims": )" + dims + "}]";
  return R"({"max_batch_size": 0, "input": [{"name": "INPUT", )" + tensor +
         R"(, "output": [{"name": "OUTPUT", )" + tensor +
         R"(, "parameters": {"gpushare_class": {"string_value": "lc"})" + parameters + "}}";
}

std::string Parameter(const std::string& name, const std::string& value) {
  return R"(, ")" + name + R"(": {"string_value": ")" + value + R"("})";
}

std::unique_ptr<TRITONBACKEND_Request> RequestOf(int number) {
  auto request = std::make_unique<TRITONBACKEND_Request>();
  // Two buffers, as a server may give them.
  request->input.buffers = {std::vector<float>(10), std::vector<float>(kValues - 10)};
  request->input.buffers[0][0] = static_cast<float>(number);
  request->input.buffers[1][0] = static_cast<float>(-number);
  return request;
}

// Requests with consecutive numbers.
std::vector<std::unique_ptr<TRITONBACKEND_Request>> RequestsOf(int first, int count) {
  std::vector<std::unique_ptr<TRITONBACKEND_Request>> requests;
  requests.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) requests.push_back(RequestOf(first + i));
  return requests;
}

bool IsAnswered(const TRITONBACKEND_Request& request, int number) {
  if (request.output.size() != kValues || !request.error.empty()) return false;
  return request.output[kShift] == static_cast<float>(number) &&
         request.output[(10 + kShift) % kValues] == static_cast<float>(-number);
}

void Execute(const Api& api, TRITONBACKEND_ModelInstance& instance,
             const std::vector<std::unique_ptr<TRITONBACKEND_Request>>& requests) {
  std::vector<TRITONBACKEND_Request*> pointers;
  pointers.reserve(requests.size());
  for (const auto& request : requests) pointers.push_back(request.get());
  const std::string error =
      Take(api.execute(&instance, pointers.data(), static_cast<uint32_t>(pointers.size())));
  Expect(error.empty(),
         "an execution of " + std::to_string(requests.size()) + " requests is taken");
  for (const auto& request : requests) {
    if (request->releases != 1 || request->responses != (request->has_response_new ? 1 : 0))
      ++failures;
  }
}

void RefusesBadModels(const Api& api, TRITONBACKEND_Backend& backend) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"{", "not JSON"},
      {R"({"parameters": {}})", "gpushare_class"},
      {LcConfig(Parameter("gpushare_p99_bound", "0.5")), "gpushare_p99_bound"},
      {LcConfig(Parameter("gpushare_p99_bound", "five")), "'five'"},
      {LcConfig(Parameter("gpushare_p99_bund", "1.1")), "gpushare_p99_bund"},
      {LcConfig(Parameter("gpushare_weight", "2")), "gpushare_weight"},
      {LcConfig("", "[\"32\"]"), "dims"},
  };
  for (const auto& [config, part] : bad) {
    TRITONBACKEND_Model model = {&backend, "bad", config};
    const std::string error = Take(api.model_initialize(&model));
    Expect(Has(error, part) && model.state == nullptr, "a bad model is refused: " + error);
  }
}

// An LC model beside a BE model, from load to unload. Twice, so that names are free again.
void Serves(const Api& api, TRITONBACKEND_Backend& backend) {
  TRITONBACKEND_Model be = {&backend, "training",
                            R"({"parameters": {"gpushare_class": {"string_value": "be"})" +
                                Parameter("gpushare_weight", "2") + "}}"};
  TRITONBACKEND_Model lc = {
      &backend, "service",
      LcConfig(Parameter("gpushare_p99_bound", "1.1") + Parameter("gpushare_target_us", "5000"))};
  Expect(Take(api.model_initialize(&be)).empty(), "a BE model is loaded");
  Expect(Take(api.model_initialize(&lc)).empty(), "an LC model is loaded");
  TRITONBACKEND_Model again = {&backend, "service", lc.config};
  Expect(Has(Take(api.model_initialize(&again)), "ALREADY_EXISTS"),
         "a second model of that name is refused");
  TRITONBACKEND_ModelInstance instance = {&lc};
  TRITONBACKEND_ModelInstance of_be = {&be};
  TRITONBACKEND_ModelInstance elsewhere = {&lc, 3};
  Expect(Take(api.instance_initialize(&instance)).empty(), "an instance is made");
  Expect(Take(api.instance_initialize(&of_be)).empty(), "an instance of the BE model is made");
  Expect(Has(Take(api.instance_initialize(&elsewhere)), "GPU 3"),
         "an instance on another GPU is refused");

  int right = 0;
  for (int batch = 0; batch < 20; ++batch) {
    const auto requests = RequestsOf(1 + batch * 4, 4);
    Execute(api, instance, requests);
    for (int i = 0; i < 4; ++i)
      right += IsAnswered(*requests[static_cast<size_t>(i)], 1 + batch * 4 + i) ? 1 : 0;
  }
  Expect(right == 80 && instance.successes == 80,
         std::to_string(right) + " of 80 answers are right");

  const auto mixed = RequestsOf(1, 4);
  mixed[0]->input.buffers.pop_back();
  mixed[1]->input.memory = TRITONSERVER_MEMORY_GPU;
  mixed[2]->has_response_new = false;
  Execute(api, instance, mixed);
  Expect(Has(mixed[0]->error, "40 bytes"), "a short input is refused: " + mixed[0]->error);
  Expect(Has(mixed[1]->error, "GPU"), "an input on the GPU is refused: " + mixed[1]->error);
  Expect(mixed[2]->releases == 1, "a request without a response is given back");
  Expect(IsAnswered(*mixed[3], 4), "the request beside them is answered");
  Expect(instance.failures == 3, "three failures are reported");

  const auto many = RequestsOf(1, 70);  // more than the queue of 64 holds
  Execute(api, instance, many);
  int refused = 0;
  for (const auto& request : many) refused += Has(request->error, "full") ? 1 : 0;
  Expect(refused == 6, std::to_string(refused) + " of 70 requests are refused by a queue of 64");

  const auto wrong = RequestsOf(1, 1);
  Execute(api, of_be, wrong);
  Expect(Has(wrong[0]->error, "best-effort"), "a request to the BE model is refused");

  Expect(
      Take(api.instance_finalize(&instance)).empty() && Take(api.instance_finalize(&of_be)).empty(),
      "instances end");
  Expect(Take(api.model_finalize(&lc)).empty() && Take(api.model_finalize(&be)).empty(),
         "models are unloaded");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: example_triton_stub_host BACKEND\n");
    return 2;
  }
  const Api api = Load(argv[1]);
  TRITONBACKEND_Backend backend;
  --api_minor;
  Expect(Has(Take(api.initialize(&backend)), "older") && backend.state == nullptr,
         "an older server is refused");
  ++api_minor;
  Expect(Take(api.initialize(&backend)).empty(), "the backend is loaded");
  RefusesBadModels(api, backend);
  Serves(api, backend);
  Serves(api, backend);
  Expect(Take(api.finalize(&backend)).empty(), "the backend is unloaded");
  Expect(errors_alive == 0 && messages_alive == 0, "every error and message was deleted");
  Expect(logged == 2, "what no response could carry was logged");
  return failures == 0 ? 0 : 1;
}
