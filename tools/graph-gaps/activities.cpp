//===- activities.cpp - What ran on the device, when, from inside a program ===//
// A library that the CUDA driver loads into any program named by CUDA_INJECTION64_PATH. It writes a line for each
// kernel, copy and fill to the file named by GRAPH_GAPS_FILE: kind, start and end in ns, correlation, graph, name.
// All nodes of one launch of a graph share one correlation. Source: CUPTI's documentation of the activity API.
#include <cupti.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>

namespace {

std::FILE *out = nullptr;

bool failed(CUptiResult result, const char *what) {
  if (result == CUPTI_SUCCESS)
    return false;
  const char *words = "unknown";
  cuptiGetResultString(result, &words);
  std::fprintf(stderr, "graph-gaps: %s: %s\n", what, words);
  return true;
}

template <typename Record> void write(const char *kind, const CUpti_Activity *activity, const char *name) {
  const auto *record = reinterpret_cast<const Record *>(activity);
  std::fprintf(out, "%s\t%llu\t%llu\t%u\t%u\t%s\n", kind, (unsigned long long)record->start,
               (unsigned long long)record->end, record->correlationId, record->graphId, name);
}

void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *records) {
  constexpr size_t kBytes = 4 << 20; // about 20,000 kernels
  *buffer = static_cast<uint8_t *>(std::aligned_alloc(8, kBytes));
  *size = *buffer ? kBytes : 0;
  *records = 0;
}

void CUPTIAPI completed(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid) {
  CUpti_Activity *activity = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &activity) == CUPTI_SUCCESS) {
    if (activity->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
      write<CUpti_ActivityKernel10>("kernel", activity,
                                    reinterpret_cast<CUpti_ActivityKernel10 *>(activity)->name);
    else if (activity->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
      write<CUpti_ActivityMemcpy6>("copy", activity, "copy");
    else if (activity->kind == CUPTI_ACTIVITY_KIND_MEMSET)
      write<CUpti_ActivityMemset4>("fill", activity, "fill");
  }
  size_t dropped = 0;
  if (cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS && dropped)
    std::fprintf(out, "dropped\t%zu\n", dropped); // a gap that is none
  std::free(buffer);
}

void finish() {
  failed(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "reading the last records");
  std::fclose(out);
}

} // namespace

/// Called by the driver when it starts; 1 is success.
extern "C" int InitializeInjection() {
  const char *path = std::getenv("GRAPH_GAPS_FILE");
  if (!path || out || !(out = std::fopen(path, "w")))
    return path && out;
  if (failed(cuptiActivityRegisterCallbacks(requested, completed), "registering"))
    return 0;
  for (CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET})
    if (failed(cuptiActivityEnable(kind), "recording"))
      return 0;
  std::atexit(finish);
  return 1;
}
