//===- CudaFlights.cpp - What is under way on the GPU ---------------------===//
#include "runtime/cuda/CudaMachine.h"

#include "runtime/core/ExecutableCheck.h"
#include "runtime/core/TensorCheck.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft::rt::cuda {

constexpr uint64_t kAlignment = 256; // bytes: of what is copied

/// A place of `bytes` in the ring that nothing under way uses; waits for the
/// oldest work while there is none.
absl::StatusOr<uint64_t> CudaMachine::claim(uint64_t bytes) {
  uint64_t begin = nextByte + bytes <= ringBytes ? nextByte : 0, end = begin + bytes;
  auto inTheWay = [&](const Flight &flight) { return flight.begin < end && begin < flight.end; };
  while (flights.size() == kFlights || std::any_of(flights.begin(), flights.end(), inTheWay))
    if (absl::Status status = wait(flights.front().number); !status.ok())
      return status;
  nextByte = (end + kAlignment - 1) / kAlignment * kAlignment;
  return begin;
}

/// The program on the stream: inputs, calls, results.
absl::Status CudaMachine::submit(Prepared &prepared, uint64_t begin) {
  const Driver &driver = gpu->driver;
  uint64_t resultBytes = prepared.endBytes - prepared.inputBytes;
  if (prepared.inputBytes)
    if (absl::Status status = gpu->checked(
            driver.memcpyHtoDAsync(ports, pinned + begin, prepared.inputBytes, gpu->stream), "inputs");
        !status.ok())
      return status;
  if (options.graphs && prepared.warm && !prepared.graph)
    if (absl::Status status = capture(prepared); !status.ok())
      return status;
  bool replay = options.graphs && prepared.graph;
  driver.eventRecord(prepared.around[0], gpu->stream);
  if (absl::Status status = replay ? gpu->checked(driver.graphLaunch(prepared.graph, gpu->stream),
                                                  absl::StrCat("program ", prepared.program->name))
                                   : enqueue(prepared);
      !status.ok())
    return status;
  driver.eventRecord(prepared.around[1], gpu->stream);
  gpu->counters.graphLaunches += replay;
  prepared.warm = true;
  if (!resultBytes)
    return absl::OkStatus();
  return gpu->checked(driver.memcpyDtoHAsync(pinned + begin + prepared.inputBytes,
                                             ports + prepared.inputBytes, resultBytes, gpu->stream),
                      "results");
}

/// Program `prepare`, where its state was written since it ran.
absl::Status CudaMachine::refresh() {
  if (!preparation || !stale)
    return absl::OkStatus();
  absl::Status status = submit(*preparation, 0);
  stale = !status.ok();
  return status;
}

bool CudaMachine::isPreparedFrom(const StateEntry &entry) const {
  uint64_t end = entry.offset + *denseBytes(entry.type, entry.shape);
  auto reads = [&](const Operand &operand) {
    return operand.space == Space::State && operand.offset < end &&
           entry.offset < operand.offset + operand.bytes;
  };
  return preparation && std::any_of(preparation->program->calls.begin(), preparation->program->calls.end(),
                                    [&](const Call &call) {
                                      return std::any_of(call.operands.begin(), call.operands.end(), reads);
                                    });
}

/// Notes what was put on the stream last; gives its number.
absl::StatusOr<uint64_t> CudaMachine::takeOff(Prepared *prepared, uint64_t begin, uint64_t bytes,
                                              std::span<Tensor> results) {
  uint64_t number = ++startedRuns;
  if (absl::Status status =
          gpu->checked(gpu->driver.eventRecord(landed[number % kFlights], gpu->stream), "cuEventRecord");
      !status.ok())
    return status;
  flights.push_back({number, prepared, begin, begin + bytes, results});
  return number;
}

/// After an error: calls that were put on the stream before it still use the memory.
absl::Status CudaMachine::abandon(const absl::Status &why) {
  absl::Status waited = gpu->wait("waiting after an error");
  return why.ok() ? waited : why;
}

std::string CudaMachine::namesUnderWay() const {
  std::set<std::string> names;
  for (const Flight &flight : flights)
    if (flight.prepared)
      names.insert(flight.prepared->program->name);
  if (names.empty())
    return "writing state";
  return absl::StrCat(names.size() == 1 ? "program " : "one of programs ", absl::StrJoin(names, ", "));
}

absl::Status CudaMachine::wait(uint64_t number) {
  if (flights.empty() || number < flights.front().number)
    return absl::OkStatus();
  if (absl::Status status = gpu->enter(); !status.ok())
    return status;
  auto end = std::find_if(flights.begin(), flights.end(), [&](const Flight &f) { return f.number > number; });
  absl::Status status = end == flights.end()
                            ? gpu->wait(namesUnderWay())
                            : gpu->reach(landed[(end - 1)->number % kFlights], namesUnderWay());
  if (!status.ok()) {
    flights.clear();
    return options.synchronous
               ? status
               : absl::Status(status.code(), absl::StrCat(std::string(status.message()),
                                                          "; WEFT_CUDA_SYNC=1 names the kernel"));
  }
  for (auto flight = flights.begin(); flight != end; ++flight) {
    if (flight->prepared)
      flight->prepared->timed = true;
    for (size_t i = 0; i < flight->results.size(); ++i)
      if (auto &bytes = flight->results[i].bytes; !bytes.empty())
        std::memcpy(bytes.data(), pinned + flight->begin + flight->prepared->results[i], bytes.size());
    if (flight->read)
      std::memcpy(flight->read->bytes.data(), pinned + flight->begin, flight->read->bytes.size());
  }
  flights.erase(flights.begin(), end);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> CudaMachine::start(std::string_view name, std::span<const Tensor> inputs,
                                            std::span<Tensor> results) {
  absl::StatusOr<Prepared *> found = programFor(programs, exe.model, name, inputs, results);
  if (!found.ok())
    return found.status();
  Prepared &prepared = **found;
  if (absl::Status status = gpu->enter(); !status.ok())
    return status;
  absl::StatusOr<uint64_t> begin = claim(prepared.endBytes);
  if (!begin.ok())
    return begin.status();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].bytes.empty())
      std::memcpy(pinned + *begin + prepared.inputs[i], inputs[i].bytes.data(), inputs[i].bytes.size());
  if (absl::Status status = refresh(); !status.ok())
    return abandon(status);
  if (absl::Status status = submit(prepared, *begin); !status.ok())
    return abandon(status);
  absl::StatusOr<uint64_t> number = takeOff(&prepared, *begin, prepared.endBytes, results);
  if (!number.ok())
    return abandon(number.status());
  if (!oneByOne())
    return number;
  if (absl::Status status = wait(*number); !status.ok())
    return status;
  if (absl::Status status = inspect(prepared); !status.ok())
    return status;
  return 0;
}

absl::Status CudaMachine::run(std::string_view name, std::span<const Tensor> inputs,
                              std::span<Tensor> results) {
  absl::StatusOr<uint64_t> number = start(name, inputs, results);
  return number.ok() ? wait(*number) : number.status();
}

absl::StatusOr<uint64_t> CudaMachine::startRead(std::string_view name, Tensor &to) {
  absl::StatusOr<const StateEntry *> entry = stateOf(name);
  if (!entry.ok())
    return entry.status();
  const uint64_t bytes = *denseBytes((*entry)->type, (*entry)->shape);
  if (bytes == 0 || bytes > kMovedLater || oneByOne())
    return Machine::startRead(name, to);
  if (absl::Status status = gpu->enter(); !status.ok())
    return status;
  absl::StatusOr<uint64_t> begin = claim(bytes);
  if (!begin.ok())
    return begin.status();
  to = Tensor((*entry)->type, (*entry)->shape);
  if (absl::Status status = gpu->checked(
          gpu->driver.memcpyDtoHAsync(pinned + *begin, state + (*entry)->offset, bytes, gpu->stream),
          absl::StrCat("reading state ", std::string(name)));
      !status.ok())
    return abandon(status);
  absl::StatusOr<uint64_t> number = takeOff(nullptr, *begin, bytes, {});
  if (!number.ok())
    return abandon(number.status());
  flights.back().read = &to;
  return number;
}

/// A small write goes with the stream: it takes effect behind what was started
/// before it and before what is started after it.
absl::Status CudaMachine::writeLater(const StateEntry &entry, const Tensor &value) {
  uint64_t bytes = value.bytes.size();
  if (bytes == 0)
    return absl::OkStatus();
  absl::StatusOr<uint64_t> begin = claim(bytes);
  if (!begin.ok())
    return begin.status();
  std::memcpy(pinned + *begin, value.bytes.data(), bytes);
  if (absl::Status status =
          gpu->checked(gpu->driver.memcpyHtoDAsync(state + entry.offset, pinned + *begin, bytes, gpu->stream),
                       absl::StrCat("writing state ", entry.name));
      !status.ok())
    return abandon(status);
  absl::StatusOr<uint64_t> number = takeOff(nullptr, *begin, bytes, {});
  return number.ok() ? absl::OkStatus() : abandon(number.status());
}

} // namespace weft::rt::cuda
