/* See cuda_driver.h. */

#include "cuda_driver.h"

#include <dlfcn.h>
#include <string.h>

/* 0: found. A function pointer is copied as bytes, since ISO C does not convert it from void*. */
static int find(void* library, const char* name, void* to) {
  void* symbol = dlsym(library, name);
  if (symbol == NULL) return 1;
  memcpy(to, &symbol, sizeof(symbol));
  return 0;
}

int open_cuda_driver(cuda_driver* driver) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  int missing = 0;
  if (library == NULL) return 1;
  missing += find(library, "cuInit", &driver->init);
  missing += find(library, "cuDevicePrimaryCtxRetain", &driver->context_retain);
  missing += find(library, "cuCtxSetCurrent", &driver->context_set);
  missing += find(library, "cuMemAlloc_v2", &driver->allocate);
  missing += find(library, "cuMemAllocHost_v2", &driver->allocate_host);
  missing += find(library, "cuMemFree_v2", &driver->release);
  missing += find(library, "cuMemFreeHost", &driver->release_host);
  missing += find(library, "cuMemsetD8_v2", &driver->fill);
  missing += find(library, "cuMemcpyHtoD_v2", &driver->upload);
  missing += find(library, "cuMemcpyDtoH_v2", &driver->download);
  missing += find(library, "cuStreamSynchronize", &driver->synchronize);
  missing += find(library, "cuLaunchKernel", &driver->launch);
  if (missing != 0) return 1;
  if (driver->init(0) != 0 || driver->context_retain(&driver->context, 0) != 0) return 1;
  return driver->context_set(driver->context);
}
