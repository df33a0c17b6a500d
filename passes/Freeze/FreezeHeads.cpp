//===- FreezeHeads.cpp - Attends of live heads, mixes of frozen ones -------===//
//
// Heads of a site fall into three: live, frozen, pruned. With shared values
// (GQA) frozen heads mix what live heads attend to; only value heads that no live
// head reads are a part of their own, so that nothing is computed twice and no
// activation is moved.
//
//===----------------------------------------------------------------------===//
#include "passes/Freeze/HeadDecisions.h"
#include "passes/Freeze/Passes.h"
#include "passes/Freeze/Pieces.h"
#include "passes/Freeze/ShrinkState.h"
#include "passes/Unroll/Scope.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_FREEZEHEADSPASS
#include "passes/Freeze/Passes.h.inc"

namespace {

using Heads = SmallVector<int64_t>;

/// One site and its rewriting.
class Site {
public:
  Site(std::string name, AttendOp attend)
      : name(std::move(name)), attend(attend), builder(attend), loc(attend.getLoc()),
        queryType(cast<RankedTensorType>(attend.getQ().getType())) {
    axes.append(axesOf(queryType).begin() + 2, axesOf(queryType).end() - 1);
    sizes.append(queryType.getShape().begin() + 2, queryType.getShape().end() - 1);
    auto keys = cast<RankedTensorType>(attend.getK().getType());
    kvAxes.append(axesOf(keys).begin() + 2, axesOf(keys).end() - 1);
    kvSizes.append(keys.getShape().begin() + 2, keys.getShape().end() - 1);
    Slices every = slices(axes, sizes, "head", {});
    for (int64_t head = 0; head < headCount(queryType); ++head)
      every.indices.push_back(head);
    kv = every.along(keys).indices;
  }

  LogicalResult check(const FrozenHeads &frozen, ArrayRef<int64_t> pruned);
  void rewrite(const FrozenHeads &frozen, ArrayRef<int64_t> pruned);

private:
  Slices slices(ArrayRef<StringAttr> names, ArrayRef<int64_t> extents, StringRef axis, Heads indices) {
    return {SmallVector<StringAttr>(names), SmallVector<int64_t>(extents), std::move(indices),
            builder.getStringAttr(axis)};
  }
  /// Slices of key-value heads; the value itself when they are all, or there is but one.
  Value takeKv(Value value, const Heads &heads, StringRef axis);
  Value integers(ArrayRef<int32_t> values) {
    auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, builder.getI32Type());
    return IntegersOp::create(builder, loc, type, builder.getDenseI32ArrayAttr(values));
  }
  bool perHead() const { return axes == kvAxes; }
  Heads kvOf(ArrayRef<int64_t> heads) const;
  Value kvTable(ArrayRef<int64_t> heads, const Heads &kvHeads);
  Value windowsOf(ArrayRef<int64_t> heads);
  Piece attendOf(const Heads &heads, const Heads &kvHeads, Value v);
  Piece mixOf(const FrozenHeads &frozen, ArrayRef<size_t> members, Value v, const Heads &kvHeads);
  Value patternOf(const FrozenHeads &frozen, const std::string &state, ArrayRef<size_t> members);
  void addPatterns(const FrozenHeads &frozen);

  std::string name;
  AttendOp attend;
  OpBuilder builder;
  Location loc;
  RankedTensorType queryType, patternType;
  SmallVector<StringAttr> axes, kvAxes;
  SmallVector<int64_t> sizes, kvSizes;
  Heads kv; // key-value head of each head
};

LogicalResult Site::check(const FrozenHeads &frozen, ArrayRef<int64_t> pruned) {
  if (axes.empty())
    return attend.emitError() << name
                              << " has one head and no axis of heads: expected one to freeze or prune";
  int64_t heads = headCount(queryType);
  std::set<int64_t> seen;
  for (auto [list, what] :
       {std::pair(ArrayRef<int64_t>(frozen.heads), "frozen"), std::pair(pruned, "pruned")}) {
    int64_t last = -1;
    for (int64_t head : list) {
      if (head <= std::exchange(last, head) || head >= heads)
        return attend.emitError() << "the " << what << " heads of " << name
                                  << ": expected increasing numbers "
                                  << "below its " << heads << " heads, found " << head;
      if (!seen.insert(head).second)
        return attend.emitError() << "head " << head << " of " << name
                                  << " is to be frozen and pruned: expected one of the two";
    }
  }
  int64_t positions = queryType.getDimSize(1);
  if (frozen.length > 0 && positions > frozen.length)
    return attend.emitError() << "the patterns of " << name << " were fitted for " << frozen.length
                              << " positions, this program has " << positions << ": use at most "
                              << frozen.length;
  if (attend.getKvOf())
    return attend.emitError() << "the heads of " << name << " are frozen already";
  return success();
}

Heads Site::kvOf(ArrayRef<int64_t> heads) const {
  std::set<int64_t> found;
  for (int64_t head : heads)
    found.insert(kv[static_cast<size_t>(head)]);
  return Heads(found.begin(), found.end());
}

Value Site::takeKv(Value value, const Heads &heads, StringRef axis) {
  int64_t all = 1;
  for (int64_t size : kvSizes)
    all *= size;
  if (static_cast<int64_t>(heads.size()) == all)
    return value;
  return takeOf(value, slices(kvAxes, kvSizes, axis, heads));
}

/// Where each head's value head stands among `kvHeads`; null when they are the same.
Value Site::kvTable(ArrayRef<int64_t> heads, const Heads &kvHeads) {
  if (perHead())
    return {};
  SmallVector<int32_t> table;
  for (int64_t head : heads)
    table.push_back(
        static_cast<int32_t>(llvm::find(kvHeads, kv[static_cast<size_t>(head)]) - kvHeads.begin()));
  return integers(table);
}

Value Site::windowsOf(ArrayRef<int64_t> heads) {
  auto constant = attend.getWindows().getDefiningOp<IntegersOp>();
  if (!constant) {
    builder.setInsertionPoint(attend);
    return TakeOp::create(builder, loc, attend.getWindows(), builder.getArrayAttr({}),
                          builder.getStringAttr(""), builder.getDenseI64ArrayAttr(heads));
  }
  SmallVector<int32_t> windows;
  for (int64_t head : heads)
    windows.push_back(constant.getValues()[static_cast<size_t>(head)]);
  return integers(windows);
}

Piece Site::attendOf(const Heads &heads, const Heads &kvHeads, Value v) {
  Slices live = slices(axes, sizes, "live", heads);
  Value q = takeOf(attend.getQ(), live);
  Value k = takeKv(attend.getK(), kvHeads, perHead() ? "live" : "live_kv");
  auto op =
      AttendOp::create(builder, loc, q, k, v, windowsOf(heads), attend.getDocStart(), attend.getOffset(),
                       kvTable(heads, kvHeads), attend.getScaleAttr(), FormulaAttr(), DenseI32ArrayAttr());
  return {op.getOut(), live};
}

void Site::addPatterns(const FrozenHeads &frozen) {
  auto module = attend->getParentOfType<ModuleOp>();
  int64_t places = frozen.length > 0 ? frozen.length : queryType.getDimSize(1);
  // Where all heads are frozen weights are used as they are.
  bool all = axes.size() == 1 && static_cast<int64_t>(frozen.heads.size()) == sizes[0];
  SmallVector<StringAttr> names{all ? axes[0] : builder.getStringAttr("frozen")};
  SmallVector<int64_t> extents{static_cast<int64_t>(frozen.heads.size())};
  if (frozen.dense) {
    names.push_back(builder.getStringAttr("row"));
    extents.push_back(places);
  }
  names.push_back(builder.getStringAttr("place"));
  extents.push_back(places);
  patternType = namedTensor(names, extents, queryType.getElementType());
  auto init =
      InitAttr::get(builder.getContext(), InitKind::Constant, builder.getF64FloatAttr(0), Attribute());
  OpBuilder top(module.getContext());
  top.setInsertionPointToStart(module.getBody());
  for (StateOp state : module.getOps<StateOp>())
    top.setInsertionPointAfter(state);
  Role role = frozen.trained ? Role::Parameter : Role::Control;
  SmallVector<std::string> tables{patternKeyName(name), patternDistanceName(name)};
  if (frozen.dense)
    tables = {wholePatternName(name)};
  for (const std::string &state : tables)
    StateOp::create(top, loc, state, role, patternType, init, IntegerAttr());
}

Value Site::patternOf(const FrozenHeads &frozen, const std::string &state, ArrayRef<size_t> members) {
  Value whole = GetOp::create(builder, loc, patternType, FlatSymbolRefAttr::get(builder.getContext(), state));
  if (members.size() == frozen.heads.size())
    return whole;
  return takeOf(whole, slices({axesOf(patternType)[0]}, {patternType.getDimSize(0)}, "part",
                              Heads(members.begin(), members.end())));
}

Piece Site::mixOf(const FrozenHeads &frozen, ArrayRef<size_t> members, Value v, const Heads &kvHeads) {
  Heads heads;
  SmallVector<int32_t> windows, firstPlaces;
  for (size_t member : members) {
    heads.push_back(frozen.heads[member]);
    windows.push_back(frozen.windows[member]);
    firstPlaces.push_back(frozen.firstPlaces.empty() ? 0 : frozen.firstPlaces[member]);
  }
  if (llvm::any_of(firstPlaces, [](int32_t places) { return places > 0; }))
    windows.append(firstPlaces);
  builder.setInsertionPoint(attend);
  if (frozen.dense) {
    Value p = patternOf(frozen, wholePatternName(name), members);
    builder.setInsertionPoint(attend);
    auto mix = MixDenseOp::create(builder, loc, v, p, attend.getDocStart(), attend.getOffset(),
                                  kvTable(heads, kvHeads));
    return {mix.getOut(), slices(axes, sizes, axesOf(p)[0].getValue(), heads)};
  }
  Value a = patternOf(frozen, patternKeyName(name), members);
  Value r = patternOf(frozen, patternDistanceName(name), members);
  builder.setInsertionPoint(attend);
  auto mix = MixOp::create(builder, loc, v, a, r, integers(windows), attend.getDocStart(), attend.getOffset(),
                           kvTable(heads, kvHeads));
  return {mix.getOut(), slices(axes, sizes, axesOf(a)[0].getValue(), heads)};
}

void Site::rewrite(const FrozenHeads &frozen, ArrayRef<int64_t> pruned) {
  Heads live;
  for (int64_t head = 0; head < headCount(queryType); ++head)
    if (!llvm::is_contained(frozen.heads, head) && !llvm::is_contained(pruned, head))
      live.push_back(head);
  if (!frozen.heads.empty())
    addPatterns(frozen);
  SmallVector<Piece> pieces;
  Heads liveKv = kvOf(live), ownKv;
  Value liveV = live.empty() ? Value() : takeKv(attend.getV(), liveKv, perHead() ? "live" : "live_kv");
  if (!live.empty())
    pieces.push_back(attendOf(live, liveKv, liveV));
  SmallVector<size_t> shared, own;
  Heads ownHeads;
  for (auto [member, head] : llvm::enumerate(frozen.heads)) {
    bool read = llvm::is_contained(liveKv, kv[static_cast<size_t>(head)]);
    (read ? shared : own).push_back(member);
    if (!read)
      ownHeads.push_back(head);
  }
  if (!shared.empty())
    pieces.push_back(mixOf(frozen, shared, liveV, liveKv));
  if (!own.empty()) {
    ownKv = kvOf(ownHeads);
    Value v = takeKv(attend.getV(), ownKv, perHead() ? "frozen" : "frozen_kv");
    pieces.push_back(mixOf(frozen, own, v, ownKv));
  }
  usePieces(attend.getOut(), pieces, slices(axes, sizes, axes[0].getValue(), {}));
}

struct FreezeHeads : impl::FreezeHeadsPassBase<FreezeHeads> {
  void runOnOperation() override {
    FailureOr<HeadDecisions> decisions = readHeadDecisions(getOperation());
    if (failed(decisions) || (!decisions->empty() && failed(run(*decisions))))
      signalPassFailure();
  }

  LogicalResult run(const HeadDecisions &decisions) {
    ModuleOp module = getOperation();
    auto forward = module.lookupSymbol<func::FuncOp>("forward");
    if (!forward || forward.isExternal())
      return module.emitError("freeze-heads found no function @forward: unroll layers first");
    std::map<std::string, SmallVector<AttendOp>> sites;
    for (auto attend : forward.getBody().front().getOps<AttendOp>())
      for (StringRef scope : scopesOf(attend.getLoc()))
        sites[scope.str()].push_back(attend);
    std::set<std::string> names;
    for (const auto &[name, heads] : decisions.frozen)
      names.insert(name);
    for (const auto &[name, heads] : decisions.pruned)
      names.insert(name);
    StateUses before(module);
    for (const std::string &name : names)
      if (failed(rewrite(name, sites[name], decisions)))
        return failure();
    shrinkState(module, before);
    return success();
  }

  LogicalResult rewrite(const std::string &name, ArrayRef<AttendOp> attends, const HeadDecisions &decisions) {
    if (attends.size() != 1)
      return getOperation().emitError() << "heads of " << name << " are to be frozen or pruned: expected one "
                                        << "attend there, found " << attends.size();
    auto frozen = decisions.frozen.find(name);
    auto pruned = decisions.pruned.find(name);
    static const FrozenHeads kNone;
    const FrozenHeads &heads = frozen == decisions.frozen.end() ? kNone : frozen->second;
    ArrayRef<int64_t> gone;
    if (pruned != decisions.pruned.end())
      gone = pruned->second;
    Site site(name, attends[0]);
    if (failed(site.check(heads, gone)))
      return failure();
    if (!heads.heads.empty() || !gone.empty())
      site.rewrite(heads, gone);
    return success();
  }
};

} // namespace
} // namespace weft
