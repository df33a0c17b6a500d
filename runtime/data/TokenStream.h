//===- TokenStream.h - Token ids of documents, end to end -------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace weft::rt {

/// Ids of documents in order, in memory or in mapped files. Cheap to copy and
/// to slice; safe to read from many threads.
class TokenStream {
public:
  struct Document {
    int64_t begin = 0, length = 0;
  };

  int64_t size() const { return total; }
  const std::vector<Document> &documents() const { return docs; }

  /// Writes tokens [begin, begin + count) to `out`; the range must be inside.
  void copy(int64_t begin, int64_t count, int32_t *out) const;

  /// Appends one document. Documents without tokens are left out.
  void add(std::vector<int32_t> tokens);

  /// Appends `count` ids of `width` bytes (2 or 4, unsigned, little-endian) that
  /// `owner` keeps alive, as documents that begin at `starts` (ascending,
  /// starts[0] = 0).
  void add(std::shared_ptr<const void> owner, const void *data, int width, int64_t count,
           std::span<const int64_t> starts);

  /// Tokens [begin, end) as a stream of its own; a document may be cut.
  TokenStream slice(int64_t begin, int64_t end) const;

private:
  struct Segment {
    std::shared_ptr<const void> owner;
    const unsigned char *data = nullptr;
    int width = 4;
    int64_t begin = 0, count = 0;
  };
  void append(Segment segment);

  std::vector<Segment> segments;
  std::vector<Document> docs;
  int64_t total = 0;
};

} // namespace weft::rt
