//===- Linker.h - PTX and libraries to one cubin, by nvJitLink --*- C++ -*-===//
//
// For kernels that call device functions of the executable's libraries. nvJitLink
// drops `setmaxnreg`, so that kernels with it can't be linked.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Executable.h"
#include "runtime/cuda/Abi.h"

namespace weft::rt::cuda {

/// nvJitLink's functions, named as they are without the prefix.
struct LinkLibrary {
  int (*create)(LinkHandle *handle, uint32_t count, const char **options);
  int (*destroy)(LinkHandle *handle);
  int (*addData)(LinkHandle handle, LinkInput type, const void *data, size_t bytes, const char *name);
  int (*complete)(LinkHandle handle);
  int (*cubinBytes)(LinkHandle handle, size_t *bytes);
  int (*cubin)(LinkHandle handle, void *cubin);
  int (*errorLogBytes)(LinkHandle handle, size_t *bytes);
  int (*errorLog)(LinkHandle handle, char *log);
  int (*version)(unsigned *major, unsigned *minor);

  std::string identity; // "nvJitLink 13.0"
};

/// Loaded once. Errors: NotFound, FailedPrecondition.
absl::StatusOr<const LinkLibrary *> linkLibrary();

/// The cubin of `kernel`'s PTX with `libraries`, for `chip`. Errors:
/// InvalidArgument names kernel and library, with the linker's messages.
absl::StatusOr<std::string> linkKernel(const LinkLibrary &linker, const Kernel &kernel,
                                       const std::vector<rt::Library> &libraries, const std::string &chip);

} // namespace weft::rt::cuda
