//===- CudaMachine.h - Executables on an NVIDIA GPU -------------*- C++ -*-===//
//
// Everything a call needs is worked out when the executable is loaded: addresses,
// tensor maps, algorithms of products. A program's first run starts its calls one
// by one (the driver may still load code then); its second is captured into a
// graph, which is replayed from there on.
//
// `start` copies inputs into a ring of pinned memory, and puts on the stream: their
// copy, the graph, the copy of results back into the ring, an event. `wait` looks
// at that event alone, so that the device goes on with what was started after it.
//
// State of controllers that a program writes comes to the host behind the last call that
// does: the program is two graphs then, with the copy and an event of its own between
// them, and who reads that state may decide while the device works on the rest.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/cpu/Profile.h"
#include "runtime/cuda/Branches.h"
#include "runtime/cuda/Modules.h"
#include "runtime/cuda/Products.h"

#include <array>
#include <deque>
#include <map>

namespace weft::rt::cuda {

class CudaMachine final : public Machine {
public:
  static absl::StatusOr<std::unique_ptr<CudaMachine>> make(Executable executable, const CudaOptions &options);
  ~CudaMachine() override;

  const Executable &executable() const override { return exe; }
  absl::Status run(std::string_view program, std::span<const Tensor> inputs,
                   std::span<Tensor> results) override;
  absl::StatusOr<uint64_t> start(std::string_view program, std::span<const Tensor> inputs,
                                 std::span<Tensor> results) override;
  absl::Status wait(uint64_t number) override;
  absl::StatusOr<Tensor> readState(std::string_view name) const override;
  absl::StatusOr<uint64_t> startRead(std::string_view name, Tensor &to) override;
  absl::Status writeState(std::string_view name, const Tensor &value) override;
  /// As copyStateOnDevice, of an entry that both have.
  absl::StatusOr<bool> takeState(const CudaMachine *from, std::string_view name);
  const CudaCounters &counters() const { return gpu->counters; }
  absl::StatusOr<CudaMemory> memory() const;
  Profile &times() { return profile; }
  absl::Status timeKernels();
  std::optional<double> programSeconds(std::string_view program) const;
  std::vector<CudaKernel> kernels() const;

private:
  /// A call with its addresses.
  struct Step {
    uint32_t kernel = 0;
    unsigned blocks = 0;
    std::vector<DevicePointer> operands; // with scratch: one more
    std::vector<EncodedTensorMap> maps;
    std::vector<void *> parameters; // into the two above
    size_t product = 0;
    uint64_t bytes = 0; // of operand 0: what Zero and Copy move
    double moved = 0;   // bytes of all operands
  };
  /// State that comes to the host before the program ends.
  struct Early {
    uint64_t state = 0, bytes = 0; // offset in state
    uint64_t place = 0;            // among the run's bytes of `pinned`
  };
  struct Prepared {
    const Program *program = nullptr;
    std::vector<uint64_t> inputs, results; // places of ports in `ports` and `pinned`
    uint64_t inputBytes = 0, endBytes = 0; // inputs, then results
    std::vector<Early> early;
    size_t earlyBehind = 0;   // calls after which it is written; 0: there is none
    uint64_t pinnedBytes = 0; // endBytes and what comes early
    std::vector<Step> steps;
    std::vector<std::vector<uint32_t>> waits; // of each step; empty: for the one before
    std::vector<Event> events;                // one before each step and one after all; with a profile
    std::array<Event, 2> around{};            // before and after all
    std::array<GraphExec, 2> graphs{};        // of calls up to `earlyBehind`, and of the rest
    bool warm = false;                        // has run once
    bool timed = false;                       // and was waited for
  };

  /// What was put on the stream and may not be done: a run, or (null) a write of state, or
  /// (with `read`) its copy to the host.
  struct Flight {
    uint64_t number = 0;
    Prepared *prepared = nullptr;
    uint64_t begin = 0, end = 0; // its bytes of `pinned`
    std::span<Tensor> results;
    Tensor *read = nullptr;            // null again when it has its value
    uint64_t from = 0;                 // of a read: where it lies in `pinned`
    uint64_t run = 0;                  // of a read that ends early: the run that brings it
    const StateEntry *wrote = nullptr; // of a write
  };
  static constexpr size_t kFlights = 512;       // a control step of 100 layers reads and writes 300 entries
  static constexpr uint64_t kMovedLater = 4096; // bytes: rates, windows, statistics go with the stream

  CudaMachine(Executable executable, const CudaOptions &options, std::unique_ptr<Gpu> gpu);
  // Loading (CudaPrepare.cpp).
  absl::Status load();
  absl::Status tuneProducts();
  void placePorts();
  void placeEarly(Prepared &prepared) const;
  uint64_t scratchBytes() const;
  uint64_t workspaceBytes() const;
  absl::Status checkRoom(uint64_t scratchNow);
  absl::Status allocate();
  absl::Status prepare(Prepared &prepared);
  void planBranches(Prepared &prepared) const;
  absl::StatusOr<Step> prepareStep(const Call &call, const Prepared &prepared);
  void setParameters(Step &step) const;
  absl::Status checkParameters(const Step &step) const;
  unsigned blocksOf(const Call &call) const;
  DevicePointer addressOf(const Operand &operand, const Prepared &prepared) const;
  absl::Status makeEvents();
  absl::Status makeEvent(Event &event, unsigned flags);
  // Measuring (CudaTimes.cpp).
  absl::Status measureCeilings();
  absl::Status fillArena(uint64_t bytes);
  absl::StatusOr<double> productSeconds(int64_t size);
  absl::StatusOr<double> secondsOf(int repeats, const std::function<absl::Status()> &work);
  // Running.
  std::pair<size_t, size_t> stepsOf(const Prepared &prepared, size_t part) const;
  absl::Status enqueue(Prepared &prepared, size_t part, bool captured = false);
  absl::Status wait(const std::vector<uint32_t> &steps, const std::vector<std::vector<GraphNode>> &nodes);
  absl::StatusOr<std::vector<GraphNode>> lastNodes();
  absl::Status launch(const Step &step);
  absl::Status startCode(const Step &step);
  absl::Status afterCall(const Prepared &prepared, const Step &step);
  absl::StatusOr<GraphNode> clearCounters();
  absl::Status capture(Prepared &prepared);
  absl::Status capture(Prepared &prepared, size_t part);
  absl::Status inspect(const Prepared &prepared);
  // What is under way (CudaFlights.cpp).
  bool oneByOne() const { return options.synchronous || options.guard || profile.on(); }
  absl::StatusOr<uint64_t> claim(uint64_t bytes);
  absl::Status submit(Prepared &prepared, uint64_t begin);
  absl::Status runCalls(Prepared &prepared, uint64_t begin);
  absl::Status bringEarly(const Prepared &prepared, uint64_t begin);
  bool readsEarly(Flight &flight, const StateEntry &entry) const;
  void land(Flight &flight);
  absl::Status landUntil(uint64_t number);
  absl::Status lost(const absl::Status &status);
  absl::Status refresh();
  bool isPreparedFrom(const StateEntry &entry) const;
  absl::StatusOr<uint64_t> takeOff(Prepared *prepared, uint64_t begin, uint64_t bytes,
                                   std::span<Tensor> results);
  absl::Status abandon(const absl::Status &why);
  std::string namesUnderWay() const;
  absl::Status writeLater(const StateEntry &entry, const Tensor &value);
  absl::StatusOr<const StateEntry *> stateOf(std::string_view name) const;

  Executable exe;
  CudaOptions options;
  std::unique_ptr<Gpu> gpu; // outlives what follows
  Modules modules;
  Products products;
  DevicePointer state = 0, arena = 0, ports = 0, scratch = 0;
  std::byte *pinned = nullptr; // a ring of `ringBytes`
  uint64_t portBytes = 0, ringBytes = 0, scratchAll = 0;
  uint64_t freeAtStart = 0; // of the device, before anything was allocated or loaded
  std::deque<Flight> flights;
  std::array<Event, kFlights> landed{};  // of flight n: landed[n % kFlights]
  std::array<Event, kFlights> arrived{}; // and of what it brings early
  uint64_t startedRuns = 0, nextByte = 0;
  Prepared *preparation = nullptr; // program `prepare`: what follows from state alone
  bool stale = true;               // it must run before the next start
  std::map<std::string, Prepared, std::less<>> programs;
  std::map<std::string, size_t, std::less<>> stateNumbers;
  Profile profile;
};

} // namespace weft::rt::cuda
