//===- SafetensorsWrite.cpp - Writing files of named tensors ----*- C++ -*-===//
#include "runtime/core/File.h"
#include "runtime/core/Json.h"
#include "runtime/core/Safetensors.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

uint64_t dataBytes(const TensorToWrite &tensor) {
  uint64_t bytes = sizeOf(tensor.type);
  for (int64_t size : tensor.shape)
    bytes *= static_cast<uint64_t>(size);
  return bytes;
}

/// Length, header and padding; data follow.
std::string headOf(const std::vector<TensorToWrite> &tensors,
                   const std::map<std::string, std::string> &metadata) {
  OrderedJson header = OrderedJson::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const TensorToWrite &tensor : tensors) {
    const uint64_t end = offset + dataBytes(tensor);
    header[tensor.name] = {{"dtype", std::string(nameOf(tensor.type))},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = dumpJson(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string head;
  for (uint64_t length = text.size(), i = 0; i < 8; ++i, length >>= 8)
    head.push_back(static_cast<char>(length & 255));
  return head + text;
}

} // namespace

uint64_t safetensorsBytes(const std::vector<TensorToWrite> &tensors,
                          const std::map<std::string, std::string> &metadata) {
  uint64_t bytes = headOf(tensors, metadata).size();
  for (const TensorToWrite &tensor : tensors)
    bytes += dataBytes(tensor);
  return bytes;
}

absl::Status writeSafetensors(const std::string &path, std::vector<TensorToWrite> tensors,
                              const std::function<absl::StatusOr<Tensor>(const std::string &)> &value,
                              const std::map<std::string, std::string> &metadata) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorToWrite &a, const TensorToWrite &b) {
    return sizeOf(a.type) > sizeOf(b.type);
  });
  std::set<std::string> names;
  for (const TensorToWrite &tensor : tensors)
    if (!names.insert(tensor.name).second)
      return absl::InvalidArgumentError(absl::StrCat("'", path, "': tensor '", tensor.name, "' given twice"));

  absl::StatusOr<AtomicFile> file = AtomicFile::create(path, safetensorsBytes(tensors, metadata));
  if (!file.ok())
    return file.status();
  if (absl::Status status = file->append(headOf(tensors, metadata)); !status.ok())
    return status;
  for (const TensorToWrite &tensor : tensors) {
    absl::StatusOr<Tensor> data = value(tensor.name);
    if (!data.ok())
      return data.status();
    if (data->type != tensor.type || data->shape != tensor.shape)
      return absl::InvalidArgumentError(
          absl::StrCat("'", path, "' tensor '", tensor.name, "': expected ", std::string(nameOf(tensor.type)),
                       " ", describeShape(tensor.shape), ", found ", std::string(nameOf(data->type)), " ",
                       describeShape(data->shape)));
    std::string_view bytes(reinterpret_cast<const char *>(data->bytes.data()), data->bytes.size());
    if (absl::Status status = file->append(bytes); !status.ok())
      return status;
  }
  return file->commit();
}

} // namespace weft::rt
