//===- Fills.cpp ----------------------------------------------------------===//
#include "runtime/cuda/Fills.h"

#include <algorithm>
#include <vector>

namespace weft::rt::cuda {
namespace {

constexpr const char *kWhat = "a fill of a graph";

/// What a function of the driver that is asked twice, for a number and for nodes, gives.
template <typename Function, typename Of>
absl::StatusOr<std::vector<GraphNode>> nodesOf(Gpu &gpu, Function function, Of of) {
  size_t count = 0;
  if (absl::Status status = gpu.checked(function(of, nullptr, &count), kWhat); !status.ok())
    return status;
  std::vector<GraphNode> nodes(count);
  if (count)
    if (absl::Status status = gpu.checked(function(of, nodes.data(), &count), kWhat); !status.ok())
      return status;
  return nodes;
}

/// Whether `node` fills nothing but bytes of [begin, end), with zeros.
absl::StatusOr<bool> clears(Gpu &gpu, GraphNode node, std::pair<DevicePointer, DevicePointer> bytes) {
  int type = 0;
  if (absl::Status status = gpu.checked(gpu.driver.graphNodeGetType(node, &type), kWhat); !status.ok())
    return status;
  if (type != kFillNode)
    return false;
  FillNode fill{};
  if (absl::Status status = gpu.checked(gpu.driver.graphMemsetNodeGetParams(node, &fill), kWhat);
      !status.ok())
    return status;
  return fill.value == 0 && fill.height == 1 && fill.to >= bytes.first && fill.to <= bytes.second &&
         fill.width * fill.elementBytes <= bytes.second - fill.to;
}

absl::Status drop(Gpu &gpu, Graph graph, GraphNode node) {
  absl::StatusOr<std::vector<GraphNode>> before = nodesOf(gpu, gpu.driver.graphNodeGetDependencies, node);
  if (!before.ok())
    return before.status();
  absl::StatusOr<std::vector<GraphNode>> behind = nodesOf(gpu, gpu.driver.graphNodeGetDependentNodes, node);
  if (!behind.ok())
    return behind.status();
  if (absl::Status status = gpu.checked(gpu.driver.graphDestroyNode(node), kWhat); !status.ok())
    return status;
  for (GraphNode to : *behind) {
    absl::StatusOr<std::vector<GraphNode>> known = nodesOf(gpu, gpu.driver.graphNodeGetDependencies, to);
    if (!known.ok())
      return known.status();
    for (GraphNode from : *before)
      if (std::find(known->begin(), known->end(), from) == known->end()) // twice is an error
        if (absl::Status status = gpu.checked(gpu.driver.graphAddDependencies(graph, &from, &to, 1), kWhat);
            !status.ok())
          return status;
  }
  return absl::OkStatus();
}

} // namespace

absl::Status dropFills(Gpu &gpu, Graph graph, std::pair<DevicePointer, DevicePointer> bytes,
                       GraphNode cleared) {
  absl::StatusOr<std::vector<GraphNode>> nodes = nodesOf(gpu, gpu.driver.graphGetNodes, graph);
  if (!nodes.ok())
    return nodes.status();
  bool any = false;
  for (GraphNode node : *nodes) {
    absl::StatusOr<bool> found = clears(gpu, node, bytes);
    if (!found.ok())
      return found.status();
    if (!*found || node == cleared)
      continue;
    any = true;
    if (absl::Status status = drop(gpu, graph, node); !status.ok())
      return status;
  }
  return any ? absl::OkStatus() : drop(gpu, graph, cleared);
}

} // namespace weft::rt::cuda
