//===- Dropout.cpp - Philox numbers in vectors ----------------------------===//
#include "passes/Codegen/VectorMath.h"

#include "runtime/core/Philox.h"

#include <cmath>

using namespace mlir;

namespace weft {

/// The halves of a 64-bit product of two 32-bit numbers kept in i64.
static std::pair<Value, Value> halves(Emitter &e, Value x, int64_t factor) {
  Type type = x.getType();
  Value product = e.muli(x, e.constantInt(type, factor));
  Value high = arith::ShRUIOp::create(e.b, e.loc, product, e.constantInt(type, 32));
  return {high, e.both(product, e.constantInt(type, 0xFFFFFFFF))};
}

static Value exclusive(Emitter &e, Value x, Value y) { return arith::XOrIOp::create(e.b, e.loc, x, y); }

/// Ten rounds of Philox4x32 on i64s that hold 32 bits each; the first two words.
static std::pair<Value, Value> philox(Emitter &e, SmallVector<Value, 4> counter, SmallVector<Value, 2> key) {
  Type type = counter[0].getType();
  Value low = e.constantInt(type, 0xFFFFFFFF);
  for (int round = 0; round < 10; ++round) {
    auto [evenHigh, evenLow] = halves(e, counter[0], 0xD2511F53);
    auto [oddHigh, oddLow] = halves(e, counter[2], 0xCD9E8D57);
    counter = {exclusive(e, exclusive(e, oddHigh, counter[1]), key[0]), oddLow,
               exclusive(e, exclusive(e, evenHigh, counter[3]), key[1]), evenLow};
    key[0] = e.both(e.addi(key[0], e.constantInt(type, 0x9E3779B9)), low);
    key[1] = e.both(e.addi(key[1], e.constantInt(type, 0xBB67AE85)), low);
  }
  return {counter[0], counter[1]};
}

Value emitDropout(Emitter &e, Value x, Value seed, Value index, double rate, StringRef stream) {
  Type type = index.getType();
  uint64_t name = rt::fnv1a(std::string_view(stream.data(), stream.size()));
  auto constant = [&](uint64_t value) { return e.constantInt(type, static_cast<int64_t>(value)); };
  Value low = constant(0xFFFFFFFF);
  if (isa<VectorType>(type))
    seed = e.splat(seed);
  Value indexHigh = arith::ShRUIOp::create(e.b, e.loc, index, constant(32));
  auto [first, second] =
      philox(e, {e.both(index, low), indexHigh, constant(name & 0xFFFFFFFF), constant(name >> 32)},
             {e.both(seed, low), constant(0)});
  // The number is (bits >> 11) 2^-53: compare the 53 bits as an integer.
  Value high = arith::ShLIOp::create(e.b, e.loc, second, constant(32));
  Value bits =
      arith::ShRUIOp::create(e.b, e.loc, arith::OrIOp::create(e.b, e.loc, high, first), constant(11));
  auto threshold = static_cast<int64_t>(std::ceil(std::ldexp(rate, 53)));
  Value kept = e.compare(arith::CmpIPredicate::sge, bits, e.constantInt(type, threshold));
  Value scaled = e.mul(x, e.constant(x.getType(), 1 / (1 - rate)));
  return e.select(kept, scaled, e.constant(x.getType(), 0));
}

} // namespace weft
