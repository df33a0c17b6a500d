//===- Fills.h - Fills that a graph can do without --------------*- C++ -*-===//
//
// cuBLASLt's products count their tiles in a few bytes of workspace and fill these
// with zeros first. Inside a graph a fill is a node that waits for the call before and
// that the product waits for: about 5 us of an idle device, measured on an H200.
// Where each product has such bytes of its own, one fill before all does the same.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/cuda/Gpu.h"

#include <utility>

namespace weft::rt::cuda {

/// Takes the fills with zeros within the bytes [begin, end) out of `graph`, all but `cleared`,
/// which fills them all and comes before every other node. What waited for one of them
/// waits for what it waited for. With no such fill `cleared` goes too. Errors: Internal.
absl::Status dropFills(Gpu &gpu, Graph graph, std::pair<DevicePointer, DevicePointer> bytes,
                       GraphNode cleared);

} // namespace weft::rt::cuda
