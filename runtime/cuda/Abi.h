//===- Abi.h - The driver's, nvJitLink's and cuBLASLt's types ---*- C++ -*-===//
//
// Own declarations from the public documentation: CUDA Driver API, nvJitLink and
// cuBLAS (docs.nvidia.com/cuda), so that no CUDA header is needed to build. Where
// the headers are installed a test compares every number and size here with them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::rt::cuda {

//===----------------------------------------------------------------------===//
// CUDA Driver API (libcuda.so.1)
//===----------------------------------------------------------------------===//

using Result = int; // CUresult
using Device = int;
using DevicePointer = unsigned long long; // CUdeviceptr
using Context = struct ContextHandle *;
using Stream = struct StreamHandle *;
using Module = struct ModuleHandle *;
using Function = struct FunctionHandle *;
using Graph = struct GraphHandle *;
using GraphExec = struct GraphExecHandle *;
using Event = struct EventHandle *;

constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kNoBinaryForGpu = 209,
                 kInvalidPtx = 218, kUnsupportedPtxVersion = 222, kNotFound = 500, kIllegalAddress = 700,
                 kLaunchOutOfResources = 701, kLaunchTimeout = 702, kAssert = 710, kHardwareStackError = 714,
                 kIllegalInstruction = 715, kMisalignedAddress = 716, kInvalidAddressSpace = 717,
                 kInvalidCounter = 718, kLaunchFailed = 719, kCaptureUnsupported = 900, kUnknown = 999;

/// CUdevice_attribute.
enum DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kClockRate = 13, // kHz
  kMultiprocessorCount = 16,
  kL2CacheSize = 38,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedPerBlockOptin = 97,
};

/// CUfunction_attribute.
enum FunctionAttribute : int {
  kFunctionMaxThreads = 0,
  kFunctionSharedBytes = 1, // static
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionMaxDynamicShared = 8,
};

/// CUjit_option.
enum JitOption : int {
  kJitInfoLog = 3,
  kJitInfoLogBytes = 4,
  kJitErrorLog = 5,
  kJitErrorLogBytes = 6,
  kJitOptimizationLevel = 7,
};

constexpr unsigned kStreamNonBlocking = 1, kEventNoTiming = 2;
/// CUstreamCaptureMode: other threads may go on allocating.
constexpr int kCaptureThreadLocal = 1;
using GraphNode = struct GraphNodeHandle *;
/// CUstreamUpdateCaptureDependencies_flags: in place of those that the stream has.
constexpr unsigned kSetCaptureDependencies = 1;
constexpr int kFillNode = 2; // CUgraphNodeType: CU_GRAPH_NODE_TYPE_MEMSET
/// CUDA_MEMSET_NODE_PARAMS_v1.
struct FillNode {
  DevicePointer to;
  size_t pitch;
  unsigned value, elementBytes;
  size_t width, height; // elements of a row, rows
};

/// CUtensorMap; the headers of CUDA 12 align it to 64 bytes, those of 13 to 128.
struct alignas(128) EncodedTensorMap {
  uint64_t opaque[16];
};

/// CUtensorMapDataType.
enum TensorMapType : int { kMapInt32 = 3, kMapInt64 = 5, kMapFloat32 = 7, kMapFloat64 = 8, kMapBfloat16 = 9 };
/// CUtensorMapSwizzle.
enum TensorMapSwizzle : int { kSwizzleNone = 0, kSwizzle32 = 1, kSwizzle64 = 2, kSwizzle128 = 3 };
constexpr int kMapInterleaveNone = 0, kMapPromotion128 = 2, kMapFillZeros = 0;

//===----------------------------------------------------------------------===//
// nvJitLink (libnvJitLink.so.13, .12)
//===----------------------------------------------------------------------===//

using LinkHandle = struct LinkHandleData *;
enum LinkInput : int { kLinkCubin = 1, kLinkPtx = 2, kLinkLtoIr = 3 };

//===----------------------------------------------------------------------===//
// cuBLASLt (libcublasLt.so.13, .12)
//===----------------------------------------------------------------------===//

using LtHandle = struct LtHandleData *;
using LtProduct = struct LtProductData *;       // cublasLtMatmulDesc_t
using LtLayout = struct LtLayoutData *;         // cublasLtMatrixLayout_t
using LtPreference = struct LtPreferenceData *; // cublasLtMatmulPreference_t

/// cublasLtMatmulAlgo_t.
struct LtAlgorithm {
  uint64_t data[8];
};
/// cublasLtMatmulHeuristicResult_t.
struct LtHeuristic {
  LtAlgorithm algorithm;
  size_t workspaceBytes;
  int state;
  float waves;
  int reserved[4];
};

constexpr int kLtFloat32 = 0, kLtBfloat16 = 14; // cudaDataType
constexpr int kLtCompute32F = 68;               // products in full fp32, never TF32
constexpr int kLtNotSupported = 15;
enum LtProductAttribute : int {
  kLtTransA = 3,
  kLtTransB = 4,
  kLtEpilogue = 7,
  kLtAuxPointer = 11,
  kLtAuxLd = 12,
  kLtAuxBatchStride = 13,
};
enum LtEpilogue : int { kLtEpilogueNone = 1, kLtGeluGrad = 192 };
enum LtLayoutAttribute : int { kLtBatchCount = 5, kLtBatchStride = 6 };
enum LtPreferenceAttribute : int {
  kLtWorkspaceBytes = 1,
  kLtReductionMask = 3,
  kLtAlignmentA = 5,
  kLtAlignmentB = 6,
  kLtAlignmentC = 7,
  kLtAlignmentD = 8,
};
/// cublasLtReductionScheme_t: parts of a split sum are added in the type they were computed in.
constexpr uint32_t kLtReduceInComputeType = 2;

} // namespace weft::rt::cuda
