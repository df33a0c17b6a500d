//===- TileOps.td - All ops of the dialect ---------------------------------===//
include "dialects/Tile/KernelOps.td"
include "dialects/Tile/MemoryOps.td"
include "dialects/Tile/ComputeOps.td"
