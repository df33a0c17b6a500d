//===- Hash.cpp - What a kernel computes, as a number ---------------------===//
#include "passes/Codegen/Codegen.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace weft {
namespace {

/// Writes a kernel down with values and axes by number.
class Description {
public:
  std::string of(KernelOp kernel) {
    attribute(kernel.getRows());
    stream << kernel.getChunks() << ";";
    if (Attribute form = kernel->getAttr("weft.form")) // of attention (Gpu/Attend.h)
      attribute(form);
    if (kernel->hasAttr("weft.on_tiles")) // products and what follows them (Gpu/Gpu.h)
      stream << "on tiles;";
    for (BlockArgument argument : kernel.getBody().front().getArguments())
      define(argument);
    for (Operation &op : kernel.getBody().front())
      operation(&op);
    return text;
  }

private:
  void axis(StringAttr name) { stream << "a" << axes.try_emplace(name, axes.size()).first->second << " "; }

  void type(Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor) {
      stream << type;
      return;
    }
    stream << tensor.getElementType() << "[";
    llvm::interleaveComma(tensor.getShape(), stream);
    stream << "|";
    for (StringAttr name : axesOf(type))
      axis(name);
    stream << "]";
  }

  /// Lists of words are lists of axes.
  void attribute(Attribute attr) {
    auto list = dyn_cast<ArrayAttr>(attr);
    if (!list || !llvm::all_of(list, [](Attribute item) { return isa<StringAttr>(item); })) {
      stream << attr;
      return;
    }
    for (StringAttr name : list.getAsRange<StringAttr>())
      axis(name);
  }

  void define(Value value) {
    values.try_emplace(value, values.size());
    type(value.getType());
    stream << ",";
  }

  void operation(Operation *op) {
    stream << op->getName() << "(";
    for (Value operand : op->getOperands())
      stream << values.lookup(operand) << ",";
    stream << "){";
    for (NamedAttribute attr : op->getAttrs()) {
      if (op->getDiscardableAttr(attr.getName()))
        continue;
      stream << attr.getName().getValue() << "=";
      attribute(attr.getValue());
      stream << ";";
    }
    stream << "}";
    for (Value result : op->getResults())
      define(result);
  }

  std::string text;
  llvm::raw_string_ostream stream{text};
  llvm::DenseMap<Value, size_t> values;
  llvm::DenseMap<StringAttr, size_t> axes;
};

} // namespace

std::string structuralHash(KernelOp kernel) {
  constexpr int kDigits = 16;
  std::string digits = llvm::utohexstr(llvm::xxh3_64bits(Description().of(kernel)), /*LowerCase=*/true);
  return std::string(kDigits - digits.size(), '0') + digits;
}

} // namespace weft
