//===- Projections.h - The weights behind a head's scores --------*- C++ -*-===//
#pragma once

#include "tools/weft/Session.h"

#include <map>

namespace weft {

/// A parameter with the axes that count heads in it.
struct Projection {
  std::string parameter;
  int64_t firstAxis = 0, axisCount = 0;
};

/// Matrices between the stream and the queries (or keys) of an attend.
struct SiteProjections {
  std::vector<Projection> query, key;
};

/// By site. A parameter belongs to a site's queries when it is read on the way to
/// them and has their head axes and one more: W_q, but no bias and no gain.
absl::StatusOr<std::map<std::string, SiteProjections>> projectionsOf(const Program &program);

} // namespace weft
