//===- Shard.h - Files of token ids -----------------------------*- C++ -*-===//
//
//   llm.c, 2 bytes   256 int32: 20240520, version 1, count, zeros; uint16 ids
//   llm.c, 4 bytes   256 int32: 20240801, version 7, count, zeros; uint32 ids
//   nanoGPT          uint16 ids alone
//
// All little-endian. The first int32 tells which.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/data/TokenStream.h"

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft::rt {

struct Shard {
  std::shared_ptr<const void> owner; // the mapped file
  const unsigned char *ids = nullptr;
  int width = 2; // bytes of an id
  int64_t count = 0;
  bool header = false;

  uint32_t at(int64_t index) const;
};

/// Maps the file. Errors: NotFound; DataLoss when the length is not what the
/// header says; Unimplemented for an unknown version.
absl::StatusOr<Shard> openShard(const std::string &path);

/// Appends the shard's ids to `stream`; a document begins at index 0 and at each
/// `separator`. Errors: InvalidArgument when an id is not below `vocabulary`,
/// with path, token index, id.
absl::Status addShard(TokenStream &stream, const std::string &path, std::optional<int32_t> separator,
                      int64_t vocabulary);

/// Writes `stream` as an llm.c shard: 2 bytes an id when `vocabulary` <= 65536
/// (ids end at 65535), else 4. Complete or absent.
/// Errors: InvalidArgument for more than 2^31 - 1 tokens; those of AtomicFile.
absl::Status writeShard(const std::string &path, const TokenStream &stream, int64_t vocabulary);

} // namespace weft::rt
