//===- Driver.h - The CUDA driver's functions -------------------*- C++ -*-===//
//
// Members are named as the functions (CUDA Driver API), without `cu` and version.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/cuda/Abi.h"

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft::rt::cuda {

struct Driver {
  Result (*init)(unsigned flags);
  Result (*driverGetVersion)(int *version);
  Result (*getErrorName)(Result result, const char **name);
  Result (*getErrorString)(Result result, const char **text);

  Result (*deviceGetCount)(int *count);
  Result (*deviceGet)(Device *device, int ordinal);
  Result (*deviceGetName)(char *name, int size, Device device);
  Result (*deviceGetAttribute)(int *value, DeviceAttribute attribute, Device device);
  Result (*deviceTotalMem)(size_t *bytes, Device device);
  Result (*primaryCtxRetain)(Context *context, Device device);
  Result (*primaryCtxRelease)(Device device);
  Result (*ctxSetCurrent)(Context context);

  Result (*memGetInfo)(size_t *free, size_t *total);
  Result (*memAlloc)(DevicePointer *pointer, size_t bytes);
  Result (*memFree)(DevicePointer pointer);
  Result (*memHostAlloc)(void **pointer, size_t bytes, unsigned flags);
  Result (*memFreeHost)(void *pointer);
  Result (*memcpyHtoDAsync)(DevicePointer to, const void *from, size_t bytes, Stream stream);
  Result (*memcpyDtoHAsync)(void *to, DevicePointer from, size_t bytes, Stream stream);
  Result (*memcpyDtoDAsync)(DevicePointer to, DevicePointer from, size_t bytes, Stream stream);
  Result (*memsetD8Async)(DevicePointer to, unsigned char value, size_t count, Stream stream);

  Result (*streamCreate)(Stream *stream, unsigned flags);
  Result (*streamDestroy)(Stream stream);
  Result (*streamSynchronize)(Stream stream);
  Result (*streamBeginCapture)(Stream stream, int mode);
  Result (*streamEndCapture)(Stream stream, Graph *graph);
  /// cuStreamGetCaptureInfo_v2, cuStreamUpdateCaptureDependencies of CUDA 11.3: what the next
  /// node of a capture waits for.
  Result (*streamGetCaptureInfo)(Stream stream, int *status, uint64_t *number, Graph *graph,
                                 const GraphNode **waits, size_t *count);
  Result (*streamUpdateCaptureDependencies)(Stream stream, GraphNode *waits, size_t count, unsigned flags);
  /// Those of CUDA 10: a graph's nodes and edges.
  Result (*graphGetNodes)(Graph graph, GraphNode *nodes, size_t *count);
  Result (*graphNodeGetType)(GraphNode node, int *type);
  Result (*graphMemsetNodeGetParams)(GraphNode node, FillNode *fill);
  Result (*graphNodeGetDependencies)(GraphNode node, GraphNode *nodes, size_t *count);
  Result (*graphNodeGetDependentNodes)(GraphNode node, GraphNode *nodes, size_t *count);
  Result (*graphAddDependencies)(Graph graph, const GraphNode *from, const GraphNode *to, size_t count);
  Result (*graphDestroyNode)(GraphNode node);
  Result (*graphInstantiateWithFlags)(GraphExec *exec, Graph graph, unsigned long long flags);
  Result (*graphLaunch)(GraphExec exec, Stream stream);
  Result (*graphExecDestroy)(GraphExec exec);
  Result (*graphDestroy)(Graph graph);
  Result (*eventCreate)(Event *event, unsigned flags);
  Result (*eventRecord)(Event event, Stream stream);
  Result (*eventSynchronize)(Event event);
  Result (*eventElapsedTime)(float *milliseconds, Event start, Event end);
  Result (*eventDestroy)(Event event);

  Result (*moduleLoadData)(Module *module, const void *image);
  Result (*moduleLoadDataEx)(Module *module, const void *image, unsigned count, JitOption *options,
                             void **values);
  Result (*moduleUnload)(Module module);
  Result (*moduleGetFunction)(Function *function, Module module, const char *name);
  Result (*funcGetAttribute)(int *value, FunctionAttribute attribute, Function function);
  Result (*funcSetAttribute)(Function function, FunctionAttribute attribute, int value);
  // Null before CUDA 12.4.
  Result (*funcLoad)(Function function);
  Result (*funcGetParamInfo)(Function function, size_t number, size_t *offset, size_t *bytes);
  Result (*occupancyMaxActiveBlocks)(int *blocks, Function function, int threads, size_t sharedBytes);
  Result (*launchKernel)(Function function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                         unsigned blockY, unsigned blockZ, unsigned sharedBytes, Stream stream,
                         void **parameters, void **extra);
  Result (*tensorMapEncodeTiled)(EncodedTensorMap *map, TensorMapType type, uint32_t rank, void *base,
                                 const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
                                 const uint32_t *elementStrides, int interleave, TensorMapSwizzle swizzle,
                                 int promotion, int fill);

  int version = 0;  // 13000: CUDA 13.0
  std::string path; // of the library
};

/// The driver, loaded and initialised once; devices may be none. Errors: NotFound
/// (no library), FailedPrecondition (a function is missing, or it can't start).
absl::StatusOr<const Driver *> driver();

/// CUDA_ERROR_OUT_OF_MEMORY (out of memory).
std::string describe(const Driver &driver, Result result);

/// OK, or an error `what: CUDA_ERROR_...`: ResourceExhausted for memory, else Internal.
absl::Status check(const Driver &driver, Result result, std::string_view what);

/// Whether the context can do nothing more after `result` (a kernel crashed).
bool isSticky(Result result);

} // namespace weft::rt::cuda
