//===- Fixture.h - IR from text, inputs from a seed --------------*- C++ -*-===//
#pragma once

#include "dialects/Weft/Interpret/Interpret.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weft::test {

inline Array randomArray(mlir::Type type, const std::string &stream, double low = -2, double high = 2) {
  Array array(type);
  array.data = drawUniform(7, stream, array.data.size(), low, high);
  return array;
}

/// A context that knows weft, and modules parsed from text in it. Diagnostics
/// are collected in `messages`.
struct Fixture {
  Fixture() : handler(nullptr) {
    mlir::DialectRegistry registry;
    registerWeftDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    handler = std::make_unique<mlir::ScopedDiagnosticHandler>(&context, [this](mlir::Diagnostic &diagnostic) {
      messages += diagnostic.str() + "\n";
      return mlir::success();
    });
  }
  /// Without `verify`, what no valid module has can be run.
  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text, bool verify = true) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context, verify));
    EXPECT_TRUE(module) << messages << text;
    return module;
  }
  /// Runs @f; no value where it failed.
  std::optional<llvm::SmallVector<Array>> run(mlir::ModuleOp module, llvm::ArrayRef<Array> inputs,
                                              llvm::StringRef name = "f") {
    auto function = module.lookupSymbol<mlir::func::FuncOp>(name);
    auto results = interpret(llvm::cast<mlir::FunctionOpInterface>(function.getOperation()), inputs, states);
    if (mlir::failed(results))
      return std::nullopt;
    return std::move(*results);
  }

  mlir::MLIRContext context;
  std::string messages;
  States states;
  std::unique_ptr<mlir::ScopedDiagnosticHandler> handler;
};

/// `tensor<2x3xf64, #weft.axes<batch, dim>>` from {{"batch", 2}, {"dim", 3}}.
using Axes = std::vector<std::pair<std::string, int64_t>>;
inline std::string tensor(const Axes &axes, const std::string &element = "f64") {
  std::string sizes, names;
  for (const auto &[name, size] : axes) {
    sizes += std::to_string(size) + "x";
    names += (names.empty() ? "" : ", ") + name;
  }
  return "tensor<" + sizes + element + (axes.empty() ? "" : ", #weft.axes<" + names + ">") + ">";
}

} // namespace weft::test
