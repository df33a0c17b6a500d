//===- AbiCheck.h - Own declarations against CUDA's headers -----*- C++ -*-===//
//
// Compiled by a test where the headers are installed; it holds nothing but checks.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/cuda/Driver.h"
#include "runtime/cuda/Linker.h"
#include "runtime/cuda/Products.h"

#include <cublasLt.h>
#include <cuda.h>
#include <nvJitLink.h>

namespace weft::rt::cuda {

/// Whether two functions take and give values of the same sizes.
template <typename Left, typename Right> struct SameShape : std::false_type {};
template <typename R, typename... A, typename S, typename... B> struct SameShape<R(A...), S(B...)> {
  static constexpr bool sizes() {
    if constexpr (sizeof...(A) == sizeof...(B))
      return ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>)&&...);
    else
      return false;
  }
  static constexpr bool value = sizes() && sizeof(R) == sizeof(S);
};

#define WEFT_SAME(theirs, ours)                                                                              \
  static_assert(SameShape<decltype(theirs), std::remove_pointer_t<decltype(ours)>>::value, #theirs)
#define WEFT_EQUAL(theirs, ours) static_assert(static_cast<long>(theirs) == static_cast<long>(ours), #theirs)

WEFT_SAME(cuInit, Driver::init);
WEFT_SAME(cuDriverGetVersion, Driver::driverGetVersion);
WEFT_SAME(cuGetErrorName, Driver::getErrorName);
WEFT_SAME(cuGetErrorString, Driver::getErrorString);
WEFT_SAME(cuDeviceGetCount, Driver::deviceGetCount);
WEFT_SAME(cuDeviceGet, Driver::deviceGet);
WEFT_SAME(cuDeviceGetName, Driver::deviceGetName);
WEFT_SAME(cuDeviceGetAttribute, Driver::deviceGetAttribute);
WEFT_SAME(cuDeviceTotalMem, Driver::deviceTotalMem);
WEFT_SAME(cuDevicePrimaryCtxRetain, Driver::primaryCtxRetain);
WEFT_SAME(cuDevicePrimaryCtxRelease, Driver::primaryCtxRelease);
WEFT_SAME(cuCtxSetCurrent, Driver::ctxSetCurrent);
WEFT_SAME(cuMemGetInfo, Driver::memGetInfo);
WEFT_SAME(cuMemAlloc, Driver::memAlloc);
WEFT_SAME(cuMemFree, Driver::memFree);
WEFT_SAME(cuMemHostAlloc, Driver::memHostAlloc);
WEFT_SAME(cuMemFreeHost, Driver::memFreeHost);
WEFT_SAME(cuMemcpyHtoDAsync, Driver::memcpyHtoDAsync);
WEFT_SAME(cuMemcpyDtoHAsync, Driver::memcpyDtoHAsync);
WEFT_SAME(cuMemcpyDtoDAsync, Driver::memcpyDtoDAsync);
WEFT_SAME(cuMemsetD8Async, Driver::memsetD8Async);
WEFT_SAME(cuStreamCreate, Driver::streamCreate);
WEFT_SAME(cuStreamDestroy, Driver::streamDestroy);
WEFT_SAME(cuStreamSynchronize, Driver::streamSynchronize);
WEFT_SAME(cuStreamBeginCapture, Driver::streamBeginCapture);
WEFT_SAME(cuStreamEndCapture, Driver::streamEndCapture);
WEFT_SAME(cuGraphInstantiateWithFlags, Driver::graphInstantiateWithFlags);
WEFT_SAME(cuGraphLaunch, Driver::graphLaunch);
WEFT_SAME(cuGraphExecDestroy, Driver::graphExecDestroy);
WEFT_SAME(cuGraphDestroy, Driver::graphDestroy);
WEFT_SAME(cuEventCreate, Driver::eventCreate);
WEFT_SAME(cuEventRecord, Driver::eventRecord);
WEFT_SAME(cuEventSynchronize, Driver::eventSynchronize);
WEFT_SAME(cuEventElapsedTime, Driver::eventElapsedTime);
WEFT_SAME(cuEventDestroy, Driver::eventDestroy);
WEFT_SAME(cuModuleLoadData, Driver::moduleLoadData);
WEFT_SAME(cuModuleLoadDataEx, Driver::moduleLoadDataEx);
WEFT_SAME(cuModuleUnload, Driver::moduleUnload);
WEFT_SAME(cuModuleGetFunction, Driver::moduleGetFunction);
WEFT_SAME(cuFuncGetAttribute, Driver::funcGetAttribute);
WEFT_SAME(cuFuncSetAttribute, Driver::funcSetAttribute);
WEFT_SAME(cuFuncLoad, Driver::funcLoad);
WEFT_SAME(cuFuncGetParamInfo, Driver::funcGetParamInfo);
WEFT_SAME(cuOccupancyMaxActiveBlocksPerMultiprocessor, Driver::occupancyMaxActiveBlocks);
WEFT_SAME(cuLaunchKernel, Driver::launchKernel);
WEFT_SAME(cuTensorMapEncodeTiled, Driver::tensorMapEncodeTiled);

WEFT_EQUAL(CUDA_ERROR_INVALID_VALUE, kInvalidValue);
WEFT_EQUAL(CUDA_ERROR_OUT_OF_MEMORY, kOutOfMemory);
WEFT_EQUAL(CUDA_ERROR_NO_DEVICE, kNoDevice);
WEFT_EQUAL(CUDA_ERROR_NO_BINARY_FOR_GPU, kNoBinaryForGpu);
WEFT_EQUAL(CUDA_ERROR_INVALID_PTX, kInvalidPtx);
WEFT_EQUAL(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, kUnsupportedPtxVersion);
WEFT_EQUAL(CUDA_ERROR_NOT_FOUND, kNotFound);
WEFT_EQUAL(CUDA_ERROR_ILLEGAL_ADDRESS, kIllegalAddress);
WEFT_EQUAL(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, kLaunchOutOfResources);
WEFT_EQUAL(CUDA_ERROR_LAUNCH_TIMEOUT, kLaunchTimeout);
WEFT_EQUAL(CUDA_ERROR_ASSERT, kAssert);
WEFT_EQUAL(CUDA_ERROR_HARDWARE_STACK_ERROR, kHardwareStackError);
WEFT_EQUAL(CUDA_ERROR_ILLEGAL_INSTRUCTION, kIllegalInstruction);
WEFT_EQUAL(CUDA_ERROR_MISALIGNED_ADDRESS, kMisalignedAddress);
WEFT_EQUAL(CUDA_ERROR_INVALID_ADDRESS_SPACE, kInvalidAddressSpace);
WEFT_EQUAL(CUDA_ERROR_INVALID_PC, kInvalidCounter);
WEFT_EQUAL(CUDA_ERROR_LAUNCH_FAILED, kLaunchFailed);
WEFT_EQUAL(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, kCaptureUnsupported);
WEFT_EQUAL(CUDA_ERROR_UNKNOWN, kUnknown);
WEFT_EQUAL(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kMaxThreadsPerBlock);
WEFT_EQUAL(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, kClockRate);
WEFT_EQUAL(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, kMultiprocessorCount);
WEFT_EQUAL(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, kL2CacheSize);
WEFT_EQUAL(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, kComputeCapabilityMajor);
WEFT_EQUAL(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, kComputeCapabilityMinor);
WEFT_EQUAL(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, kMaxSharedPerBlockOptin);
WEFT_EQUAL(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kFunctionMaxThreads);
WEFT_EQUAL(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kFunctionSharedBytes);
WEFT_EQUAL(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kFunctionLocalBytes);
WEFT_EQUAL(CU_FUNC_ATTRIBUTE_NUM_REGS, kFunctionRegisters);
WEFT_EQUAL(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kFunctionMaxDynamicShared);
WEFT_EQUAL(CU_JIT_INFO_LOG_BUFFER, kJitInfoLog);
WEFT_EQUAL(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, kJitInfoLogBytes);
WEFT_EQUAL(CU_JIT_ERROR_LOG_BUFFER, kJitErrorLog);
WEFT_EQUAL(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, kJitErrorLogBytes);
WEFT_EQUAL(CU_JIT_OPTIMIZATION_LEVEL, kJitOptimizationLevel);
WEFT_EQUAL(CU_STREAM_NON_BLOCKING, kStreamNonBlocking);
WEFT_EQUAL(CU_EVENT_DISABLE_TIMING, kEventNoTiming);
WEFT_EQUAL(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, kCaptureThreadLocal);
WEFT_EQUAL(CU_STREAM_SET_CAPTURE_DEPENDENCIES, kSetCaptureDependencies);
WEFT_EQUAL(CU_TENSOR_MAP_DATA_TYPE_INT32, kMapInt32);
WEFT_EQUAL(CU_TENSOR_MAP_DATA_TYPE_INT64, kMapInt64);
WEFT_EQUAL(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, kMapFloat32);
WEFT_EQUAL(CU_TENSOR_MAP_DATA_TYPE_FLOAT64, kMapFloat64);
WEFT_EQUAL(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, kMapBfloat16);
WEFT_EQUAL(CU_TENSOR_MAP_SWIZZLE_NONE, kSwizzleNone);
WEFT_EQUAL(CU_TENSOR_MAP_SWIZZLE_32B, kSwizzle32);
WEFT_EQUAL(CU_TENSOR_MAP_SWIZZLE_64B, kSwizzle64);
WEFT_EQUAL(CU_TENSOR_MAP_SWIZZLE_128B, kSwizzle128);
WEFT_EQUAL(CU_TENSOR_MAP_INTERLEAVE_NONE, kMapInterleaveNone);
WEFT_EQUAL(CU_TENSOR_MAP_L2_PROMOTION_L2_128B, kMapPromotion128);
WEFT_EQUAL(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, kMapFillZeros);
WEFT_EQUAL(sizeof(CUtensorMap), sizeof(EncodedTensorMap));
WEFT_EQUAL(alignof(CUtensorMap), alignof(EncodedTensorMap));

WEFT_SAME(nvJitLinkCreate, LinkLibrary::create);
WEFT_SAME(nvJitLinkDestroy, LinkLibrary::destroy);
WEFT_SAME(nvJitLinkAddData, LinkLibrary::addData);
WEFT_SAME(nvJitLinkComplete, LinkLibrary::complete);
WEFT_SAME(nvJitLinkGetLinkedCubinSize, LinkLibrary::cubinBytes);
WEFT_SAME(nvJitLinkGetLinkedCubin, LinkLibrary::cubin);
WEFT_SAME(nvJitLinkGetErrorLogSize, LinkLibrary::errorLogBytes);
WEFT_SAME(nvJitLinkGetErrorLog, LinkLibrary::errorLog);
WEFT_EQUAL(NVJITLINK_INPUT_PTX, kLinkPtx);
WEFT_EQUAL(NVJITLINK_INPUT_LTOIR, kLinkLtoIr);

WEFT_SAME(cublasLtCreate, LtLibrary::create);
WEFT_SAME(cublasLtDestroy, LtLibrary::destroy);
WEFT_SAME(cublasLtGetStatusName, LtLibrary::statusName);
WEFT_SAME(cublasLtMatmulDescCreate, LtLibrary::productCreate);
WEFT_SAME(cublasLtMatmulDescDestroy, LtLibrary::productDestroy);
WEFT_SAME(cublasLtMatmulDescSetAttribute, LtLibrary::productSet);
WEFT_SAME(cublasLtMatrixLayoutCreate, LtLibrary::layoutCreate);
WEFT_SAME(cublasLtMatrixLayoutDestroy, LtLibrary::layoutDestroy);
WEFT_SAME(cublasLtMatrixLayoutSetAttribute, LtLibrary::layoutSet);
WEFT_SAME(cublasLtMatmulPreferenceCreate, LtLibrary::preferenceCreate);
WEFT_SAME(cublasLtMatmulPreferenceDestroy, LtLibrary::preferenceDestroy);
WEFT_SAME(cublasLtMatmulPreferenceSetAttribute, LtLibrary::preferenceSet);
WEFT_SAME(cublasLtMatmulAlgoGetHeuristic, LtLibrary::heuristic);
WEFT_SAME(cublasLtMatmul, LtLibrary::product);
WEFT_EQUAL(CUDA_R_32F, kLtFloat32);
WEFT_EQUAL(CUDA_R_16BF, kLtBfloat16);
WEFT_EQUAL(CUBLAS_COMPUTE_32F, kLtCompute32F);
WEFT_EQUAL(CUBLAS_STATUS_NOT_SUPPORTED, kLtNotSupported);
WEFT_EQUAL(CUBLASLT_MATMUL_DESC_TRANSA, kLtTransA);
WEFT_EQUAL(CUBLASLT_MATMUL_DESC_TRANSB, kLtTransB);
WEFT_EQUAL(CUBLASLT_MATMUL_DESC_EPILOGUE, kLtEpilogue);
WEFT_EQUAL(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, kLtAuxPointer);
WEFT_EQUAL(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, kLtAuxLd);
WEFT_EQUAL(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, kLtAuxBatchStride);
WEFT_EQUAL(CUBLASLT_EPILOGUE_DEFAULT, kLtEpilogueNone);
WEFT_EQUAL(CUBLASLT_EPILOGUE_DGELU, kLtGeluGrad);
WEFT_EQUAL(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, kLtBatchCount);
WEFT_EQUAL(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, kLtBatchStride);
WEFT_EQUAL(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kLtWorkspaceBytes);
WEFT_EQUAL(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, kLtReductionMask);
WEFT_EQUAL(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, kLtAlignmentA);
WEFT_EQUAL(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, kLtAlignmentB);
WEFT_EQUAL(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, kLtAlignmentC);
WEFT_EQUAL(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, kLtAlignmentD);
WEFT_EQUAL(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, kLtReduceInComputeType);
WEFT_EQUAL(sizeof(cublasLtMatmulAlgo_t), sizeof(LtAlgorithm));
WEFT_EQUAL(sizeof(cublasLtMatmulHeuristicResult_t), sizeof(LtHeuristic));
WEFT_EQUAL(offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize), offsetof(LtHeuristic, workspaceBytes));
WEFT_EQUAL(offsetof(cublasLtMatmulHeuristicResult_t, state), offsetof(LtHeuristic, state));

} // namespace weft::rt::cuda
