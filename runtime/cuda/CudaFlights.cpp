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
    if (absl::Status status = landUntil(flights.front().number); !status.ok())
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
  if (options.graphs && prepared.warm && !prepared.graphs[0])
    if (absl::Status status = capture(prepared); !status.ok())
      return status;
  driver.eventRecord(prepared.around[0], gpu->stream);
  if (absl::Status status = runCalls(prepared, begin); !status.ok())
    return status;
  driver.eventRecord(prepared.around[1], gpu->stream);
  prepared.warm = true;
  if (!resultBytes)
    return absl::OkStatus();
  return gpu->checked(driver.memcpyDtoHAsync(pinned + begin + prepared.inputBytes,
                                             ports + prepared.inputBytes, resultBytes, gpu->stream),
                      "results");
}

/// The calls, as graphs when there are some, and between them what comes early.
absl::Status CudaMachine::runCalls(Prepared &prepared, uint64_t begin) {
  for (size_t part = 0; part < prepared.graphs.size(); ++part) {
    if (const auto [from, to] = stepsOf(prepared, part); part > 0 && from == to)
      break;
    const bool replay = options.graphs && prepared.graphs[part];
    if (absl::Status status = replay
                                  ? gpu->checked(gpu->driver.graphLaunch(prepared.graphs[part], gpu->stream),
                                                 absl::StrCat("program ", prepared.program->name))
                                  : enqueue(prepared, part);
        !status.ok())
      return status;
    gpu->counters.graphLaunches += replay;
    if (part == 0 && prepared.earlyBehind)
      if (absl::Status status = bringEarly(prepared, begin); !status.ok())
        return status;
  }
  return absl::OkStatus();
}

/// The event is that of the flight that takes off next.
absl::Status CudaMachine::bringEarly(const Prepared &prepared, uint64_t begin) {
  for (const Early &early : prepared.early)
    if (absl::Status status =
            gpu->checked(gpu->driver.memcpyDtoHAsync(pinned + begin + early.place, state + early.state,
                                                     early.bytes, gpu->stream),
                         "what comes early");
        !status.ok())
      return status;
  return gpu->checked(gpu->driver.eventRecord(arrived[(startedRuns + 1) % kFlights], gpu->stream),
                      "cuEventRecord");
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

/// Tensors get what the flight brought.
void CudaMachine::land(Flight &flight) {
  if (flight.prepared)
    flight.prepared->timed = true;
  for (size_t i = 0; i < flight.results.size(); ++i)
    if (auto &bytes = flight.results[i].bytes; !bytes.empty())
      std::memcpy(bytes.data(), pinned + flight.begin + flight.prepared->results[i], bytes.size());
  if (flight.read)
    std::memcpy(flight.read->bytes.data(), pinned + flight.from, flight.read->bytes.size());
  flight.read = nullptr;
}

/// An error while waiting: nothing is under way any more.
absl::Status CudaMachine::lost(const absl::Status &status) {
  flights.clear();
  return options.synchronous
             ? status
             : absl::Status(status.code(), absl::StrCat(std::string(status.message()),
                                                        "; WEFT_CUDA_SYNC=1 names the kernel"));
}

absl::Status CudaMachine::wait(uint64_t number) {
  if (flights.empty() || number < flights.front().number)
    return absl::OkStatus();
  if (absl::Status status = gpu->enter(); !status.ok())
    return status;
  auto own =
      std::find_if(flights.begin(), flights.end(), [&](const Flight &f) { return f.number == number; });
  if (own != flights.end() && own->run) { // does not wait for those before it
    if (!own->read)
      return absl::OkStatus();
    if (absl::Status status = gpu->reach(arrived[own->run % kFlights], namesUnderWay()); !status.ok())
      return lost(status);
    land(*own);
    return absl::OkStatus();
  }
  return landUntil(number);
}

/// Waits for the flight of this number, which may be gone, and takes it and those before it off the list.
absl::Status CudaMachine::landUntil(uint64_t number) {
  auto end = std::find_if(flights.begin(), flights.end(), [&](const Flight &f) { return f.number > number; });
  absl::Status status = end == flights.end()
                            ? gpu->wait(namesUnderWay())
                            : gpu->reach(landed[(end - 1)->number % kFlights], namesUnderWay());
  if (!status.ok())
    return lost(status);
  // Early reads of runs that are done lie in bytes that the next run may get.
  const uint64_t last = (end - 1)->number;
  for (Flight &flight : flights)
    if (flight.number <= last || (flight.run && flight.run <= last))
      land(flight);
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
  absl::StatusOr<uint64_t> begin = claim(prepared.pinnedBytes);
  if (!begin.ok())
    return begin.status();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].bytes.empty())
      std::memcpy(pinned + *begin + prepared.inputs[i], inputs[i].bytes.data(), inputs[i].bytes.size());
  if (absl::Status status = refresh(); !status.ok())
    return abandon(status);
  if (absl::Status status = submit(prepared, *begin); !status.ok())
    return abandon(status);
  absl::StatusOr<uint64_t> number = takeOff(&prepared, *begin, prepared.pinnedBytes, results);
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

/// Lets `flight` read the entry from the bytes of a run that brings it early. False: there is no
/// such run under way, or the entry was written behind it.
bool CudaMachine::readsEarly(Flight &flight, const StateEntry &entry) const {
  const uint64_t end = entry.offset + *denseBytes(entry.type, entry.shape);
  for (auto run = flights.rbegin(); run != flights.rend() && run->wrote != &entry; ++run) {
    if (!run->prepared)
      continue;
    for (const Early &early : run->prepared->early)
      if (early.state <= entry.offset && end <= early.state + early.bytes) {
        flight.run = run->number;
        flight.from = run->begin + early.place + (entry.offset - early.state);
        return true;
      }
  }
  return false;
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
  Flight read;
  read.read = &to, read.from = *begin;
  if (!readsEarly(read, **entry))
    if (absl::Status status = gpu->checked(
            gpu->driver.memcpyDtoHAsync(pinned + *begin, state + (*entry)->offset, bytes, gpu->stream),
            absl::StrCat("reading state ", std::string(name)));
        !status.ok())
      return abandon(status);
  absl::StatusOr<uint64_t> number = takeOff(nullptr, *begin, bytes, {});
  if (!number.ok())
    return abandon(number.status());
  flights.back().read = &to, flights.back().from = read.from, flights.back().run = read.run;
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
  if (!number.ok())
    return abandon(number.status());
  flights.back().wrote = &entry;
  return absl::OkStatus();
}

} // namespace weft::rt::cuda
