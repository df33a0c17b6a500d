//===- Bare.cpp - A kernel without the converts around its body -----------===//
#include "passes/Codegen/Gpu/Bare.h"

using namespace mlir;

namespace weft {

static bool isStored(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return false;
  Type element = tensor.getElementType();
  return element.isF32() || element.isBF16() || element.isInteger(32);
}

static RankedTensorType inFloats(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), Float32Type::get(type.getContext()), tensor.getEncoding());
}

static bool isBF16(Type type) { return cast<RankedTensorType>(type).getElementType().isBF16(); }

/// Converts from bf16 read the argument, which is f32 from here on.
static void widenArgument(BlockArgument argument) {
  argument.setType(inFloats(argument.getType()));
  for (Operation *user : llvm::make_early_inc_range(argument.getUsers()))
    if (auto convert = dyn_cast<ConvertOp>(user); convert && convert.getType() == argument.getType()) {
      convert.getResult().replaceAllUsesWith(argument);
      convert.erase();
    }
}

/// The yielded value before its convert to bf16.
static void widenResult(OpOperand &yielded) {
  auto convert = yielded.get().getDefiningOp<ConvertOp>();
  if (!convert || cast<RankedTensorType>(convert.getX().getType()).getElementType().isBF16())
    return;
  yielded.set(convert.getX());
  if (convert->use_empty())
    convert.erase();
}

/// What every GPU of the family has for one block (CUDA C++ Programming Guide,
/// technical specifications): 227 KiB on 9.0, 99 KiB on the least of 8.x.
static int64_t sharedBytesOf(const GpuTarget &target) {
  constexpr int64_t kHopper = 227 << 10, kAmpere = 99 << 10;
  return StringRef(target.chip).starts_with("sm_9") ? kHopper : kAmpere;
}

FailureOr<BareKernel> makeBare(KernelOp kernel, const GpuTarget &target) {
  BareKernel bare{kernel, {}, kernel.getArgumentTypes().size(), sharedBytesOf(target)};
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes())) {
    if (!isStored(type))
      return kernel.emitOpError("has an operand of type ")
             << type << ": expected a static tensor of f32, bf16 or i32";
    bare.storage.push_back(cast<RankedTensorType>(type).getElementType());
  }
  mlir::Block &block = kernel.getBody().front();
  for (BlockArgument argument : block.getArguments())
    if (isBF16(argument.getType()))
      widenArgument(argument);
  for (OpOperand &yielded : block.getTerminator()->getOpOperands())
    if (isBF16(yielded.get().getType()))
      widenResult(yielded);
  for (Operation &op : block)
    for (Type type :
         llvm::concat<Type>(llvm::to_vector(op.getOperandTypes()), llvm::to_vector(op.getResultTypes())))
      if (isBF16(type))
        return op.emitOpError("works on bf16: expected converts around a body in f32");
  kernel.setFunctionType(FunctionType::get(kernel.getContext(), block.getArgumentTypes(),
                                           block.getTerminator()->getOperandTypes()));
  return bare;
}

} // namespace weft
