//===- TokenStream.cpp - Token ids of documents, end to end ---------------===//
#include "runtime/data/TokenStream.h"

#include <algorithm>
#include <cstring>

namespace weft::rt {

void TokenStream::append(Segment segment) {
  segment.begin = total;
  total += segment.count;
  segments.push_back(std::move(segment));
}

void TokenStream::add(std::vector<int32_t> tokens) {
  if (tokens.empty())
    return;
  auto owner = std::make_shared<std::vector<int32_t>>(std::move(tokens));
  int64_t start = 0, count = static_cast<int64_t>(owner->size());
  const void *data = owner->data();
  add(std::move(owner), data, 4, count, {&start, 1});
}

void TokenStream::add(std::shared_ptr<const void> owner, const void *data, int width, int64_t count,
                      std::span<const int64_t> starts) {
  if (count == 0)
    return;
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t end = i + 1 < starts.size() ? starts[i + 1] : count;
    docs.push_back({total + starts[i], end - starts[i]});
  }
  append({std::move(owner), static_cast<const unsigned char *>(data), width, 0, count});
}

void TokenStream::copy(int64_t begin, int64_t count, int32_t *out) const {
  if (count <= 0)
    return;
  auto after = [](int64_t at, const Segment &segment) { return at < segment.begin; };
  auto segment = std::upper_bound(segments.begin(), segments.end(), begin, after);
  for (--segment; count > 0; ++segment) {
    int64_t at = begin - segment->begin, size = std::min(count, segment->count - at);
    if (segment->width == 4) {
      std::memcpy(out, segment->data + 4 * at, 4 * size);
    } else {
      for (int64_t i = 0; i < size; ++i) {
        const unsigned char *bytes = segment->data + 2 * (at + i);
        out[i] = bytes[0] | bytes[1] << 8;
      }
    }
    begin += size, count -= size, out += size;
  }
}

TokenStream TokenStream::slice(int64_t begin, int64_t end) const {
  TokenStream result;
  for (const Segment &segment : segments) {
    int64_t from = std::max(begin, segment.begin), to = std::min(end, segment.begin + segment.count);
    if (from < to)
      result.append({segment.owner, segment.data + segment.width * (from - segment.begin), segment.width, 0,
                     to - from});
  }
  for (const Document &doc : docs) {
    int64_t from = std::max(begin, doc.begin), to = std::min(end, doc.begin + doc.length);
    if (from < to)
      result.docs.push_back({from - begin, to - from});
  }
  return result;
}

} // namespace weft::rt
