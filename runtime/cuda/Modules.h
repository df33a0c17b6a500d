//===- Modules.h - Kernels as functions of the device -----------*- C++ -*-===//
//
// PTX becomes machine code by one of three: nvJitLink for kernels that are linked
// with libraries; else the assembler that was given (ptxas); else the driver. What
// the first two make is kept on disk; the driver keeps a cache of its own. Equal
// objects are loaded once, several at a time.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/cuda/Gpu.h"

namespace weft::rt::cuda {

struct LoadedKernel {
  Function function = nullptr; // null: no code
  int registers = 0, localBytes = 0;
  int blocksPerMultiprocessor = 0; // with its threads and shared memory
  std::string log;                 // what the driver's compiler said
};

class Modules {
public:
  explicit Modules(Gpu &gpu) : gpu(gpu) {}
  ~Modules();
  Modules(const Modules &) = delete;
  Modules &operator=(const Modules &) = delete;

  /// Loads all code of `executable`. Errors: InvalidArgument names the kernel and
  /// what the compiler or the driver said.
  absl::Status load(const Executable &executable, const CudaOptions &options);
  const LoadedKernel &kernel(uint32_t number) const { return kernels[number]; }

private:
  struct Object { // one a distinct object
    const Kernel *kernel = nullptr;
    Module module = nullptr;
    std::string log;
    absl::Status status;
    enum class Source : uint8_t { Cubin, Kept, Driver, Assembler, Linker } source = Source::Cubin;
  };
  void loadObject(Object &object, const Executable &executable, const CudaOptions &options);
  absl::StatusOr<std::string> cubinOf(Object &object, const Executable &executable,
                                      const CudaOptions &options) const;
  void loadPtx(Object &object);
  absl::Status resolve(const Kernel &kernel, const Object &object, LoadedKernel &loaded);
  void count(const Object &object);

  Gpu &gpu;
  std::vector<Object> objects;
  std::vector<LoadedKernel> kernels; // by number
};

} // namespace weft::rt::cuda
