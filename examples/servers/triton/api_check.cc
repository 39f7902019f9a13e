// Holds the headers that are included to the types and values that the backend was written for. It
// is part of the backend, so that headers which differ fail the build: our declarations and a
// server's own.
#include <cstdint>
#include <type_traits>

#include "triton/core/tritonbackend.h"

namespace {

using Error = TRITONSERVER_Error;

template <class Wanted, class Function>
constexpr bool Is(Function*) {
  return std::is_same_v<Wanted, Function>;
}

static_assert(TRITONBACKEND_API_VERSION_MAJOR == 1 && TRITONBACKEND_API_VERSION_MINOR >= 19);
static_assert(TRITONSERVER_TYPE_FP32 == 11);
static_assert(TRITONSERVER_MEMORY_CPU == 0 && TRITONSERVER_MEMORY_CPU_PINNED == 1 &&
              TRITONSERVER_MEMORY_GPU == 2);
static_assert(TRITONSERVER_ERROR_INTERNAL == 1 && TRITONSERVER_ERROR_INVALID_ARG == 3);
static_assert(TRITONSERVER_ERROR_UNAVAILABLE == 4 && TRITONSERVER_ERROR_UNSUPPORTED == 5);
static_assert(TRITONSERVER_LOG_ERROR == 2 && TRITONSERVER_INSTANCEGROUPKIND_GPU == 2);
static_assert(TRITONSERVER_REQUEST_RELEASE_ALL == 1 && TRITONSERVER_RESPONSE_COMPLETE_FINAL == 1);

static_assert(Is<Error*(TRITONSERVER_Error_Code, const char*)>(TRITONSERVER_ErrorNew));
static_assert(Is<void(Error*)>(TRITONSERVER_ErrorDelete));
static_assert(Is<const char*(Error*)>(TRITONSERVER_ErrorMessage));
static_assert(
    Is<Error*(TRITONSERVER_LogLevel, const char*, int, const char*)>(TRITONSERVER_LogMessage));
static_assert(Is<Error*(TRITONSERVER_Message*)>(TRITONSERVER_MessageDelete));
static_assert(
    Is<Error*(TRITONSERVER_Message*, const char**, size_t*)>(TRITONSERVER_MessageSerializeToJson));

static_assert(Is<Error*(uint32_t*, uint32_t*)>(TRITONBACKEND_ApiVersion));
static_assert(Is<Error*(TRITONBACKEND_Backend*, void**)>(TRITONBACKEND_BackendState));
static_assert(Is<Error*(TRITONBACKEND_Backend*, void*)>(TRITONBACKEND_BackendSetState));
static_assert(Is<Error*(TRITONBACKEND_Model*, const char**)>(TRITONBACKEND_ModelName));
static_assert(
    Is<Error*(TRITONBACKEND_Model*, uint32_t, TRITONSERVER_Message**)>(TRITONBACKEND_ModelConfig));
static_assert(
    Is<Error*(TRITONBACKEND_Model*, TRITONBACKEND_Backend**)>(TRITONBACKEND_ModelBackend));
static_assert(Is<Error*(TRITONBACKEND_Model*, void**)>(TRITONBACKEND_ModelState));
static_assert(Is<Error*(TRITONBACKEND_Model*, void*)>(TRITONBACKEND_ModelSetState));
static_assert(Is<Error*(TRITONBACKEND_ModelInstance*, TRITONSERVER_InstanceGroupKind*)>(
    TRITONBACKEND_ModelInstanceKind));
static_assert(
    Is<Error*(TRITONBACKEND_ModelInstance*, int32_t*)>(TRITONBACKEND_ModelInstanceDeviceId));
static_assert(Is<Error*(TRITONBACKEND_ModelInstance*, TRITONBACKEND_Model**)>(
    TRITONBACKEND_ModelInstanceModel));
static_assert(
    Is<Error*(TRITONBACKEND_ModelInstance*, TRITONBACKEND_Request*, bool, uint64_t, uint64_t,
              uint64_t, uint64_t)>(TRITONBACKEND_ModelInstanceReportStatistics));
static_assert(Is<Error*(TRITONBACKEND_Request*, uint32_t, TRITONBACKEND_Input**)>(
    TRITONBACKEND_RequestInputByIndex));
static_assert(Is<Error*(TRITONBACKEND_Request*, uint32_t)>(TRITONBACKEND_RequestRelease));
static_assert(Is<Error*(TRITONBACKEND_Input*, const char**, TRITONSERVER_DataType*, const int64_t**,
                        uint32_t*, uint64_t*, uint32_t*)>(TRITONBACKEND_InputProperties));
static_assert(Is<Error*(TRITONBACKEND_Input*, uint32_t, const void**, uint64_t*,
                        TRITONSERVER_MemoryType*, int64_t*)>(TRITONBACKEND_InputBuffer));
static_assert(
    Is<Error*(TRITONBACKEND_Response**, TRITONBACKEND_Request*)>(TRITONBACKEND_ResponseNew));
static_assert(
    Is<Error*(TRITONBACKEND_Response*, TRITONBACKEND_Output**, const char*, TRITONSERVER_DataType,
              const int64_t*, uint32_t)>(TRITONBACKEND_ResponseOutput));
static_assert(Is<Error*(TRITONBACKEND_Response*, uint32_t, Error*)>(TRITONBACKEND_ResponseSend));
static_assert(Is<Error*(TRITONBACKEND_Output*, void**, uint64_t, TRITONSERVER_MemoryType*,
                        int64_t*)>(TRITONBACKEND_OutputBuffer));

static_assert(Is<Error*(TRITONBACKEND_Backend*)>(TRITONBACKEND_Initialize));
static_assert(Is<Error*(TRITONBACKEND_Backend*)>(TRITONBACKEND_Finalize));
static_assert(Is<Error*(TRITONBACKEND_Model*)>(TRITONBACKEND_ModelInitialize));
static_assert(Is<Error*(TRITONBACKEND_Model*)>(TRITONBACKEND_ModelFinalize));
static_assert(Is<Error*(TRITONBACKEND_ModelInstance*)>(TRITONBACKEND_ModelInstanceInitialize));
static_assert(Is<Error*(TRITONBACKEND_ModelInstance*)>(TRITONBACKEND_ModelInstanceFinalize));
static_assert(Is<Error*(TRITONBACKEND_ModelInstance*, TRITONBACKEND_Request**, uint32_t)>(
    TRITONBACKEND_ModelInstanceExecute));

}  // namespace
