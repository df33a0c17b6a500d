//===- ExecutableCheck.cpp ------------------------------------------------===//
#include "runtime/core/ExecutableCheck.h"

#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

constexpr uint64_t kLargestBytes = uint64_t(1) << 62;
constexpr int64_t kLargestSize = int64_t(1) << 40; // of one dimension, row or stride
constexpr const char *kOperandNames[] = {"A", "B", "C"};
constexpr uint32_t kLargestBlock = 1024;    // threads
constexpr uint32_t kLargestShared = 232448; // bytes a block can have on sm_90
constexpr size_t kLargestMapRank = 5;       // of a tensor map

template <typename... Parts> absl::Status invalid(const Parts &...parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

bool inside(uint64_t offset, uint64_t bytes, uint64_t space) {
  return offset <= space && bytes <= space - offset;
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    absl::StrAppend(&text, i ? ", " : "", shape[i]);
  return text + "]";
}

/// Bytes of `rows` rows of `columns` elements, `ld` apart, in `batch` blocks.
std::optional<uint64_t> stridedBytes(int64_t rows, int64_t columns, int64_t ld, int64_t batch, int64_t stride,
                                     ElementType type) {
  if (rows < 1 || columns < 1 || ld < columns || batch < 1 || stride < 0)
    return std::nullopt;
  for (int64_t size : {rows, columns, ld, batch, stride})
    if (size > kLargestSize)
      return std::nullopt;
  unsigned __int128 last = static_cast<unsigned __int128>(rows - 1) * static_cast<uint64_t>(ld) +
                           static_cast<uint64_t>(columns) +
                           static_cast<unsigned __int128>(batch - 1) * static_cast<uint64_t>(stride);
  if (last > kLargestBytes / sizeOf(type))
    return std::nullopt;
  return static_cast<uint64_t>(last) * sizeOf(type);
}

/// Whether the slices of `state` are slices of its whole and give its shape.
bool slicesFit(const StateEntry &state) {
  auto rank = static_cast<int64_t>(state.fullShape.size());
  if (rank == 0)
    return true;
  if (state.firstAxis < 0 || state.axisCount < 1 || state.axisCount > rank ||
      state.firstAxis > rank - state.axisCount || !denseBytes(state.type, state.fullShape))
    return false;
  auto first = state.fullShape.begin() + state.firstAxis, last = first + state.axisCount;
  int64_t places = std::accumulate(first, last, int64_t{1}, std::multiplies<>()), before = -1;
  for (int64_t place : state.kept)
    if (place <= std::exchange(before, place) || place >= places)
      return false;
  std::vector<int64_t> shape(state.fullShape.begin(), first);
  shape.push_back(static_cast<int64_t>(state.kept.size()));
  shape.insert(shape.end(), last, state.fullShape.end());
  return shape == state.shape;
}

absl::Status checkStates(const Executable &executable) {
  if (executable.stateBytes > kLargestBytes || executable.arenaBytes > kLargestBytes)
    return invalid("executable: state and arena may have at most 2^62 bytes; found ", executable.stateBytes,
                   " and ", executable.arenaBytes);
  std::set<std::string_view> names;
  for (size_t i = 0; i < executable.states.size(); ++i) {
    const StateEntry &state = executable.states[i];
    std::string where = absl::StrCat("states[", i, "] (", state.name, ")");
    if (!names.insert(state.name).second)
      return invalid(where, ": the name occurs twice");
    std::optional<uint64_t> bytes = denseBytes(state.type, state.shape);
    if (!bytes)
      return invalid(where, ".shape: ", shapeText(state.shape), " is no shape of a tensor");
    if (state.init.kind == InitRule::Kind::RopeTable &&
        (state.shape.size() != 3 || state.shape[1] < 1 || state.shape[2] != 2))
      return invalid(where, ".shape: expected [positions, pairs, 2] for a table of rotations, found ",
                     shapeText(state.shape));
    if (state.offset % sizeOf(state.type) != 0)
      return invalid(where, ".offset: expected a multiple of ", sizeOf(state.type), ", found ", state.offset);
    if (!inside(state.offset, *bytes, executable.stateBytes))
      return invalid(where, ".offset: ", *bytes, " bytes at ", state.offset, " leave the state space of ",
                     executable.stateBytes, " bytes");
    if (!slicesFit(state))
      return invalid(where, ".slices: expected increasing places of axes of the whole that give the shape ",
                     shapeText(state.shape), ", found slices of ", shapeText(state.fullShape));
    if (!state.axes.empty() && state.axes.size() != state.shape.size())
      return invalid(where, ".axes: expected ", state.shape.size(), " names, found ", state.axes.size());
  }
  return absl::OkStatus();
}

/// What a GPU kernel asks of the machine.
absl::Status checkLaunch(const GpuLaunch &launch, const std::string &where) {
  if (launch.threads < 1 || launch.threads > kLargestBlock || launch.sharedBytes > kLargestShared)
    return invalid(where, ".launch: expected 1 to ", kLargestBlock, " threads and at most ", kLargestShared,
                   " bytes of shared memory, found ", launch.threads, " and ", launch.sharedBytes);
  for (size_t i = 0; i < launch.maps.size(); ++i) {
    const TensorMap &map = launch.maps[i];
    size_t rank = map.sizes.size();
    if (rank < 1 || rank > kLargestMapRank || map.strides.size() + 1 != rank || map.box.size() != rank)
      return invalid(where, ".launch.maps[", i, "]: expected 1 to ", kLargestMapRank,
                     " sizes, a stride less and a box of as many, found ", rank, ", ", map.strides.size(),
                     " and ", map.box.size());
    if (map.swizzle != 0 && map.swizzle != 32 && map.swizzle != 64 && map.swizzle != 128)
      return invalid(where, ".launch.maps[", i, "].swizzle: expected 0, 32, 64 or 128 bytes, found ",
                     map.swizzle);
  }
  return absl::OkStatus();
}

absl::Status checkKernels(const Executable &executable) {
  for (size_t i = 0; i < executable.kernels.size(); ++i) {
    const Kernel &kernel = executable.kernels[i];
    std::string where = absl::StrCat("kernels[", i, "] (", kernel.name, ")");
    if (kernel.kind == Kernel::Kind::Code && (kernel.symbol.empty() || kernel.object.empty()))
      return invalid(where, ": a code kernel needs a symbol and an object; found symbol '", kernel.symbol,
                     "' and ", kernel.object.size(), " bytes");
    if (kernel.form != Kernel::Form::Host)
      if (absl::Status status = checkLaunch(kernel.launch, where); !status.ok())
        return status;
    if (kernel.scratchBytes > (uint64_t(1) << 40))
      return invalid(where, ".scratch: expected at most 2^40 bytes, found ", kernel.scratchBytes);
    if (kernel.kind != Kernel::Kind::Gemm)
      continue;
    for (int operand = 0; operand < 3; ++operand)
      if (!gemmOperandBytes(kernel.gemm, operand))
        return invalid(where, ".gemm: m ", kernel.gemm.m, ", n ", kernel.gemm.n, ", k ", kernel.gemm.k,
                       ", batch ", kernel.gemm.batch, " do not fit row length or stride of operand ",
                       kOperandNames[operand]);
  }
  return absl::OkStatus();
}

absl::Status checkPorts(const std::vector<Port> &ports, const std::string &where) {
  for (size_t i = 0; i < ports.size(); ++i)
    if (!denseBytes(ports[i].type, ports[i].shape))
      return invalid(where, "[", i, "] (", ports[i].name, ").shape: ", shapeText(ports[i].shape),
                     " is no shape of a tensor");
  return absl::OkStatus();
}

absl::Status checkOperand(const Executable &executable, const Program &program, const Operand &operand,
                          const std::string &where) {
  if (operand.space == Space::State || operand.space == Space::Arena) {
    bool state = operand.space == Space::State;
    uint64_t space = state ? executable.stateBytes : executable.arenaBytes;
    if (inside(operand.offset, operand.bytes, space))
      return absl::OkStatus();
    return invalid(where, ".offset: ", operand.bytes, " bytes at ", operand.offset, " leave the ",
                   state ? "state" : "arena", " of ", space, " bytes");
  }
  bool input = operand.space == Space::Input;
  const std::vector<Port> &ports = input ? program.inputs : program.results;
  std::string_view kind = input ? "input" : "result";
  if (operand.offset >= ports.size())
    return invalid(where, ".offset: expected the number of one of ", ports.size(), " ", std::string(kind),
                   "s, found ", operand.offset);
  const Port &port = ports[operand.offset];
  if (!inside(operand.start, operand.bytes, *denseBytes(port.type, port.shape)))
    return invalid(where, ".bytes: ", operand.bytes, " bytes at ", operand.start, " leave ",
                   std::string(kind), " ", port.name, ", which has ", *denseBytes(port.type, port.shape));
  return absl::OkStatus();
}

/// What the runtime's own kernels need of their operands.
absl::Status checkRuntimeKernel(const Kernel &kernel, const Call &call, const std::string &where) {
  size_t expected = kernel.kind == Kernel::Kind::Gemm   ? kernel.gemm.operandCount()
                    : kernel.kind == Kernel::Kind::Zero ? 1
                                                        : 2;
  if (call.operands.size() != expected)
    return invalid(where, ".operands: kernel ", kernel.name, " takes ", expected, ", found ",
                   call.operands.size());
  // Of a product with GeluGrad the last is the auxiliary, which it reads.
  bool readsLast = kernel.kind == Kernel::Kind::Gemm && kernel.gemm.epilogue == Gemm::Epilogue::GeluGrad;
  size_t written = expected - (readsLast ? 2 : 1);
  if (call.operands[written].space == Space::Input)
    return invalid(where, ": kernel ", kernel.name, " writes operand ", written, ", which is an input");
  if (kernel.kind == Kernel::Kind::Copy && call.operands[0].bytes != call.operands[1].bytes)
    return invalid(where, ": a copy needs equal sizes; found ", call.operands[0].bytes, " and ",
                   call.operands[1].bytes, " bytes");
  if (kernel.kind == Kernel::Kind::Gemm)
    for (int i = 0; i < static_cast<int>(expected); ++i)
      if (uint64_t need = *gemmOperandBytes(kernel.gemm, std::min(i, 2));
          call.operands[static_cast<size_t>(i)].bytes < need)
        return invalid(where, ".operands[", i, "].bytes: the product needs ", need, ", found ",
                       call.operands[static_cast<size_t>(i)].bytes);
  return absl::OkStatus();
}

absl::Status checkProgram(const Executable &executable, const Program &program, const std::string &at) {
  if (absl::Status status = checkPorts(program.inputs, at + ".inputs"); !status.ok())
    return status;
  if (absl::Status status = checkPorts(program.results, at + ".results"); !status.ok())
    return status;
  for (size_t i = 0; i < program.calls.size(); ++i) {
    const Call &call = program.calls[i];
    std::string where = absl::StrCat(at, ".calls[", i, "]");
    if (call.kernel >= executable.kernels.size())
      return invalid(where, ".kernel: expected the number of one of ", executable.kernels.size(),
                     " kernels, found ", call.kernel);
    if (call.grid < 0)
      return invalid(where, ".grid: expected 0 or more, found ", call.grid);
    for (size_t j = 0; j < call.operands.size(); ++j)
      if (absl::Status status =
              checkOperand(executable, program, call.operands[j], absl::StrCat(where, ".operands[", j, "]"));
          !status.ok())
        return status;
    const Kernel &kernel = executable.kernels[call.kernel];
    for (const TensorMap &map : kernel.launch.maps)
      if (map.operand >= call.operands.size())
        return invalid(where, ": a tensor map of kernel ", kernel.name, " reads operand ", map.operand,
                       " of ", call.operands.size());
    if (kernel.kind != Kernel::Kind::Code)
      if (absl::Status status = checkRuntimeKernel(kernel, call, where); !status.ok())
        return status;
  }
  return absl::OkStatus();
}

} // namespace

std::optional<uint64_t> denseBytes(ElementType type, const std::vector<int64_t> &shape) {
  uint64_t bytes = sizeOf(type);
  for (int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes) ||
        bytes > kLargestBytes)
      return std::nullopt;
  return bytes;
}

std::optional<uint64_t> gemmOperandBytes(const Gemm &gemm, int operand) {
  switch (operand) {
  case 0:
    return gemm.transA ? stridedBytes(gemm.k, gemm.m, gemm.lda, gemm.batch, gemm.strideA, gemm.typeA)
                       : stridedBytes(gemm.m, gemm.k, gemm.lda, gemm.batch, gemm.strideA, gemm.typeA);
  case 1:
    return gemm.transB ? stridedBytes(gemm.n, gemm.k, gemm.ldb, gemm.batch, gemm.strideB, gemm.typeB)
                       : stridedBytes(gemm.k, gemm.n, gemm.ldb, gemm.batch, gemm.strideB, gemm.typeB);
  default:
    return stridedBytes(gemm.m, gemm.n, gemm.ldc, gemm.batch, gemm.strideC, gemm.typeC);
  }
}

absl::Status checkExecutable(const Executable &executable) {
  if (absl::Status status = checkStates(executable); !status.ok())
    return status;
  if (absl::Status status = checkKernels(executable); !status.ok())
    return status;
  std::set<std::string_view> names;
  for (size_t i = 0; i < executable.programs.size(); ++i) {
    const Program &program = executable.programs[i];
    std::string at = absl::StrCat("programs[", i, "] (", program.name, ")");
    if (!names.insert(program.name).second)
      return invalid(at, ": the name occurs twice");
    if (absl::Status status = checkProgram(executable, program, at); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

} // namespace weft::rt
