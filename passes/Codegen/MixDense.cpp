//===- MixDense.cpp - Whole patterns, block by block -----------------------===//
//
// Both kernels copy a tile of the pattern into scratch, zero where a query does
// not see a key, and multiply it with values (queries in lanes) or with the
// gradient of the output (keys in lanes). A query's row of the pattern is that of
// its place in its document, so a block may hold queries of several documents.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/MixShape.h"

using namespace mlir;

namespace weft {
namespace {

using Predicate = arith::CmpIPredicate;

/// What both share: shape, pattern, and one row of a tile.
class WholePattern {
public:
  template <typename Op>
  WholePattern(Op op, Value value, KernelBody &body)
      : body(body), e(body.e), shape(value, op.getP(), op.getDocStart()), lanes(shape.lanes),
        pattern(body.argument(op.getP())), tile(body.take(lanes * shape.rows)),
        sums(body.take(lanes * shape.channel)) {
    shape.starts = body.argument(op.getDocStart());
    shape.kvTable = op.getKvOf() ? body.argument(op.getKvOf()) : Value();
  }

protected:
  Value asInt(Value number) { return arith::TruncIOp::create(e.b, e.loc, e.i32, number); }

  /// p of the query at `place`, whose document starts at `start`, for `width` keys from `key` on;
  /// 0 before the document and after the query.
  Value weights(Value place, Value start, Value key) {
    Value own = e.addi(e.splat(asInt(key)), e.iota(e.i32));
    Value seen = e.both(e.compare(Predicate::sge, own, e.splat(asInt(start))),
                        e.compare(Predicate::sle, own, e.splat(asInt(place))));
    Value line = e.addi(e.muli(head, shape.places), e.subi(place, start));
    return e.loadLanes(pattern, e.addi(e.muli(line, shape.places), e.subi(key, start)), {seen});
  }

  KernelBody &body;
  Emitter &e;
  MixShape shape;
  int64_t lanes;
  Value pattern, tile, sums;
  Value row, head, kv, place, count, starts;
};

class MixDenseEmitter : WholePattern {
public:
  MixDenseEmitter(MixDenseOp op, KernelBody &body) : WholePattern(op, op.getV(), body), op(op) {}

  void item(Value number) {
    auto item = shape.item(e, number, shape.heads, shape.blocks(shape.queries));
    row = item.row, head = item.head, place = item.place;
    kv = shape.kvOf(e, head);
    count = e.mini(e.subi(e.number(shape.queries), place), e.number(lanes));
    starts = shape.startsOf(e, row);
    offset = op.getOffset() ? e.loadIndex(body.argument(op.getOffset()), e.number(0)) : e.number(0);
    e.zero(sums, lanes * shape.channel);
    Value to = e.mini(e.addi(e.addi(place, offset), count), e.number(shape.keys));
    e.loop(e.loadIndex(starts, place), to, shape.rows, [&](Value key) {
      Value keys = e.mini(e.subi(to, key), e.number(shape.rows));
      fillTile(key);
      Strided v = shape.valueRows(e, body.argument(op.getV()), row, key, kv);
      std::swap(v.rows, v.columns);
      emitTileProduct(e, {v, tile, sums, {}, e.number(shape.channel), keys, lanes, true});
    });
    emitTransposeOut(e, shape.outRows(e, body.result(0), row, place, head), sums, count, lanes, shape.channel,
                     1, {});
  }

private:
  /// tile[k, lane] = p of query lane and key k: rows of the pattern, turned square by square.
  void fillTile(Value key) {
    Value last = e.addi(count, -1);
    e.loop(e.number(0), e.number(lanes), e.width, [&](Value lane) {
      e.loop(e.number(0), e.number(shape.rows), e.width, [&](Value k) {
        SmallVector<Value> square;
        for (int64_t i = 0; i < e.width; ++i) {
          Value query = e.addi(place, e.mini(e.addi(lane, i), last));
          square.push_back(weights(e.addi(query, offset), e.loadIndex(starts, query), e.addi(key, k)));
        }
        e.transpose(square);
        for (int64_t i = 0; i < e.width; ++i)
          e.store(square[static_cast<size_t>(i)], tile, e.addi(e.muli(e.addi(k, i), lanes), lane));
      });
    });
  }

  MixDenseOp op;
  Value offset;
};

class MixDenseGradValueEmitter : WholePattern {
public:
  MixDenseGradValueEmitter(MixDenseGradValueOp op, KernelBody &body)
      : WholePattern(op, op.getDv(), body), op(op) {}

  void item(Value number) {
    // Early keys are seen by most queries: the first block first.
    Value pair = e.remi(number, shape.batch * shape.kvHeads);
    row = e.divi(pair, shape.kvHeads), kv = e.remi(pair, shape.kvHeads);
    place = e.muli(e.divi(number, shape.batch * shape.kvHeads), lanes);
    count = e.mini(e.subi(e.number(shape.keys), place), e.number(lanes));
    starts = shape.startsOf(e, row);
    e.zero(sums, lanes * shape.channel);
    if (shape.kvTable)
      e.loop(e.number(0), e.number(shape.heads), 1, [&](Value reader) {
        e.when(e.compare(Predicate::eq, shape.kvOf(e, reader), kv), [&] { ofHead(reader); });
      });
    else
      ofHead(kv);
    Strided dv = shape.valueRows(e, body.result(0), row, place, kv);
    emitTransposeOut(e, dv, sums, count, lanes, shape.channel, 1, {});
  }

private:
  void ofHead(Value reader) {
    head = reader;
    Value lastKey = e.addi(e.addi(place, count), -1), end = e.number(shape.queries);
    e.loop(place, end, shape.rows, [&](Value query) {
      // Later documents see nothing of this block.
      e.when(e.compare(Predicate::sle, e.loadIndex(starts, query), lastKey), [&] { queryBlock(query, end); });
    });
  }

  void queryBlock(Value query, Value end) {
    Value queries = e.mini(e.subi(end, query), e.number(shape.rows));
    e.loop(e.number(0), queries, 1, [&](Value q) {
      Value own = e.addi(query, q), start = e.loadIndex(starts, own);
      e.loop(e.number(0), e.number(lanes), e.width, [&](Value lane) {
        e.store(weights(own, start, e.addi(place, lane)), tile, e.addi(e.muli(q, lanes), lane));
      });
    });
    Strided slope = shape.outRows(e, body.argument(op.getDout()), row, query, head);
    std::swap(slope.rows, slope.columns);
    emitTileProduct(e, {slope, tile, sums, {}, e.number(shape.channel), queries, lanes, true});
  }

  MixDenseGradValueOp op;
};

template <typename Emitters, typename Op> KernelKind kindOf(Op op, int64_t items) {
  return {[items] { return items; },
          [op](KernelBody &body) mutable -> LogicalResult {
            Emitters emitter(op, body);
            body.e.loop(body.begin, body.end, 1, [&](Value number) { emitter.item(number); });
            return success();
          }};
}

} // namespace

KernelKind mixDenseKind(MixDenseOp op) {
  MixShape shape(op.getV(), op.getP(), op.getDocStart());
  return kindOf<MixDenseEmitter>(op, shape.batch * shape.heads * shape.blocks(shape.queries));
}

KernelKind mixDenseGradValueKind(MixDenseGradValueOp op) {
  MixShape shape(op.getDv(), op.getP(), op.getDocStart());
  return kindOf<MixDenseGradValueEmitter>(op, shape.batch * shape.kvHeads * shape.blocks(shape.keys));
}

} // namespace weft
