//===- Shard.cpp - Files of token ids -------------------------------------===//
#include "runtime/data/Shard.h"

#include "runtime/core/File.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

constexpr int64_t kHeaderBytes = 1024;
constexpr int32_t kMagic16 = 20240520, kVersion16 = 1;
constexpr int32_t kMagic32 = 20240801, kVersion32 = 7;

struct Mapping {
  void *data = nullptr;
  size_t size = 0;
  ~Mapping() {
    if (data)
      munmap(data, size);
  }
};

absl::StatusOr<std::shared_ptr<Mapping>> mapFile(const std::string &path) {
  auto failure = [&](int error) {
    return absl::NotFoundError(absl::StrCat("can't read token file ", path, ": ", std::strerror(error)));
  };
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return failure(errno);
  struct stat info = {};
  auto mapping = std::make_shared<Mapping>();
  int error = 0;
  if (fstat(descriptor, &info) != 0) {
    error = errno;
  } else if (!S_ISREG(info.st_mode)) {
    error = EISDIR;
  } else if (info.st_size > 0) {
    void *data = mmap(nullptr, info.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data == MAP_FAILED)
      error = errno;
    else
      mapping->data = data, mapping->size = info.st_size;
  }
  close(descriptor);
  if (error != 0)
    return failure(error);
  return mapping;
}

absl::Status checkHeader(const std::string &path, const int32_t *header, Shard &shard, int64_t size) {
  int32_t version = shard.width == 2 ? kVersion16 : kVersion32;
  if (header[1] != version)
    return absl::UnimplementedError(
        absl::StrCat(path, ": expected version ", version, " of this kind of token file, found ", header[1]));
  int64_t expected = kHeaderBytes + int64_t{header[2]} * shard.width;
  if (header[2] < 0 || expected != size)
    return absl::DataLossError(absl::StrCat(path, ": the header says ", header[2], " tokens, which need ",
                                            expected, " bytes, but the file has ", size,
                                            "; it is cut short or damaged, make it again"));
  shard.count = header[2];
  shard.ids += kHeaderBytes;
  return absl::OkStatus();
}

} // namespace

uint32_t Shard::at(int64_t index) const {
  const unsigned char *bytes = ids + index * width;
  uint32_t value = bytes[0] | bytes[1] << 8;
  return width == 2 ? value : value | bytes[2] << 16 | static_cast<uint32_t>(bytes[3]) << 24;
}

absl::StatusOr<Shard> openShard(const std::string &path) {
  absl::StatusOr<std::shared_ptr<Mapping>> file = mapFile(path);
  if (!file.ok())
    return file.status();
  int64_t size = static_cast<int64_t>((*file)->size);
  Shard shard{*file, static_cast<const unsigned char *>((*file)->data), 2, 0, false};
  int32_t header[3] = {};
  if (size >= kHeaderBytes)
    std::memcpy(header, shard.ids, sizeof(header));
  if (header[0] == kMagic16 || header[0] == kMagic32) {
    shard.header = true;
    shard.width = header[0] == kMagic16 ? 2 : 4;
    if (absl::Status status = checkHeader(path, header, shard, size); !status.ok())
      return status;
    return shard;
  }
  if (size % 2 != 0)
    return absl::DataLossError(absl::StrCat(path, ": expected uint16 tokens, found an odd number of bytes, ",
                                            size, "; it is cut short or no token file"));
  shard.count = size / 2;
  return shard;
}

absl::Status addShard(TokenStream &stream, const std::string &path, std::optional<int32_t> separator,
                      int64_t vocabulary) {
  absl::StatusOr<Shard> shard = openShard(path);
  if (!shard.ok())
    return shard.status();
  std::vector<int64_t> starts = {0};
  for (int64_t i = 0; i < shard->count; ++i) {
    uint32_t id = shard->at(i);
    if (id >= vocabulary)
      return absl::InvalidArgumentError(absl::StrCat(path, ": token ", i, " is id ", id,
                                                     ", expected below the vocabulary ", vocabulary,
                                                     "; set the vocabulary that the file was made with"));
    if (separator && id == static_cast<uint32_t>(*separator) && i > 0)
      starts.push_back(i);
  }
  stream.add(shard->owner, shard->ids, shard->width, shard->count, starts);
  return absl::OkStatus();
}

absl::Status writeShard(const std::string &path, const TokenStream &stream, int64_t vocabulary) {
  if (stream.size() > INT32_MAX)
    return absl::InvalidArgumentError(absl::StrCat("can't write ", path, ": a token file holds at most ",
                                                   INT32_MAX, " tokens, found ", stream.size(),
                                                   "; split the text"));
  bool narrow = vocabulary <= 65536;
  int width = narrow ? 2 : 4;
  absl::StatusOr<AtomicFile> file = AtomicFile::create(path, kHeaderBytes + stream.size() * width);
  if (!file.ok())
    return file.status();
  int32_t header[kHeaderBytes / 4] = {narrow ? kMagic16 : kMagic32, narrow ? kVersion16 : kVersion32,
                                      static_cast<int32_t>(stream.size())};
  if (absl::Status status = file->append({reinterpret_cast<const char *>(header), sizeof(header)});
      !status.ok())
    return status;
  constexpr int64_t kChunk = 1 << 16;
  std::vector<int32_t> ids(kChunk);
  for (int64_t at = 0; at < stream.size(); at += kChunk) {
    int64_t count = std::min(kChunk, stream.size() - at);
    stream.copy(at, count, ids.data());
    std::string bytes;
    for (int64_t i = 0; i < count; ++i)
      for (int b = 0; b < width; ++b)
        bytes += static_cast<char>(ids[i] >> 8 * b & 255);
    if (absl::Status status = file->append(bytes); !status.ok())
      return status;
  }
  return file->commit();
}

} // namespace weft::rt
