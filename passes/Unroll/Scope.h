//===- Scope.h - Which part of a model an op comes from ----------*- C++ -*-===//
//
// Unrolled ops of one line of the text differ in the layer they belong to. Their
// locations say so: loc("in block.3.attn"(...)) around the place in the text.
// Passes keep it, since they keep locations.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/Location.h"

#include "llvm/ADT/StringExtras.h"

#include <string>

namespace weft {

constexpr llvm::StringLiteral kScopePrefix = "in ";
/// State entries of windows that programs read: this and the path of the branch.
constexpr llvm::StringLiteral kControlWindows = "control/windows/";

/// `loc` inside the scope `path` (`block.3.attn`); outside all scopes as it is.
inline mlir::Location inScope(llvm::StringRef path, mlir::Location loc) {
  if (path.empty())
    return loc;
  return mlir::NameLoc::get(mlir::StringAttr::get(loc.getContext(), kScopePrefix + path), loc);
}

/// Scopes of everything that `loc` was made of, each once; "" stands for what is
/// outside all scopes.
inline llvm::SmallVector<llvm::StringRef> scopesOf(mlir::Location loc) {
  llvm::SmallVector<llvm::StringRef> scopes;
  auto add = [&](llvm::StringRef scope) {
    if (!llvm::is_contained(scopes, scope))
      scopes.push_back(scope);
  };
  loc->walk([&](mlir::Location part) {
    if (auto name = llvm::dyn_cast<mlir::NameLoc>(part);
        name && name.getName().getValue().starts_with(kScopePrefix)) {
      add(name.getName().getValue().drop_front(kScopePrefix.size()));
      return mlir::WalkResult::skip();
    }
    if (llvm::isa<mlir::FileLineColLoc>(part))
      add("");
    return mlir::WalkResult::advance();
  });
  return scopes;
}

/// The scope that holds everything `loc` was made of: `block.3` for
/// `block.3.attn` and `block.3.ffn`; empty for the model's own.
inline std::string commonScope(mlir::Location loc) {
  llvm::SmallVector<llvm::StringRef> scopes = scopesOf(loc);
  if (scopes.empty())
    return "";
  llvm::SmallVector<llvm::StringRef> shared;
  scopes.front().split(shared, '.');
  for (llvm::StringRef scope : scopes) {
    llvm::SmallVector<llvm::StringRef> steps;
    scope.split(steps, '.');
    size_t same = 0;
    while (same < std::min(steps.size(), shared.size()) && steps[same] == shared[same])
      ++same;
    shared.resize(same);
  }
  return llvm::join(shared, ".");
}

} // namespace weft
