// Declarations of what the backend uses of tritonserver.h, written for this project, so that the
// backend compiles and runs under the stub host without a Triton Inference Server. A backend for a
// server is compiled against the server's own headers: -DGPUSHARE_TRITON_INCLUDE=FOLDER.
// api_check.cc holds both to the same types and values.
#ifndef GPUSHARE_EXAMPLES_SERVERS_TRITON_TRITONSERVER_H_
#define GPUSHARE_EXAMPLES_SERVERS_TRITON_TRITONSERVER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern "C" {

struct TRITONSERVER_Error;
struct TRITONSERVER_Message;

enum TRITONSERVER_DataType { TRITONSERVER_TYPE_FP32 = 11 };
enum TRITONSERVER_MemoryType {
  TRITONSERVER_MEMORY_CPU = 0,
  TRITONSERVER_MEMORY_CPU_PINNED = 1,
  TRITONSERVER_MEMORY_GPU = 2
};
enum TRITONSERVER_Error_Code {
  TRITONSERVER_ERROR_INTERNAL = 1,
  TRITONSERVER_ERROR_INVALID_ARG = 3,
  TRITONSERVER_ERROR_UNAVAILABLE = 4,
  TRITONSERVER_ERROR_UNSUPPORTED = 5
};
enum TRITONSERVER_LogLevel { TRITONSERVER_LOG_ERROR = 2 };
enum TRITONSERVER_InstanceGroupKind { TRITONSERVER_INSTANCEGROUPKIND_GPU = 2 };
enum TRITONSERVER_RequestReleaseFlag { TRITONSERVER_REQUEST_RELEASE_ALL = 1 };
enum TRITONSERVER_ResponseCompleteFlag { TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1 };

TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char* message);
void TRITONSERVER_ErrorDelete(TRITONSERVER_Error* error);
const char* TRITONSERVER_ErrorMessage(TRITONSERVER_Error* error);
TRITONSERVER_Error* TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level, const char* file,
                                            const int line, const char* message);
TRITONSERVER_Error* TRITONSERVER_MessageDelete(TRITONSERVER_Message* message);
TRITONSERVER_Error* TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message* message,
                                                        const char** base, size_t* size_bytes);

}  // extern "C"

#endif  // GPUSHARE_EXAMPLES_SERVERS_TRITON_TRITONSERVER_H_
