//===- StubDriver.cpp - The driver's half of the stub ---------------------===//
#include "test/runtime/cuda/StubDriver.h"

#include "test/runtime/cuda/Stub.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>

using namespace weft::rt::cuda;

namespace weft::rt::cuda {

Stub &stub() {
  static auto *state = new Stub;
  return *state;
}

Result Stub::enter(const char *symbol, bool allowedInCapture) {
  ++calls[symbol];
  if (auto rule = rules.find(symbol); rule != rules.end() && --rule->second.first == 0) {
    Result result = rule->second.second;
    rules.erase(rule);
    return result;
  }
  if (capturing && !allowedInCapture)
    return kCaptureUnsupported;
  return sticky;
}

Result Stub::submit(StubWork work, const FillNode &fill) {
  if (capturing)
    captured.add(std::move(work), fill);
  else
    queue.push_back(std::move(work));
  submitted += !capturing;
  return kSuccess;
}

void StubGraph::add(StubWork work, const FillNode &fill) {
  nodes.push_back(std::move(work));
  fills.push_back(fill);
  gone.push_back(false);
  waits.emplace_back();
  for (GraphNode node : last)
    waits.back().push_back(numberOf(node));
  last = {handleOf<GraphNode>(nodes.size())};
}

std::vector<size_t> StubGraph::order() const {
  std::vector<size_t> list;
  std::vector<bool> done = gone;
  while (list.size() + static_cast<size_t>(std::count(gone.begin(), gone.end(), true)) < nodes.size())
    for (size_t i = nodes.size(); i-- > 0;)
      if (!done[i] && std::all_of(waits[i].begin(), waits[i].end(), [&](size_t j) { return done[j]; })) {
        done[i] = true;
        list.push_back(i);
        break;
      }
  return list;
}

Result Stub::drain() { return drainUntil(submitted); }

Result Stub::drainUntil(uint64_t end) {
  auto count = static_cast<size_t>(end > done ? end - done : 0);
  for (size_t i = 0; i < count; ++i)
    if (sticky == kSuccess)
      sticky = queue[i]();
  queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(count));
  done += count;
  return sticky;
}

bool Stub::owns(DevicePointer address, uint64_t bytes) const {
  auto block = blocks.upper_bound(address);
  if (block == blocks.begin())
    return false;
  --block;
  return address - block->first <= block->second && bytes <= block->second - (address - block->first);
}

size_t numberOf(GraphNode node) { return reinterpret_cast<uintptr_t>(node) - 1; }

std::string hex(DevicePointer address) {
  std::ostringstream text;
  text << " 0x" << std::hex << address;
  return text.str();
}

} // namespace weft::rt::cuda

extern "C" {

void weftStubReset() {
  Stub &s = stub();
  std::unique_lock lock(s.mutex);
  s.devices = 1, s.memory = uint64_t(1) << 30;
  s.calls.clear(), s.rules.clear(), s.log.clear();
  s.queue.clear(), s.sticky = kSuccess, s.submitted = s.done = 0;
}
void weftStubDevices(int count) { stub().devices = count; }
void weftStubMemory(uint64_t bytes) { stub().memory = bytes; }
void weftStubFail(const char *symbol, int nth, int result) { stub().rules[symbol] = {nth, result}; }
int weftStubCalls(const char *symbol) { return stub().calls[symbol]; }
const char *weftStubLog() { return stub().log.c_str(); }
int weftStubLive() { return stub().live + static_cast<int>(stub().blocks.size() + stub().pinned.size()); }

Result cuInit(unsigned) {
  WEFT_ENTER("cuInit");
  return stub().devices ? kSuccess : kNoDevice;
}
Result cuDriverGetVersion(int *version) {
  *version = 13000;
  return kSuccess;
}
Result cuGetErrorName(Result result, const char **name) {
  static const std::map<Result, const char *> names{
      {kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
      {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
      {kInvalidPtx, "CUDA_ERROR_INVALID_PTX"},
      {kNotFound, "CUDA_ERROR_NOT_FOUND"},
      {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {kLaunchOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
      {kCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"}};
  auto found = names.find(result);
  *name = found == names.end() ? nullptr : found->second;
  return *name ? kSuccess : kInvalidValue;
}
Result cuGetErrorString(Result, const char **text) {
  *text = "text of the stub";
  return kSuccess;
}
Result cuDeviceGetCount(int *count) {
  *count = stub().devices;
  return kSuccess;
}
Result cuDeviceGet(Device *device, int ordinal) {
  *device = ordinal;
  return ordinal < stub().devices ? kSuccess : kInvalidValue;
}
Result cuDeviceGetName(char *name, int size, Device) {
  std::strncpy(name, "Stub H200", static_cast<size_t>(size));
  return kSuccess;
}
Result cuDeviceGetAttribute(int *value, int attribute, Device) {
  static const std::map<int, int> values{{kMaxThreadsPerBlock, 1024},      {kClockRate, 1980000},
                                         {kMultiprocessorCount, 132},      {kL2CacheSize, 50 << 20},
                                         {kComputeCapabilityMajor, 9},     {kComputeCapabilityMinor, 0},
                                         {kMaxSharedPerBlockOptin, 232448}};
  auto found = values.find(attribute);
  if (found == values.end())
    return kInvalidValue;
  *value = found->second;
  return kSuccess;
}
Result cuDeviceTotalMem_v2(size_t *bytes, Device) {
  *bytes = stub().memory;
  return kSuccess;
}
Result cuDevicePrimaryCtxRetain(Context *context, Device device) {
  WEFT_ENTER("cuDevicePrimaryCtxRetain");
  ++stub().live;
  *context = handleOf<Context>(static_cast<uintptr_t>(device) + 1);
  return kSuccess;
}
/// With a crashed context goes all that was in it; the process gets no other one.
Result cuDevicePrimaryCtxRelease_v2(Device) {
  Stub &s = stub();
  --s.live;
  if (s.sticky == kSuccess)
    return kSuccess;
  for (auto [address, bytes] : s.blocks)
    std::free(reinterpret_cast<void *>(address));
  s.blocks.clear(), s.queue.clear(), s.used = 0, s.live = 0, s.done = s.submitted;
  return kSuccess;
}
/// A new context: what was in the old one is gone.
Result cuCtxSetCurrent(Context) {
  WEFT_ENTER("cuCtxSetCurrent");
  return kSuccess;
}

Result cuMemGetInfo_v2(size_t *free, size_t *total) {
  WEFT_ENTER("cuMemGetInfo_v2", false);
  *total = stub().memory, *free = stub().memory - stub().used;
  return kSuccess;
}
Result cuMemAlloc_v2(DevicePointer *pointer, size_t bytes) {
  WEFT_ENTER("cuMemAlloc_v2", false);
  Stub &s = stub();
  if (bytes > s.memory - s.used)
    return kOutOfMemory;
  void *block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(block, 0xCD, std::min<size_t>(bytes, 1 << 20)); // all of a large one would take the test's time
  s.blocks[reinterpret_cast<uintptr_t>(block)] = bytes;
  s.used += bytes;
  *pointer = reinterpret_cast<uintptr_t>(block);
  return kSuccess;
}
Result cuMemFree_v2(DevicePointer pointer) {
  WEFT_ENTER("cuMemFree_v2", false);
  auto found = stub().blocks.find(pointer);
  if (found == stub().blocks.end())
    return kInvalidValue;
  stub().used -= found->second;
  stub().blocks.erase(found);
  std::free(reinterpret_cast<void *>(pointer));
  return kSuccess;
}
Result cuMemHostAlloc(void **pointer, size_t bytes, unsigned) {
  WEFT_ENTER("cuMemHostAlloc", false);
  *pointer = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  stub().pinned[reinterpret_cast<uintptr_t>(*pointer)] = bytes;
  return kSuccess;
}
Result cuMemFreeHost(void *pointer) {
  if (!stub().pinned.erase(reinterpret_cast<uintptr_t>(pointer)))
    return kInvalidValue;
  std::free(pointer);
  return kSuccess;
}

Result cuMemcpyHtoDAsync_v2(DevicePointer to, const void *from, size_t bytes, Stream) {
  WEFT_ENTER("cuMemcpyHtoDAsync_v2");
  return stub().submit([=] {
    if (!stub().owns(to, bytes))
      return kIllegalAddress;
    std::memcpy(reinterpret_cast<void *>(to), from, bytes);
    return kSuccess;
  });
}
Result cuMemcpyDtoHAsync_v2(void *to, DevicePointer from, size_t bytes, Stream) {
  WEFT_ENTER("cuMemcpyDtoHAsync_v2");
  return stub().submit([=] {
    if (!stub().owns(from, bytes))
      return kIllegalAddress;
    std::memcpy(to, reinterpret_cast<void *>(from), bytes);
    return kSuccess;
  });
}
Result cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes, Stream) {
  WEFT_ENTER("cuMemcpyDtoDAsync_v2");
  return stub().submit([=] {
    if (!stub().owns(from, bytes) || !stub().owns(to, bytes))
      return kIllegalAddress;
    stub().log += "copy " + std::to_string(bytes) + hex(from) + hex(to) + "\n";
    std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
    return kSuccess;
  });
}
Result cuMemsetD8Async(DevicePointer to, unsigned char value, size_t bytes, Stream) {
  WEFT_ENTER("cuMemsetD8Async");
  auto work = [=] {
    if (!stub().owns(to, bytes))
      return kIllegalAddress;
    stub().log += "fill " + std::to_string(bytes) + " with " + std::to_string(value) + hex(to) + "\n";
    std::memset(reinterpret_cast<void *>(to), value, bytes);
    return kSuccess;
  };
  return stub().submit(work, {to, 0, value, 1, bytes, 1});
}

Result cuStreamCreate(Stream *stream, unsigned) {
  WEFT_ENTER("cuStreamCreate");
  ++stub().live;
  *stream = handleOf<Stream>(1);
  return kSuccess;
}
Result cuStreamDestroy_v2(Stream) {
  --stub().live;
  return kSuccess;
}
Result cuStreamSynchronize(Stream) {
  WEFT_ENTER("cuStreamSynchronize", false);
  return stub().drain();
}
Result cuStreamBeginCapture_v2(Stream, int) {
  WEFT_ENTER("cuStreamBeginCapture_v2", false);
  stub().capturing = true;
  stub().captured = {};
  return kSuccess;
}
Result cuStreamEndCapture(Stream, Graph *graph) {
  stub().capturing = false;
  ++stub().live;
  stub().made = new StubGraph(std::move(stub().captured));
  *graph = reinterpret_cast<Graph>(stub().made);
  return kSuccess;
}
Result cuStreamGetCaptureInfo_v2(Stream, int *status, uint64_t *number, Graph *graph, const GraphNode **waits,
                                 size_t *count) {
  WEFT_ENTER("cuStreamGetCaptureInfo_v2");
  *status = stub().capturing, *number = 1, *graph = nullptr;
  *waits = stub().captured.last.data(), *count = stub().captured.last.size();
  return kSuccess;
}
Result cuStreamUpdateCaptureDependencies(Stream, GraphNode *waits, size_t count, unsigned flags) {
  WEFT_ENTER("cuStreamUpdateCaptureDependencies");
  if (flags != kSetCaptureDependencies)
    return kInvalidValue;
  stub().captured.last.assign(waits, waits + count);
  return kSuccess;
}
Result cuGraphGetNodes(Graph graph, GraphNode *nodes, size_t *count) {
  WEFT_ENTER("cuGraphGetNodes");
  const StubGraph &g = *reinterpret_cast<StubGraph *>(graph);
  size_t found = 0;
  for (size_t i = 0; i < g.nodes.size(); ++i)
    if (!g.gone[i] && ++found && nodes)
      nodes[found - 1] = handleOf<GraphNode>(i + 1);
  *count = found;
  return kSuccess;
}
Result cuGraphNodeGetType(GraphNode node, int *type) {
  *type = stub().made->fills[numberOf(node)].width ? kFillNode : 0;
  return kSuccess;
}
Result cuGraphMemsetNodeGetParams(GraphNode node, FillNode *fill) {
  *fill = stub().made->fills[numberOf(node)];
  return kSuccess;
}
Result cuGraphNodeGetDependencies(GraphNode node, GraphNode *nodes, size_t *count) {
  const std::vector<size_t> &waits = stub().made->waits[numberOf(node)];
  for (size_t i = 0; nodes && i < waits.size(); ++i)
    nodes[i] = handleOf<GraphNode>(waits[i] + 1);
  *count = waits.size();
  return kSuccess;
}
Result cuGraphNodeGetDependentNodes(GraphNode node, GraphNode *nodes, size_t *count) {
  const StubGraph &g = *stub().made;
  size_t found = 0;
  for (size_t i = 0; i < g.nodes.size(); ++i)
    if (!g.gone[i] && std::count(g.waits[i].begin(), g.waits[i].end(), numberOf(node)) && ++found && nodes)
      nodes[found - 1] = handleOf<GraphNode>(i + 1);
  *count = found;
  return kSuccess;
}
Result cuGraphAddDependencies(Graph graph, const GraphNode *from, const GraphNode *to, size_t count) {
  WEFT_ENTER("cuGraphAddDependencies");
  StubGraph &g = *reinterpret_cast<StubGraph *>(graph);
  for (size_t i = 0; i < count; ++i) {
    std::vector<size_t> &waits = g.waits[numberOf(to[i])];
    if (std::count(waits.begin(), waits.end(), numberOf(from[i])))
      return kInvalidValue;
    waits.push_back(numberOf(from[i]));
  }
  return kSuccess;
}
Result cuGraphDestroyNode(GraphNode node) {
  WEFT_ENTER("cuGraphDestroyNode");
  StubGraph &g = *stub().made;
  g.gone[numberOf(node)] = true;
  for (std::vector<size_t> &waits : g.waits)
    waits.erase(std::remove(waits.begin(), waits.end(), numberOf(node)), waits.end());
  return kSuccess;
}
Result cuGraphInstantiateWithFlags(GraphExec *exec, Graph graph, unsigned long long) {
  WEFT_ENTER("cuGraphInstantiateWithFlags");
  ++stub().live;
  *exec = reinterpret_cast<GraphExec>(new StubGraph(*reinterpret_cast<StubGraph *>(graph)));
  return kSuccess;
}
Result cuGraphLaunch(GraphExec exec, Stream) {
  WEFT_ENTER("cuGraphLaunch");
  const StubGraph &graph = *reinterpret_cast<StubGraph *>(exec);
  for (size_t node : graph.order())
    stub().submit(graph.nodes[node]);
  return kSuccess;
}
Result cuGraphExecDestroy(GraphExec exec) {
  --stub().live;
  delete reinterpret_cast<StubGraph *>(exec);
  return kSuccess;
}
Result cuGraphDestroy(Graph graph) {
  --stub().live;
  delete reinterpret_cast<StubGraph *>(graph);
  return kSuccess;
}
Result cuEventCreate(Event *event, unsigned) {
  WEFT_ENTER("cuEventCreate");
  ++stub().live;
  *event = handleOf<Event>(++stub().events);
  return kSuccess;
}
Result cuEventRecord(Event event, Stream) {
  WEFT_ENTER("cuEventRecord");
  stub().recorded[reinterpret_cast<uintptr_t>(event)] = stub().submitted;
  stub().reached[reinterpret_cast<uintptr_t>(event)] = stub().milliseconds;
  return kSuccess;
}
Result cuEventSynchronize(Event event) {
  WEFT_ENTER("cuEventSynchronize", false);
  return stub().drainUntil(stub().recorded[reinterpret_cast<uintptr_t>(event)]);
}
Result cuEventElapsedTime(float *milliseconds, Event start, Event end) {
  std::map<uintptr_t, double> &reached = stub().reached;
  *milliseconds = static_cast<float>(2 + reached[reinterpret_cast<uintptr_t>(end)] -
                                     reached[reinterpret_cast<uintptr_t>(start)]);
  return kSuccess;
}
Result cuEventDestroy_v2(Event) {
  --stub().live;
  return kSuccess;
}
}
