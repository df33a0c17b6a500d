//===- Stub.h - A recording stand-in for the CUDA driver --------*- C++ -*-===//
//
// One shared library under two names, libcuda.so.1 and libcublasLt.so.13: device
// memory is host memory with checked bounds, a stream is a queue that runs at the
// next wait (so that a missing wait shows), capture collects the queue, products
// are plain loops. Of kernels it runs those that tests need, by their entries:
//   count    the 32-bit number at operand 0 grows by the number of blocks
//   crash    fails as a kernel that reads what it may not
//   overrun  writes a byte 3 before operand 0
// and the comparison of results of runtime/cuda/Tune.cpp. Of four proposals for a
// product the second is the fastest and rounds otherwise, the third is faster than
// the first, the fourth hardly; the calls of `algorithm N` count runs of each.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

extern "C" {
/// Forgets calls, rules and the log; 1 device with 1 GiB.
void weftStubReset();
void weftStubDevices(int count);
void weftStubMemory(uint64_t bytes);
/// The `nth` call of `symbol` from now on (1: the next) returns `result`.
void weftStubFail(const char *symbol, int nth, int result);
int weftStubCalls(const char *symbol);
/// One line a launch, fill and copy, in the order in which they ran:
/// `launch count 4 x 128, 64 bytes: ADDRESS...`.
const char *weftStubLog();
/// Blocks, pinned blocks, modules, graphs, events, streams, handles and contexts
/// that exist.
int weftStubLive();
}
