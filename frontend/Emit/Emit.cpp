//===- Emit.cpp - A checked model becomes rolled weft IR ------------------===//

#include "frontend/Emit/Emit.h"

#include "dialects/Weft/Weft.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace weft;
using lang::NodeKind;

namespace {

class Emitter {
public:
  Emitter(const lang::Model &model, const lang::SourceFiles &sources, MLIRContext &context)
      : model(model), sources(sources), builder(&context), values(model.values.size()) {}

  OwningOpRef<ModuleOp> emit();

private:
  void emitBlock(const lang::Block &block);
  void emitNode(const lang::Node &node);
  void emitScope(const lang::Node &node);
  Value emitValue(const lang::Node &node, Location loc);
  Value emitAttend(const lang::Node &node, Location loc);
  void fillRegion(Region &region, const lang::Block &block, Location loc);

  Location locationOf(const lang::Place &place, StringRef name = {});
  RankedTensorType typeOf(const lang::TensorType &type);
  RankedTensorType typeOf(lang::ValueId id) { return typeOf(model.values[static_cast<size_t>(id)]); }
  FormulaAttr formula(const lang::FormulaRef &formula) {
    return FormulaAttr::get(builder.getContext(), *formula);
  }
  FormulaAttr formula(const lang::Node &node, StringRef name) {
    return formula(node.formulas.at(name.str()));
  }
  Value value(lang::ValueId id) { return values[static_cast<size_t>(id)]; }
  Value operand(const lang::Node &node, size_t index) {
    return index < node.operands.size() ? value(node.operands[index]) : Value();
  }
  void define(lang::ValueId id, Value result) { values[static_cast<size_t>(id)] = result; }

  const lang::Model &model;
  const lang::SourceFiles &sources;
  OpBuilder builder;
  std::vector<Value> values;
  Value docStart, position;
};

} // namespace

Location Emitter::locationOf(const lang::Place &place, StringRef name) {
  StringRef path =
      place.file < sources.count() ? StringRef(sources.file(place.file).path) : StringRef("model");
  Location loc = FileLineColLoc::get(builder.getStringAttr(path), static_cast<unsigned>(place.line),
                                     static_cast<unsigned>(place.column));
  return name.empty() ? loc : Location(NameLoc::get(builder.getStringAttr(name), loc));
}

RankedTensorType Emitter::typeOf(const lang::TensorType &type) {
  SmallVector<StringAttr> names;
  for (const std::string &axis : type.axes)
    names.push_back(builder.getStringAttr(axis));
  SmallVector<int64_t> sizes(names.size(), ShapedType::kDynamic);
  Type element =
      type.element == lang::TensorType::Element::Int ? Type(builder.getI32Type()) : builder.getF32Type();
  return namedTensor(names, sizes, element);
}

OwningOpRef<ModuleOp> Emitter::emit() {
  Location loc = locationOf(model.place, model.name);
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  SmallVector<StringRef> names;
  SmallVector<Attribute> formulas;
  for (const lang::Setting &setting : model.settings) {
    names.push_back(setting.name);
    formulas.push_back(formula(setting.value));
  }
  for (const auto &[name, value] : model.lets) {
    names.push_back(name);
    formulas.push_back(formula(value));
  }
  auto op = ModelOp::create(builder, loc, model.name, builder.getStrArrayAttr(names),
                            builder.getArrayAttr(formulas));
  builder.setInsertionPointToEnd(&op.getBody().emplaceBlock());
  auto places = typeOf({lang::TensorType::Element::Int, {"batch", "pos"}});
  docStart = InputOp::create(builder, loc, places, "doc_start");
  position = PositionOp::create(builder, loc, docStart, Value());
  emitBlock(model.body);
  return module;
}

void Emitter::emitBlock(const lang::Block &block) {
  for (const lang::Node &node : block.nodes)
    emitNode(node);
}

void Emitter::fillRegion(Region &region, const lang::Block &block, Location loc) {
  OpBuilder::InsertionGuard guard(builder);
  Block &body = region.empty() ? region.emplaceBlock() : region.front();
  for (lang::ValueId argument : block.arguments)
    define(argument, body.addArgument(typeOf(argument), loc));
  builder.setInsertionPointToEnd(&body);
  emitBlock(block);
  SmallVector<Value> yields;
  for (lang::ValueId id : block.yields)
    yields.push_back(value(id));
  YieldOp::create(builder, loc, yields);
}

/// Layers, branches and ifs: ops with regions.
void Emitter::emitScope(const lang::Node &node) {
  Location loc = locationOf(node.place, node.name);
  SmallVector<Value> operands;
  SmallVector<Type> types;
  for (lang::ValueId id : node.operands)
    operands.push_back(value(id));
  for (lang::ValueId id : node.results)
    types.push_back(typeOf(id));
  Operation *op = nullptr;
  if (node.kind == NodeKind::Layer)
    op = LayerOp::create(builder, loc, types, node.name, node.index, formula(node, "count"), operands);
  else if (node.kind == NodeKind::Branch)
    op = BranchOp::create(builder, loc, types.front(), node.name);
  else
    op = IfOp::create(builder, loc, types, formula(node, "test"));
  for (auto [region, block] : llvm::zip(op->getRegions(), node.blocks))
    fillRegion(region, block, loc);
  for (auto [id, result] : llvm::zip(node.results, op->getResults()))
    define(id, result);
}

Value Emitter::emitAttend(const lang::Node &node, Location loc) {
  Value q = operand(node, 0), k = operand(node, 1), v = operand(node, 2);
  auto op = AttendOp::create(builder, loc, q, k, v, Value(), docStart, Value(), Value(),
                             formula(node, "scale"), formula(node, "window"), DenseI32ArrayAttr());
  return op.getOut();
}

/// The value of a node that has exactly one.
Value Emitter::emitValue(const lang::Node &node, Location loc) {
  RankedTensorType type = typeOf(node.results.front());
  Value x = operand(node, 0), y = operand(node, 1);
  switch (node.kind) {
  case NodeKind::Input:
    return InputOp::create(builder, loc, type, node.name);
  case NodeKind::Param: {
    lang::FormulaRef low = node.init.a, high = node.init.b;
    if (node.init.kind == lang::Init::Kind::Uniform && !high) { // uniform(bound) is symmetric
      high = low;
      low = lang::Formula::make(lang::Formula::Kind::Neg, {high});
    }
    Attribute a = formula(low), b = high ? formula(high) : Attribute();
    auto init = InitAttr::get(builder.getContext(), static_cast<InitKind>(node.init.kind), a, b);
    return ParamOp::create(builder, loc, type, node.name, init);
  }
  case NodeKind::Constant:
    return ConstantOp::create(builder, loc, type, formula(node, "value"));
  case NodeKind::Position:
    return position;
  case NodeKind::Document:
    return DocumentOp::create(builder, loc, docStart);
  case NodeKind::Unary:
    return UnaryOp::create(builder, loc, *symbolizeUnaryFn(node.name), x);
  case NodeKind::Binary:
    return BinaryOp::create(builder, loc, *symbolizeBinaryFn(node.name), x, y);
  case NodeKind::Contract:
    return ContractOp::create(builder, loc, type, x, y, Value());
  case NodeKind::Gather:
    return GatherOp::create(builder, loc, x, y);
  case NodeKind::LayerNorm:
    return LayerNormOp::create(builder, loc, x, formula(node, "eps"));
  case NodeKind::RmsNorm:
    return RmsNormOp::create(builder, loc, x, formula(node, "eps"));
  case NodeKind::Softmax:
    return SoftmaxOp::create(builder, loc, x);
  case NodeKind::Rope:
    return RopeOp::create(builder, loc, x, position, Value(), formula(node, "base"), /*inverse=*/false);
  case NodeKind::Attend:
    return emitAttend(node, loc);
  case NodeKind::Dropout:
    return DropoutOp::create(builder, loc, x, Value(), formula(node, "rate"), "");
  case NodeKind::CrossEntropy:
    return CrossEntropyOp::create(builder, loc, x, y, operand(node, 2), formula(node, "z"),
                                  formula(node, "smoothing"));
  default:
    llvm_unreachable("a node with regions or without a value");
  }
}

void Emitter::emitNode(const lang::Node &node) {
  Location loc = locationOf(node.place, node.name);
  switch (node.kind) {
  case NodeKind::Layer:
  case NodeKind::Branch:
  case NodeKind::If:
    return emitScope(node);
  case NodeKind::Let:
    LetOp::create(builder, loc, node.name, formula(node, "value"));
    return;
  case NodeKind::Output:
    OutputOp::create(builder, loc, node.name, operand(node, 0));
    return;
  case NodeKind::Loss:
    LossOp::create(builder, loc, operand(node, 0));
    return;
  default:
    break;
  }
  const std::string &given = model.valueNames[static_cast<size_t>(node.results.front())];
  define(node.results.front(), emitValue(node, locationOf(node.place, given.empty() ? node.name : given)));
}

OwningOpRef<ModuleOp> weft::emitModel(const lang::Model &model, const lang::SourceFiles &sources,
                                      MLIRContext &context) {
  return Emitter(model, sources, context).emit();
}
