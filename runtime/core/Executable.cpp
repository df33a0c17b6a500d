//===- Executable.cpp - Executables as files --------------------*- C++ -*-===//
//
// u64 little-endian length of the header, the header (JSON), then the kernels'
// objects, equal ones once, then the u64 checksum of all before it. A kernel's
// `object` is [start, bytes] after the header; an operand is [space, offset, bytes,
// start].
//
//===----------------------------------------------------------------------===//
#include "runtime/Executable.h"

#include "runtime/core/Checksum.h"
#include "runtime/core/ExecutableCheck.h"
#include "runtime/core/Json.h"

#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

constexpr int64_t kVersion = 2;
constexpr std::array<const char *, 4> kSpaces{"state", "arena", "input", "result"};
constexpr std::array<const char *, 4> kKinds{"code", "gemm", "zero", "copy"};
constexpr std::array<const char *, 3> kForms{"host", "ptx", "cubin"};
constexpr std::array<const char *, 2> kLibraryForms{"ptx", "lto_ir"};
constexpr std::array<const char *, 2> kEpilogues{"none", "gelu_grad"};
constexpr std::array<const char *, 6> kRoles{"parameter", "gradient", "moment", "cache", "table", "control"};
constexpr std::array<const char *, 6> kInits{"constant",  "normal",     "uniform",
                                             "truncated", "orthogonal", "rope_table"};
constexpr std::array<const char *, 5> kTypes{"F32", "F64", "BF16", "I32", "I64"};

template <size_t N, typename Enum> const char *word(const std::array<const char *, N> &words, Enum value) {
  return words[static_cast<size_t>(value)];
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

Json toJson(const StateEntry &state) {
  Json json{{"name", state.name},
            {"role", word(kRoles, state.role)},
            {"type", word(kTypes, state.type)},
            {"shape", state.shape},
            {"axes", state.axes},
            {"offset", state.offset},
            {"init", {{"kind", word(kInits, state.init.kind)}, {"a", state.init.a}, {"b", state.init.b}}}};
  if (!state.fullShape.empty())
    json["slices"] = {{"full_shape", state.fullShape},
                      {"first_axis", state.firstAxis},
                      {"axis_count", state.axisCount},
                      {"kept", state.kept}};
  return json;
}

Json toJson(const Gemm &gemm) {
  return {{"m", gemm.m},
          {"n", gemm.n},
          {"k", gemm.k},
          {"lda", gemm.lda},
          {"ldb", gemm.ldb},
          {"ldc", gemm.ldc},
          {"batch", gemm.batch},
          {"stride_a", gemm.strideA},
          {"stride_b", gemm.strideB},
          {"stride_c", gemm.strideC},
          {"trans_a", gemm.transA},
          {"trans_b", gemm.transB},
          {"accumulate", gemm.accumulate},
          {"separate", gemm.separate},
          {"type_a", word(kTypes, gemm.typeA)},
          {"type_b", word(kTypes, gemm.typeB)},
          {"type_c", word(kTypes, gemm.typeC)},
          {"epilogue", word(kEpilogues, gemm.epilogue)}};
}

Json toJson(const std::vector<Port> &ports) {
  Json list = Json::array();
  for (const Port &port : ports)
    list.push_back({{"name", port.name}, {"type", word(kTypes, port.type)}, {"shape", port.shape}});
  return list;
}

Json toJson(const Program &program) {
  Json calls = Json::array();
  for (const Call &call : program.calls) {
    Json operands = Json::array();
    for (const Operand &operand : call.operands)
      operands.push_back(Json::array(
          {word(kSpaces, operand.space), operand.offset, operand.bytes, operand.start, operand.written}));
    calls.push_back({{"kernel", call.kernel},
                     {"grid", call.grid},
                     {"beside", call.beside},
                     {"operands", std::move(operands)}});
  }
  return {{"name", program.name},
          {"inputs", toJson(program.inputs)},
          {"results", toJson(program.results)},
          {"calls", std::move(calls)}};
}

Json toJson(const GpuLaunch &launch) {
  Json maps = Json::array();
  for (const TensorMap &map : launch.maps)
    maps.push_back({{"operand", map.operand},
                    {"type", word(kTypes, map.type)},
                    {"sizes", map.sizes},
                    {"strides", map.strides},
                    {"box", map.box},
                    {"swizzle", map.swizzle}});
  return {{"threads", launch.threads}, {"shared", launch.sharedBytes}, {"maps", std::move(maps)}};
}

/// [start, bytes] of `object` among the file's objects, equal ones once.
Json place(std::string_view object, std::map<std::string_view, uint64_t> &starts, std::string &objects) {
  auto [found, isNew] = starts.emplace(object, objects.size());
  if (isNew)
    objects += object;
  return Json::array({found->second, object.size()});
}

Json toJson(const Kernel &kernel, std::map<std::string_view, uint64_t> &starts, std::string &objects) {
  Json value = {{"name", kernel.name}, {"hash", kernel.hash}, {"kind", word(kKinds, kernel.kind)}};
  value["scratch"] = kernel.scratchBytes;
  if (kernel.flops > 0)
    value["flops"] = kernel.flops;
  if (kernel.kind == Kernel::Kind::Gemm)
    value["gemm"] = toJson(kernel.gemm);
  if (kernel.kind != Kernel::Kind::Code)
    return value;
  value["symbol"] = kernel.symbol;
  value["object"] = place(kernel.object, starts, objects);
  if (kernel.form == Kernel::Form::Host)
    return value;
  value["form"] = word(kForms, kernel.form);
  value["launch"] = toJson(kernel.launch);
  value["link"] = kernel.link;
  return value;
}

absl::Status checkNumbers(const Executable &executable) {
  for (const Kernel &kernel : executable.kernels)
    if (!std::isfinite(kernel.flops))
      return absl::InvalidArgumentError(
          absl::StrCat("kernel ", kernel.name, ": its FLOPs must be finite; found ", kernel.flops));
  for (const StateEntry &state : executable.states)
    if (!std::isfinite(state.init.a) || !std::isfinite(state.init.b))
      return absl::InvalidArgumentError(absl::StrCat("state ", state.name,
                                                     ": the initial values' settings must be finite; found ",
                                                     state.init.a, " and ", state.init.b));
  return absl::OkStatus();
}

void appendLength(std::string &file, uint64_t length) {
  for (int shift = 0; shift < 64; shift += 8)
    file.push_back(static_cast<char>(length >> shift & 0xff));
}

/// What appendLength wrote at `at`.
uint64_t naturalAt(std::string_view file, size_t at) {
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof(uint64_t); ++i)
    number |= static_cast<uint64_t>(static_cast<unsigned char>(file[at + i])) << (8 * i);
  return number;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Reads typed members of a JSON value. The first error stays in `status`; after
/// it everything reads as zero, so that callers check once, at the end.
class Fields {
public:
  Fields(const Json &value, std::string path, absl::Status &status)
      : value(value), path(std::move(path)), status(status) {}

  bool has(const char *key) const { return value.is_object() && value.contains(key); }
  std::string text(const char *key) const {
    const Json *found = member(key);
    return found && expect(found->is_string(), key, "a string", *found) ? found->get<std::string>() : "";
  }
  bool flag(const char *key) const {
    const Json *found = member(key);
    return found && expect(found->is_boolean(), key, "true or false", *found) && found->get<bool>();
  }
  double number(const char *key) const {
    const Json *found = member(key);
    return found && expect(found->is_number(), key, "a number", *found) ? found->get<double>() : 0;
  }
  int64_t integer(const char *key) const {
    const Json *found = member(key);
    return found ? integerOf(*found, key) : 0;
  }
  uint64_t natural(const char *key) const {
    const Json *found = member(key);
    return found ? naturalOf(*found, key) : 0;
  }
  std::vector<int64_t> integers(const char *key) const {
    std::vector<int64_t> numbers;
    for (const Json &item : list(key))
      numbers.push_back(integerOf(item, key));
    return numbers;
  }
  std::vector<std::string> texts(const char *key) const {
    std::vector<std::string> words;
    for (const Json &item : list(key))
      words.push_back(expect(item.is_string(), key, "strings", item) ? item.get<std::string>() : "");
    return words;
  }
  template <typename Enum, size_t N>
  Enum oneOf(const char *key, const std::array<const char *, N> &words) const {
    return wordOf<Enum>(text(key), key, words);
  }
  template <typename Enum, size_t N>
  Enum wordOf(const std::string &found, const char *key, const std::array<const char *, N> &words) const {
    for (size_t i = 0; i < N; ++i)
      if (found == words[i])
        return static_cast<Enum>(i);
    expect(false, key, "a known word", Json(found));
    return Enum{};
  }
  /// A member's items; none if it is no list.
  const Json &list(const char *key) const {
    static const Json kNone = Json::array();
    const Json *found = member(key);
    return found && expect(found->is_array(), key, "a list", *found) ? *found : kNone;
  }
  Fields object(const char *key) const {
    static const Json kNone = Json::object();
    const Json *found = member(key);
    bool good = found && expect(found->is_object(), key, "an object", *found);
    return {good ? *found : kNone, absl::StrCat(path, ".", key), status};
  }
  /// The item `index` of the list `key`.
  Fields item(const Json &item, const char *key, size_t index) const {
    return {item, absl::StrCat(path, ".", key, "[", index, "]"), status};
  }
  template <typename T> std::vector<T> naturals(const char *key) const {
    std::vector<T> numbers;
    for (const Json &item : list(key))
      numbers.push_back(naturalUpTo<T>(item, key));
    return numbers;
  }
  template <typename T> T naturalUpTo(const Json &item, const char *key) const {
    uint64_t found = naturalOf(item, key);
    return expect(found <= std::numeric_limits<T>::max(), key, "a smaller number", item)
               ? static_cast<T>(found)
               : T{};
  }
  uint32_t small(const char *key) const {
    const Json *found = member(key);
    return found ? naturalUpTo<uint32_t>(*found, key) : 0;
  }
  uint64_t naturalOf(const Json &item, const char *key) const {
    return expect(item.is_number_unsigned(), key, "a whole number of 0 or more", item) ? item.get<uint64_t>()
                                                                                       : 0;
  }
  bool expect(bool good, const char *key, const char *expected, const Json &found) const {
    if (!good && status.ok())
      status = absl::DataLossError(
          absl::StrCat(path, ".", key, ": expected ", expected, ", found ", dumpJson(found).substr(0, 60)));
    return good;
  }

private:
  int64_t integerOf(const Json &item, const char *key) const {
    bool fits = item.is_number_integer() &&
                (!item.is_number_unsigned() || item.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
    return expect(fits, key, "a whole number", item) ? item.get<int64_t>() : 0;
  }
  const Json *member(const char *key) const {
    if (!value.is_object()) {
      expect(false, key, "a member of an object", value);
      return nullptr;
    }
    auto found = value.find(key);
    if (found != value.end())
      return &*found;
    if (status.ok())
      status = absl::DataLossError(absl::StrCat(path, ".", key, ": missing"));
    return nullptr;
  }

  const Json &value;
  std::string path;
  absl::Status &status;
};

StateEntry readState(Fields fields) {
  StateEntry state;
  state.name = fields.text("name");
  state.role = fields.oneOf<StateEntry::Role>("role", kRoles);
  state.type = fields.oneOf<ElementType>("type", kTypes);
  state.shape = fields.integers("shape");
  state.axes = fields.texts("axes");
  state.offset = fields.natural("offset");
  Fields init = fields.object("init");
  state.init.kind = init.oneOf<InitRule::Kind>("kind", kInits);
  state.init.a = init.number("a");
  state.init.b = init.number("b");
  if (fields.has("slices")) {
    Fields slices = fields.object("slices");
    state.fullShape = slices.integers("full_shape");
    state.firstAxis = slices.integer("first_axis");
    state.axisCount = slices.integer("axis_count");
    state.kept = slices.integers("kept");
  }
  return state;
}

Gemm readGemm(const Fields &fields) {
  Gemm gemm;
  gemm.m = fields.integer("m");
  gemm.n = fields.integer("n");
  gemm.k = fields.integer("k");
  gemm.lda = fields.integer("lda");
  gemm.ldb = fields.integer("ldb");
  gemm.ldc = fields.integer("ldc");
  gemm.batch = fields.integer("batch");
  gemm.strideA = fields.integer("stride_a");
  gemm.strideB = fields.integer("stride_b");
  gemm.strideC = fields.integer("stride_c");
  gemm.transA = fields.flag("trans_a");
  gemm.transB = fields.flag("trans_b");
  gemm.accumulate = fields.flag("accumulate");
  gemm.separate = fields.flag("separate");
  gemm.typeA = fields.oneOf<ElementType>("type_a", kTypes);
  gemm.typeB = fields.oneOf<ElementType>("type_b", kTypes);
  gemm.typeC = fields.oneOf<ElementType>("type_c", kTypes);
  gemm.epilogue = fields.oneOf<Gemm::Epilogue>("epilogue", kEpilogues);
  return gemm;
}

GpuLaunch readLaunch(const Fields &fields) {
  GpuLaunch launch;
  launch.threads = fields.small("threads");
  launch.sharedBytes = fields.small("shared");
  for (const Json &item : fields.list("maps")) {
    Fields map = fields.item(item, "maps", launch.maps.size());
    TensorMap read;
    read.operand = map.small("operand");
    read.type = map.oneOf<ElementType>("type", kTypes);
    read.sizes = map.naturals<uint64_t>("sizes");
    read.strides = map.naturals<uint64_t>("strides");
    read.box = map.naturals<uint32_t>("box");
    read.swizzle = map.small("swizzle");
    launch.maps.push_back(std::move(read));
  }
  return launch;
}

/// The bytes that `[start, bytes]` names.
std::string readObject(const Fields &fields, std::string_view objects) {
  const Json &place = fields.list("object");
  if (!fields.expect(place.size() == 2, "object", "[start, bytes]", place))
    return {};
  uint64_t start = fields.naturalOf(place[0], "object"), bytes = fields.naturalOf(place[1], "object");
  bool inside = start <= objects.size() && bytes <= objects.size() - start;
  if (!fields.expect(inside, "object", "a range inside the file's objects", place))
    return {};
  return std::string(objects.substr(start, bytes));
}

Library readLibrary(Fields fields, std::string_view objects) {
  Library library;
  library.name = fields.text("name");
  library.form = fields.oneOf<Library::Form>("form", kLibraryForms);
  library.object = readObject(fields, objects);
  return library;
}

Kernel readKernel(Fields fields, std::string_view objects) {
  Kernel kernel;
  kernel.name = fields.text("name");
  kernel.hash = fields.text("hash");
  kernel.kind = fields.oneOf<Kernel::Kind>("kind", kKinds);
  kernel.scratchBytes = fields.natural("scratch");
  kernel.flops = fields.has("flops") ? fields.number("flops") : 0;
  if (kernel.kind == Kernel::Kind::Gemm)
    kernel.gemm = readGemm(fields.object("gemm"));
  if (kernel.kind != Kernel::Kind::Code)
    return kernel;
  kernel.symbol = fields.text("symbol");
  kernel.object = readObject(fields, objects);
  if (!fields.has("form"))
    return kernel;
  kernel.form = fields.oneOf<Kernel::Form>("form", kForms);
  kernel.launch = readLaunch(fields.object("launch"));
  kernel.link = fields.flag("link");
  return kernel;
}

std::vector<Port> readPorts(const Json &list, const std::string &path, absl::Status &status) {
  std::vector<Port> ports;
  for (const Json &item : list) {
    Fields fields(item, absl::StrCat(path, "[", ports.size(), "]"), status);
    Port port;
    port.name = fields.text("name");
    port.type = fields.oneOf<ElementType>("type", kTypes);
    port.shape = fields.integers("shape");
    ports.push_back(std::move(port));
  }
  return ports;
}

Call readCall(const Fields &fields) {
  Call call;
  uint64_t kernel = fields.natural("kernel");
  if (fields.expect(kernel <= UINT32_MAX, "kernel", "the number of a kernel", Json(kernel)))
    call.kernel = static_cast<uint32_t>(kernel);
  call.grid = fields.integer("grid");
  call.beside = fields.flag("beside");
  for (const Json &item : fields.list("operands")) {
    bool good = item.is_array() && item.size() == 5 && item[0].is_string() && item[4].is_boolean();
    if (!fields.expect(good, "operands", "[space, offset, bytes, start, written]", item))
      return call;
    call.operands.push_back({fields.wordOf<Space>(item[0].get<std::string>(), "operands", kSpaces),
                             fields.naturalOf(item[1], "operands"), fields.naturalOf(item[2], "operands"),
                             fields.naturalOf(item[3], "operands"), item[4].get<bool>()});
  }
  return call;
}

Program readProgram(const Fields &fields, const std::string &path, absl::Status &status) {
  Program program;
  program.name = fields.text("name");
  program.inputs = readPorts(fields.list("inputs"), path + ".inputs", status);
  program.results = readPorts(fields.list("results"), path + ".results", status);
  for (const Json &item : fields.list("calls"))
    program.calls.push_back(
        readCall(Fields(item, absl::StrCat(path, ".calls[", program.calls.size(), "]"), status)));
  return program;
}

/// Total bytes of all kernels' objects: a small file whose kernels share one
/// object must not grow without bound when each gets its own copy.
constexpr uint64_t kLargestObjects = uint64_t(1) << 30;

Executable readExecutable(const Json &header, std::string_view objects, absl::Status &status) {
  Executable executable;
  Fields fields(header, "header", status);
  int64_t version = fields.integer("weft_executable");
  fields.expect(version == kVersion, "weft_executable", "version 2", Json(version));
  executable.model = fields.text("model");
  executable.target = fields.text("target");
  executable.build = fields.text("build");
  executable.stateBytes = fields.natural("state_bytes");
  executable.arenaBytes = fields.natural("arena_bytes");
  for (const Json &item : fields.list("states"))
    executable.states.push_back(
        readState(Fields(item, absl::StrCat("states[", executable.states.size(), "]"), status)));
  uint64_t objectBytes = 0;
  for (const Json &item : fields.list("kernels")) {
    std::string path = absl::StrCat("kernels[", executable.kernels.size(), "]");
    executable.kernels.push_back(readKernel(Fields(item, path, status), objects));
    objectBytes += executable.kernels.back().object.size();
    if (!fields.expect(objectBytes <= kLargestObjects, "kernels", "at most 1 GiB of objects",
                       Json(objectBytes)))
      return executable;
  }
  if (fields.has("libraries"))
    for (const Json &item : fields.list("libraries"))
      executable.libraries.push_back(readLibrary(
          Fields(item, absl::StrCat("libraries[", executable.libraries.size(), "]"), status), objects));
  for (const Json &item : fields.list("programs")) {
    std::string path = absl::StrCat("programs[", executable.programs.size(), "]");
    executable.programs.push_back(readProgram(Fields(item, path, status), path, status));
  }
  return executable;
}

} // namespace

absl::StatusOr<std::string> serialize(const Executable &executable) {
  if (absl::Status status = checkExecutable(executable); !status.ok())
    return status;
  if (absl::Status status = checkNumbers(executable); !status.ok())
    return status;
  std::string objects;
  std::map<std::string_view, uint64_t> starts;
  Json header = {{"weft_executable", kVersion},          {"model", executable.model},
                 {"target", executable.target},          {"build", executable.build},
                 {"state_bytes", executable.stateBytes}, {"arena_bytes", executable.arenaBytes}};
  Json &states = header["states"] = Json::array();
  for (const StateEntry &state : executable.states)
    states.push_back(toJson(state));
  Json &kernels = header["kernels"] = Json::array();
  for (const Kernel &kernel : executable.kernels)
    kernels.push_back(toJson(kernel, starts, objects));
  if (!executable.libraries.empty()) {
    Json &libraries = header["libraries"] = Json::array();
    for (const Library &library : executable.libraries)
      libraries.push_back({{"name", library.name},
                           {"form", word(kLibraryForms, library.form)},
                           {"object", place(library.object, starts, objects)}});
  }
  Json &programs = header["programs"] = Json::array();
  for (const Program &program : executable.programs)
    programs.push_back(toJson(program));
  std::string text = dumpJson(header), file;
  file.reserve(2 * sizeof(uint64_t) + text.size() + objects.size());
  appendLength(file, text.size());
  file.append(text).append(objects);
  appendLength(file, checksum(file));
  return file;
}

absl::StatusOr<Executable> deserialize(std::string_view bytes) {
  if (bytes.size() < 2 * sizeof(uint64_t))
    return absl::DataLossError(absl::StrCat(
        "executable: expected 8 bytes of header length and 8 of a checksum, found a file of ", bytes.size()));
  const uint64_t length = naturalAt(bytes, 0), kept = naturalAt(bytes, bytes.size() - sizeof(uint64_t));
  bytes.remove_suffix(sizeof(uint64_t));
  if (checksum(bytes) != kept)
    return absl::DataLossError("executable: its checksum is not that of its bytes: it was changed or cut on "
                               "the way, or is no executable of this version; compile it again");
  bytes.remove_prefix(sizeof(uint64_t));
  if (length > bytes.size())
    return absl::DataLossError(absl::StrCat("executable: the header should have ", length,
                                            " bytes, but the file ends ", bytes.size(),
                                            " bytes after its length"));
  absl::StatusOr<Json> header = parseJson(bytes.substr(0, length), "executable header");
  if (!header.ok())
    return header.status();
  absl::Status status;
  Executable executable = readExecutable(*header, bytes.substr(length), status);
  if (status.ok())
    status = checkExecutable(executable);
  if (!status.ok())
    return absl::DataLossError(absl::StrCat("executable: ", std::string(status.message())));
  return executable;
}

} // namespace weft::rt
