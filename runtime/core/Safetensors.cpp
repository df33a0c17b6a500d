//===- Safetensors.cpp - Reading files of named tensors ---------*- C++ -*-===//
#include "runtime/core/Safetensors.h"

#include "runtime/core/File.h"
#include "runtime/core/Json.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft::rt {
namespace {

/// The bound of the reference reader: a longer header is taken for a lie.
constexpr uint64_t kMaxHeader = 100'000'000;

std::optional<uint64_t> bytesOf(std::string_view dtype) {
  static const std::map<std::string_view, uint64_t> kTable = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"I16", 2}, {"U16", 2}, {"F16", 2},
      {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"F32", 4},     {"F64", 8},     {"I64", 8}, {"U64", 8}};
  auto found = kTable.find(dtype);
  return found == kTable.end() ? std::nullopt : std::optional(found->second);
}

std::optional<ElementType> elementTypeOf(std::string_view dtype) {
  for (ElementType type :
       {ElementType::F32, ElementType::F64, ElementType::BF16, ElementType::I32, ElementType::I64})
    if (nameOf(type) == dtype)
      return type;
  return std::nullopt;
}

/// Reads exactly `size` bytes at `offset`. Returns 0, errno, or -1 when the file ends before.
int readExactly(int descriptor, void *into, uint64_t size, uint64_t offset) {
  auto *place = static_cast<char *>(into);
  while (size > 0) {
    ssize_t got = ::pread(descriptor, place, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return got < 0 ? errno : -1;
    place += got;
    offset += static_cast<uint64_t>(got);
    size -= static_cast<uint64_t>(got);
  }
  return 0;
}

/// Shape and offsets of one header entry.
absl::StatusOr<TensorInfo> parseEntry(const Json &entry, const std::string &what) {
  TensorInfo info;
  absl::StatusOr<std::string> dtype = stringOf(entry, "dtype", what);
  if (!dtype.ok())
    return dtype.status();
  info.dtype = *dtype;
  absl::StatusOr<const Json *> shape = memberOf(entry, "shape", what);
  if (!shape.ok())
    return shape.status();
  absl::StatusOr<const Json *> range = memberOf(entry, "data_offsets", what);
  if (!range.ok())
    return range.status();
  auto natural = [](const Json &value) { return value.is_number_unsigned(); };
  if (!(*shape)->is_array() || !std::all_of((*shape)->begin(), (*shape)->end(), natural))
    return absl::DataLossError(absl::StrCat(what, ": 'shape' is no list of sizes: ", dumpJson(**shape)));
  if (!(*range)->is_array() || (*range)->size() != 2 ||
      !std::all_of((*range)->begin(), (*range)->end(), natural))
    return absl::DataLossError(
        absl::StrCat(what, ": 'data_offsets' is no pair of bytes: ", dumpJson(**range)));
  info.begin = (**range)[0].get<uint64_t>();
  info.end = (**range)[1].get<uint64_t>();

  std::optional<uint64_t> bytes = bytesOf(info.dtype);
  if (!bytes)
    return absl::DataLossError(absl::StrCat(what, ": unknown dtype '", info.dtype, "'"));
  uint64_t product = *bytes;
  for (const Json &size : **shape) {
    const uint64_t value = size.get<uint64_t>();
    if (value > INT64_MAX || __builtin_mul_overflow(product, value, &product) || product > INT64_MAX)
      return absl::DataLossError(absl::StrCat(what, ": shape ", dumpJson(**shape), " overflows 2^63 bytes"));
    info.shape.push_back(static_cast<int64_t>(value));
  }
  if (info.begin > info.end || info.end - info.begin != product)
    return absl::DataLossError(absl::StrCat(what, ": ", info.dtype, " ", describeShape(info.shape), " takes ",
                                            product, " bytes, data_offsets say ", info.begin, " to ",
                                            info.end));
  return info;
}

/// IEEE half to double: exact.
double halfToDouble(uint16_t half) {
  const int exponent = (half >> 10) & 31, fraction = half & 1023;
  const double sign = half & 0x8000 ? -1 : 1;
  if (exponent == 31)
    return fraction ? std::nan("") : sign * HUGE_VAL;
  return sign * (exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24));
}

double elementAt(const std::byte *place, std::string_view dtype) {
  if (dtype == "F64") {
    double value;
    std::memcpy(&value, place, 8);
    return value;
  }
  uint32_t bits = 0;
  std::memcpy(&bits, place, dtype == "F32" ? 4 : 2);
  if (dtype == "F16")
    return halfToDouble(static_cast<uint16_t>(bits));
  return std::bit_cast<float>(dtype == "BF16" ? bits << 16 : bits);
}

} // namespace

std::string describeShape(const std::vector<int64_t> &shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

SafetensorsFile::SafetensorsFile(SafetensorsFile &&other) noexcept { *this = std::move(other); }

SafetensorsFile &SafetensorsFile::operator=(SafetensorsFile &&other) noexcept {
  std::swap(filePath, other.filePath);
  std::swap(descriptor, other.descriptor);
  std::swap(dataStart, other.dataStart);
  std::swap(infos, other.infos);
  std::swap(meta, other.meta);
  return *this;
}

SafetensorsFile::~SafetensorsFile() {
  if (descriptor >= 0)
    ::close(descriptor);
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::open(const std::string &path) {
  SafetensorsFile file;
  file.filePath = path;
  file.descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file.descriptor < 0)
    return absl::NotFoundError(absl::StrCat("can't open '", path, "': ", std::strerror(errno)));
  struct stat info {};
  if (::fstat(file.descriptor, &info) != 0 || !S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is no regular file"));
  const auto size = static_cast<uint64_t>(info.st_size);

  unsigned char prefix[8];
  if (size < 8 || readExactly(file.descriptor, prefix, 8, 0) != 0)
    return absl::DataLossError(absl::StrCat("'", path, "': no safetensors file: ", size, " bytes, needs 8"));
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | prefix[i];
  if (length > kMaxHeader || length > size - 8)
    return absl::DataLossError(absl::StrCat("'", path, "': header of ", length, " bytes in a file of ", size,
                                            " bytes (at most ", kMaxHeader, ")"));
  std::string header(length, '\0');
  if (readExactly(file.descriptor, header.data(), length, 8) != 0)
    return absl::DataLossError(absl::StrCat("'", path, "': the header of ", length, " bytes can't be read"));
  file.dataStart = 8 + length;
  if (absl::Status status = file.parseHeader(header, size - file.dataStart); !status.ok())
    return status;
  return file;
}

absl::Status SafetensorsFile::parseHeader(std::string_view header, uint64_t dataBytes) {
  const std::string what = absl::StrCat("'", filePath, "'");
  absl::StatusOr<Json> json = parseJson(header, absl::StrCat(what, " header"));
  if (!json.ok())
    return json.status();
  if (!json->is_object())
    return absl::DataLossError(absl::StrCat(what, ": the header is no JSON object"));
  for (const auto &[name, entry] : json->items()) {
    if (name == "__metadata__") {
      if (!entry.is_object())
        return absl::DataLossError(absl::StrCat(what, ": '__metadata__' is no object"));
      for (const auto &[key, value] : entry.items()) {
        if (!value.is_string())
          return absl::DataLossError(absl::StrCat(what, ": metadata '", key, "' is no string"));
        meta[key] = value.get<std::string>();
      }
      continue;
    }
    absl::StatusOr<TensorInfo> info = parseEntry(entry, absl::StrCat(what, " tensor '", name, "'"));
    if (!info.ok())
      return info.status();
    infos[name] = *std::move(info);
  }
  return checkRanges(dataBytes);
}

/// Sorted by start, ranges must tile the data: no overlap, no gap, nothing behind.
absl::Status SafetensorsFile::checkRanges(uint64_t dataBytes) const {
  std::vector<std::pair<const TensorInfo *, const std::string *>> order;
  for (const auto &[name, info] : infos)
    order.emplace_back(&info, &name);
  std::sort(order.begin(), order.end(), [](const auto &a, const auto &b) {
    return std::pair(a.first->begin, a.first->end) < std::pair(b.first->begin, b.first->end);
  });
  uint64_t reached = 0;
  for (const auto &[info, name] : order) {
    if (info->begin != reached)
      return absl::DataLossError(
          absl::StrCat("'", filePath, "' tensor '", *name,
                       "': ", info->begin < reached ? "overlaps" : "leaves a gap after",
                       " the tensor before it: starts at byte ", info->begin, ", expected ", reached));
    reached = info->end;
    if (reached > dataBytes)
      return absl::DataLossError(absl::StrCat("'", filePath, "' tensor '", *name, "': ends at byte ", reached,
                                              " of ", dataBytes, " bytes of data: the file is cut short"));
  }
  if (reached != dataBytes)
    return absl::DataLossError(absl::StrCat("'", filePath, "': ", dataBytes - reached,
                                            " bytes after the last tensor that no tensor owns"));
  return absl::OkStatus();
}

absl::StatusOr<const TensorInfo *> SafetensorsFile::find(const std::string &name) const {
  auto found = infos.find(name);
  if (found == infos.end())
    return absl::NotFoundError(absl::StrCat("'", filePath, "' holds no tensor '", name, "'"));
  return &found->second;
}

absl::Status SafetensorsFile::readBytes(const TensorInfo &info, std::byte *into) const {
  const int error = readExactly(descriptor, into, info.end - info.begin, dataStart + info.begin);
  if (error == 0)
    return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("can't read bytes ", dataStart + info.begin, " to ", dataStart + info.end, " of '",
                   filePath, "': ", error < 0 ? "the file became shorter" : std::strerror(error)));
}

absl::StatusOr<Tensor> SafetensorsFile::read(const std::string &name) const {
  absl::StatusOr<const TensorInfo *> info = find(name);
  if (!info.ok())
    return info.status();
  std::optional<ElementType> type = elementTypeOf((*info)->dtype);
  if (!type)
    return absl::InvalidArgumentError(absl::StrCat("'", filePath, "' tensor '", name, "': dtype ",
                                                   (*info)->dtype, ", expected F32, F64, BF16, I32 or I64"));
  Tensor tensor(*type, (*info)->shape);
  if (absl::Status status = readBytes(**info, tensor.bytes.data()); !status.ok())
    return status;
  return tensor;
}

absl::StatusOr<Tensor> SafetensorsFile::readAs(const std::string &name, ElementType type) const {
  absl::StatusOr<const TensorInfo *> found = find(name);
  if (!found.ok())
    return found.status();
  const TensorInfo &info = **found;
  if (elementTypeOf(info.dtype) == type)
    return read(name);
  const bool floating =
      info.dtype == "F16" || info.dtype == "BF16" || info.dtype == "F32" || info.dtype == "F64";
  if (!floating || (type != ElementType::F32 && type != ElementType::F64))
    return absl::InvalidArgumentError(absl::StrCat("'", filePath, "' tensor '", name, "': dtype ", info.dtype,
                                                   " can't become ", std::string(nameOf(type))));
  decltype(Tensor::bytes) raw(info.end - info.begin);
  if (absl::Status status = readBytes(info, raw.data()); !status.ok())
    return status;
  Tensor tensor(type, info.shape);
  const uint64_t width = *bytesOf(info.dtype);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double value = elementAt(raw.data() + static_cast<uint64_t>(i) * width, info.dtype);
    if (type == ElementType::F32)
      tensor.as<float>()[i] = static_cast<float>(value);
    else
      tensor.as<double>()[i] = value;
  }
  return tensor;
}

} // namespace weft::rt
