//===- Safetensors.h - Files of named tensors -------------------*- C++ -*-===//
//
// u64 little-endian header length, JSON header, raw data. A reader trusts no
// number of the header: ranges are checked against shapes, types, one another
// and the file before anything is allocated. Tensors may start at any byte.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Tensor.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft::rt {

/// A tensor as a file declares it. `dtype` may be one that Weft can't hold (F16, U8).
struct TensorInfo {
  std::string dtype;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0; // bytes from the start of the data
};

class SafetensorsFile {
public:
  /// Reads and checks the header. Errors: NotFound; DataLoss naming path, tensor
  /// and what is wrong.
  static absl::StatusOr<SafetensorsFile> open(const std::string &path);

  SafetensorsFile(SafetensorsFile &&other) noexcept;
  SafetensorsFile &operator=(SafetensorsFile &&other) noexcept;
  ~SafetensorsFile();

  const std::string &path() const { return filePath; }
  const std::map<std::string, TensorInfo> &tensors() const { return infos; }
  const std::map<std::string, std::string> &metadata() const { return meta; }

  /// The tensor in its own type. Errors: NotFound; InvalidArgument for a dtype
  /// that Tensor has not.
  absl::StatusOr<Tensor> read(const std::string &name) const;
  /// The tensor as F32 or F64, from F16, BF16, F32 or F64 (F64 to F32 rounds).
  absl::StatusOr<Tensor> readAs(const std::string &name, ElementType type) const;

private:
  SafetensorsFile() = default;
  absl::Status parseHeader(std::string_view header, uint64_t dataBytes);
  absl::Status checkRanges(uint64_t dataBytes) const;
  absl::Status readBytes(const TensorInfo &info, std::byte *into) const;
  absl::StatusOr<const TensorInfo *> find(const std::string &name) const;

  std::string filePath;
  int descriptor = -1;
  uint64_t dataStart = 0;
  std::map<std::string, TensorInfo> infos;
  std::map<std::string, std::string> meta;
};

/// One file, or the shards of `model.safetensors.index.json`, as one table.
/// `path`: a file, an index, or a folder holding either. Every shard is opened
/// and checked before any tensor is read. Errors: NotFound lists shards that are
/// not there; DataLoss when index and shards disagree, or two shards hold a name.
class SafetensorsSet {
public:
  static absl::StatusOr<SafetensorsSet> open(const std::string &path);

  std::vector<std::string> names() const;
  /// Null when there is no such tensor.
  const TensorInfo *info(const std::string &name) const;
  absl::StatusOr<Tensor> readAs(const std::string &name, ElementType type) const;
  /// Shard files that lie beside the index and are not in it: left out, worth a note.
  const std::vector<std::string> &ignored() const { return strays; }

private:
  static absl::StatusOr<SafetensorsSet> openIndex(const std::string &path);
  std::vector<SafetensorsFile> files;
  std::map<std::string, size_t> where; // tensor -> index into files
  std::vector<std::string> strays;
};

/// What a file to be written will hold.
struct TensorToWrite {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
};

/// Bytes that writeSafetensors will write.
uint64_t safetensorsBytes(const std::vector<TensorToWrite> &tensors,
                          const std::map<std::string, std::string> &metadata);

/// Writes atomically, asking `value` for one tensor at a time, so that memory
/// holds one at most. Wider types first, so every tensor starts aligned; data
/// start a multiple of 8, header padded with spaces. Errors: of the file; of
/// `value`; InvalidArgument for a value of another type or shape, or a name given twice.
absl::Status writeSafetensors(const std::string &path, std::vector<TensorToWrite> tensors,
                              const std::function<absl::StatusOr<Tensor>(const std::string &)> &value,
                              const std::map<std::string, std::string> &metadata = {});

/// "[3, 4]".
std::string describeShape(const std::vector<int64_t> &shape);

} // namespace weft::rt
