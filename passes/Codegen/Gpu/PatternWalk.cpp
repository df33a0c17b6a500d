//===- PatternWalk.cpp - Items, documents and blocks of a pattern's tiles -===//
//
// Producer and consumers find each tile on their own, from doc_start alone.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/Gpu/PatternKernel.h"

using namespace mlir;

namespace weft {

/// The longest first: later places see more keys, earlier ones are seen by more queries.
PatternKernel::Item PatternKernel::itemOf(Value number) {
  int64_t heads = p.back ? p.results : p.heads, pairs = p.batch * heads;
  int64_t ranges = (p.positions + tileRows() - 1) / tileRows();
  Value range = e.div(number, pairs), pair = e.rem(number, pairs);
  if (!p.back)
    range = e.sub(e.number(ranges - 1), range);
  Value from = e.mul(range, tileRows()), end = e.min(e.add(from, tileRows()), e.number(p.positions));
  return {e.rem(pair, p.batch), e.div(pair, p.batch), from, end, {}, {}, {}, {}};
}

/// What memory says of an item: its two document starts, its window and its first places.
PatternKernel::Values PatternKernel::readItem(Value number) {
  Item item = itemOf(e.min(number, e.number(result.items - 1)));
  Value last = e.number(p.positions - 1);
  Value near = p.back ? e.add(item.end, -1) : item.from;
  Value far = p.back ? last : e.min(e.add(item.from, 2 * tileRows() - 1), last);
  Values read{startOf(item.row, near), startOf(item.row, far)};
  read.push_back(p.kvOf < 0 ? e.load(operand(p.windows), e.wide(item.head)) : e.number(0));
  if (p.tables > 1)
    read.push_back(p.kvOf < 0 ? sightsOf(item, item.head) : e.number(0));
  return read;
}

/// Numbers of the next item are asked for before the work on one: they are there when it begins.
void PatternKernel::forEachItem(function_ref<Value(const Item &, Value)> work) {
  Value first = tile::CtaOp::create(e.b, e.loc, e.i32), step = tile::GridSizeOp::create(e.b, e.loc, e.i32);
  Values start{e.number(0)};
  start.append(readItem(first));
  e.loop(first, e.number(result.items), step, start, [&](Value number, ValueRange carried) {
    Values ahead = readItem(e.add(number, step));
    Item item = itemOf(number);
    item.start = carried[1], item.far = carried[2], item.window = carried[3];
    if (p.tables > 1)
      item.sights = carried[4];
    Values next{work(item, carried[0])};
    next.append(ahead);
    return next;
  });
}

PatternKernel::Values PatternKernel::repeat(ValueRange start, function_ref<Value(ValueRange)> again,
                                            function_ref<Values(ValueRange)> body) {
  auto inside = [&](auto fill) {
    return [this, fill](OpBuilder &inner, Location, ValueRange carried) {
      OpBuilder::InsertionGuard guard(e.b);
      e.b.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
      fill(carried);
    };
  };
  auto before =
      inside([&](ValueRange carried) { scf::ConditionOp::create(e.b, e.loc, again(carried), carried); });
  auto after = inside([&](ValueRange carried) { scf::YieldOp::create(e.b, e.loc, body(carried)); });
  return Values(scf::WhileOp::create(e.b, e.loc, start.getTypes(), start, before, after).getResults());
}

Value PatternKernel::startOf(Value row, Value place) {
  return e.load(operand(p.starts), e.add(e.mul(e.wide(row), p.positions), e.wide(place)));
}

/// The first place after `low`, which is of the document that begins at `start`, that is of another; `high`
/// where there is none before.
Value PatternKernel::firstOther(Value row, Value start, Value low, Value high) {
  int64_t steps = 1;
  while ((int64_t(1) << steps) < p.positions)
    ++steps;
  Value last = e.add(high, -1);
  Value isOther = e.compare(arith::CmpIPredicate::ne, startOf(row, last), start);
  auto search = [&] {
    return Values{
        e.loop(e.number(0), e.number(steps), e.number(1), {low, last}, [&](Value, ValueRange range) {
          Value middle = e.div(e.add(range[0], range[1]), 2), same = e.same(startOf(row, middle), start);
          return Values{e.select(same, middle, range[0]), e.select(same, range[1], middle)};
        })[1]};
  };
  return e.when(isOther, search, {high})[0];
}

PatternKernel::Values PatternKernel::forEachTile(const Item &item, ValueRange start, TileBody body) {
  return p.back ? tilesBack(item, start, body) : tilesAhead(item, start, body);
}

/// carried: the document's start, then what `body` carries.
PatternKernel::Values PatternKernel::tilesAhead(const Item &item, ValueRange start, TileBody body) {
  Values first{item.start};
  first.append(start.begin(), start.end());
  Values given = repeat(
      first, [&](ValueRange carried) { return e.less(carried[0], item.end); },
      [&](ValueRange carried) {
        Value document = carried[0], low = e.max(document, item.from);
        Value tiles = e.div(e.add(e.sub(low, document), tileRows() - 1), tileRows());
        Value place = e.add(document, e.mul(tiles, tileRows()));
        Value high = e.min(e.add(place, tileRows()), e.number(p.positions));
        // Where the document goes on behind all of the item's tiles there is nothing to look for.
        Value ends = e.compare(arith::CmpIPredicate::ne, item.far, document);
        Value last =
            e.when(ends, [&] { return Values{firstOther(item.row, document, low, high)}; }, {high})[0];
        Tile tile{item.row, place, document, last};
        Values next{e.select(e.less(last, item.end), last, e.number(p.positions))};
        next.append(e.when(
            e.less(place, last), [&] { return body(tile, carried.drop_front()); }, carried.drop_front()));
        return next;
      });
  return Values(llvm::drop_begin(given));
}

/// carried: a document's last place in the item, its end and its start, then what `body` carries.
PatternKernel::Values PatternKernel::tilesBack(const Item &item, ValueRange start, TileBody body) {
  constexpr size_t kOwn = 3;
  Value last = e.add(item.end, -1), all = e.number(p.positions);
  Value ends = e.compare(arith::CmpIPredicate::ne, item.far, item.start);
  Value end = e.when(ends, [&] { return Values{firstOther(item.row, item.start, last, all)}; }, {all})[0];
  Values first{last, end, item.start};
  first.append(start.begin(), start.end());
  Values given = repeat(
      first, [&](ValueRange carried) { return e.atMost(item.from, carried[0]); },
      [&](ValueRange carried) {
        Value place = carried[0], end = carried[1], document = carried[2];
        Value tiles = e.div(e.add(e.sub(end, place), tileRows() - 2), tileRows());
        Value tileEnd = e.sub(end, e.mul(tiles, tileRows())), before = e.add(document, -1);
        Tile tile{item.row, e.add(tileEnd, -tileRows()), document, end};
        Values next{before, document};
        next.append(e.when(e.atMost(item.from, before), [&] { return Values{startOf(item.row, before)}; },
                           {e.number(0)}));
        next.append(e.when(
            e.less(e.max(document, item.from), tileEnd), [&] { return body(tile, carried.drop_front(kOwn)); },
            carried.drop_front(kOwn)));
        return next;
      });
  return Values(llvm::drop_begin(given, kOwn));
}

PatternKernel::Values PatternKernel::forEachHead(const Item &item, ValueRange start, HeadBody body) {
  auto passes = [&](Value head, ValueRange before) {
    if (p.tables == 1)
      return body(head, {}, before);
    return e.loop(e.number(0), e.number(p.tables), e.number(1), before,
                  [&](Value near, ValueRange carried) { return body(head, near, carried); });
  };
  if (p.kvOf < 0)
    return passes(item.head, start);
  return e.loop(e.number(0), e.number(p.heads), e.number(1), start, [&](Value head, ValueRange carried) {
    Value reads = e.same(e.load(operand(p.kvOf), e.wide(head)), item.head);
    return e.when(
        reads, [&] { return passes(head, carried); }, carried);
  });
}

//===----------------------------------------------------------------------===//
// Blocks: numbered from the document's start, with `back` from the tile's first place
//===----------------------------------------------------------------------===//

/// Blocks between the document's start and the tile.
Value PatternKernel::blocksBefore(const Tile &tile) { return e.div(e.sub(tile.first, tile.start), kBlock); }

/// Parts with rows of the document: up to this one, with `back` from this one on.
Value PatternKernel::outerPart(const Tile &tile) {
  if (p.back)
    return e.div(e.max(e.sub(tile.start, tile.first), e.number(0)), kRows);
  return e.min(e.div(e.add(e.sub(tile.last, tile.first), -1), kRows), e.number(p.parts - 1));
}

Value PatternKernel::sightsOf(const Item &item, Value head) {
  if (item.sights && p.kvOf < 0)
    return item.sights;
  return e.load(operand(p.windows), e.wide(e.add(head, p.heads)));
}

Value PatternKernel::choose(const Span &span, function_ref<Value()> near, function_ref<Value()> far) {
  Value within = near();
  return p.tables == 1 ? within : e.select(e.same(span.near, e.number(1)), within, far());
}

Value PatternKernel::lowOf(const Tile &tile, const Span &span, Value part) {
  return choose(
      span, [&] { return lowNear(tile, span, part); }, [&] { return lowFar(span, part); });
}
Value PatternKernel::highOf(const Tile &tile, const Span &span, Value part) {
  return choose(
      span, [&] { return highNear(tile, span, part); }, [&] { return highFar(tile, span, part); });
}

Value PatternKernel::lowNear(const Tile &tile, const Span &span, Value part) {
  if (p.back)
    return part;
  Value oldest = e.add(e.sub(e.mul(e.add(blocksBefore(tile), part), kBlock), span.window), 1);
  return e.div(e.max(oldest, e.number(0)), kBlock);
}

Value PatternKernel::highNear(const Tile &tile, const Span &span, Value part) {
  Value outer = outerPart(tile), none = e.number(-1);
  if (!p.back)
    return e.select(e.atMost(part, outer), e.add(blocksBefore(tile), part), none);
  Value reach = e.div(e.add(span.window, kRows - 2), kBlock);
  return e.select(e.atMost(outer, part), e.add(part, reach), none);
}

/// With `back` the last row of a block is a window or more from a part's first.
Value PatternKernel::lowFar(const Span &span, Value part) {
  return p.back ? e.add(part, e.div(span.window, kBlock)) : e.number(0);
}

/// Forwards the first row of a block is a window or more from a part's last.
Value PatternKernel::highFar(const Tile &tile, const Span &span, Value part) {
  Value none = e.number(-1), outer = outerPart(tile);
  if (p.back) {
    Value there = e.both(e.atMost(outer, part), hasFirstPlaces(tile, span, part));
    return e.select(there, e.add(e.div(e.sub(tile.last, tile.first), kBlock), -1), none);
  }
  Value beyond = e.sub(e.add(e.mul(e.add(blocksBefore(tile), part), kBlock), 2 * kBlock - 1), span.window);
  Value behind = e.div(e.max(beyond, e.number(0)), kBlock);
  return e.select(e.atMost(part, outer), e.add(e.min(e.div(span.sights, kBlock), behind), -1), none);
}

/// Whether a part of a tile with `back` has rows that are first places of the document.
Value PatternKernel::hasFirstPlaces(const Tile &tile, const Span &span, Value part) {
  Value row = e.add(e.sub(tile.first, tile.start), e.mul(part, kRows));
  return e.less(e.max(row, e.number(0)), span.sights);
}

PatternKernel::Span PatternKernel::spanOf(const Item &item, const Tile &tile, Value head, Value near) {
  Value window = p.kvOf < 0 ? item.window : e.load(operand(p.windows), e.wide(head));
  window = e.min(window, e.number(p.positions));
  Span span{{}, {}, window, {}, near};
  if (p.tables == 1)
    return nearSpan(tile, span);
  span.sights = sightsOf(item, head);
  Span within = nearSpan(tile, span), behind = farSpan(tile, span);
  span.from = choose(
      span, [&] { return within.from; }, [&] { return behind.from; });
  span.to = choose(
      span, [&] { return within.to; }, [&] { return behind.to; });
  return span;
}

PatternKernel::Span PatternKernel::farSpan(const Tile &tile, Span span) {
  Value outer = outerPart(tile);
  span.from = lowFar(span, p.back ? outer : e.number(0));
  span.to = e.max(e.add(highFar(tile, span, outer), 1), span.from);
  return span;
}

PatternKernel::Span PatternKernel::nearSpan(const Tile &tile, Span span) {
  if (!p.back) {
    span.from = lowNear(tile, span, e.number(0));
    span.to = e.add(e.add(blocksBefore(tile), outerPart(tile)), 1);
    return span;
  }
  Value all = e.div(e.sub(tile.last, tile.first), kBlock);
  span.from = outerPart(tile);
  span.to = e.min(all, e.add(highNear(tile, span, e.number(p.parts - 1)), 1));
  return span;
}

/// First place of a block.
Value PatternKernel::placeOf(const Tile &tile, Value block) {
  return e.add(p.back ? tile.first : tile.start, e.mul(block, kBlock));
}

/// First of the coresOfBlock() tiles of 8 x 8 for a block: see weft.mix_table, whose tables are for 256 rows.
Value PatternKernel::firstCore(const Tile &tile, Value block) {
  constexpr int64_t kOfBlock = kBlock / kCore;
  const int64_t above = MixTableOp::kReach + 1 - tileRows() / kCore;
  if (p.back)
    return e.add(e.mul(block, kOfBlock), above);
  constexpr int64_t kBelow = 2 * MixTableOp::kReach + 1;
  Value before = e.mul(e.sub(blocksBefore(tile), block), kOfBlock);
  return e.sub(e.number(p.blocks - kBelow + above), before);
}

} // namespace weft
