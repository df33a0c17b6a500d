//===- CheckScopes.cpp - Names, scopes and errors -------------------------===//

#include "frontend/CheckerImpl.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace weft::lang {
namespace {

/// Expressions, blocks and pasted defs inside one another: fits a stack of 1 MB.
constexpr int kCheckerNesting = 250;
constexpr size_t kShownCalls = 5;

std::string owner(const Scope &scope) {
  switch (scope.kind) {
  case Scope::Kind::Model:
    return absl::StrCat("model ", scope.name);
  case Scope::Kind::Layer:
    return absl::StrCat("layer ", scope.name);
  case Scope::Kind::Branch:
    return absl::StrCat("branch ", scope.name);
  case Scope::Kind::Def:
    return absl::StrCat("def ", scope.name);
  case Scope::Kind::Side:
    break;
  }
  return "this side of the if";
}

std::string_view nounOf(Symbol::Kind kind) {
  switch (kind) {
  case Symbol::Kind::Setting:
    return "a setting";
  case Symbol::Kind::Let:
    return "a let";
  case Symbol::Kind::Index:
    return "a layer's index";
  case Symbol::Kind::Argument:
    return "an argument of a def";
  case Symbol::Kind::Param:
    return "a parameter";
  case Symbol::Kind::Input:
    return "an input";
  case Symbol::Kind::Def:
    return "a def";
  case Symbol::Kind::Value:
    break;
  }
  return "a value";
}

bool isPredefined(std::string_view name) {
  return name == "batch" || name == "pos" || name == "position" || name == "document";
}

} // namespace

/// An error, with the chain of def calls that led to it.
Diagnostic &ModelChecker::error(Code code, const Place &place, std::string message) {
  Diagnostic &entry = diagnostics.error(code, place, std::move(message));
  size_t shown = 0;
  for (auto call = calls.rbegin(); call != calls.rend() && shown < kShownCalls; ++call, ++shown)
    entry.note(call->place, absl::StrCat("inside def ", call->def->names[0].text, ", called here"));
  return entry;
}

bool ModelChecker::enter(const Place &place) {
  if (depth <= kCheckerNesting)
    return true;
  if (!reportedDepth)
    diagnostics
        .error(Code::W0103, place,
               absl::StrCat("defs, blocks and expressions nested more than ", kCheckerNesting,
                            " levels deep once defs are pasted"))
        .advise("repeat parts with a layer instead of a chain of defs");
  reportedDepth = true;
  return false;
}

ModelChecker::Found ModelChecker::lookUp(std::string_view name) {
  Found found;
  for (Scope *at = scope; at; at = at->parent) {
    auto symbol = at->symbols.find(name);
    if (symbol != at->symbols.end()) {
      found.symbol = &symbol->second;
      found.scope = at;
      return found;
    }
    if (at->kind == Scope::Kind::Branch || at->kind == Scope::Kind::Def)
      found.crossed = at;
  }
  return found;
}

std::vector<std::string> ModelChecker::visibleNames() const {
  std::vector<std::string> names = {"position", "document"};
  for (const Scope *at = scope; at; at = at->parent)
    for (const auto &[name, symbol] : at->symbols)
      names.push_back(name);
  return names;
}

void ModelChecker::reportUnknown(const std::string &name, const Place &place) {
  auto step = paths->names.find(name);
  if (step != paths->names.end()) {
    error(Code::W0215, place, absl::StrCat(name, " is a layer or a branch, expected a value"))
        .note(step->second.place, absl::StrCat(name, " is declared here"))
        .advise(
            "assign what it gives: `NAME = branch ... { ... }`; a layer changes the names that it assigns");
    return;
  }
  std::string close = nearest(name, visibleNames());
  Diagnostic &entry = error(Code::W0201, place, absl::StrCat("there is no name ", name, " here"));
  Found found = close.empty() ? Found{} : lookUp(close);
  if (found.symbol)
    entry.note(found.symbol->place, absl::StrCat(close, " is declared here"));
  if (!close.empty())
    entry.advise(absl::StrCat("did you mean ", close, "?"));
}

/// A new name of this scope; null when an outer or equal one is in the way.
Symbol *ModelChecker::declare(const ast::Name &name, Symbol symbol) {
  if (isPredefined(name.text)) {
    error(Code::W0202, name.place, absl::StrCat(name.text, " always exists and cannot be declared"))
        .advise("choose another name");
    return nullptr;
  }
  Found found = lookUp(name.text);
  if (found.symbol) {
    bool same = found.scope == scope;
    error(same ? Code::W0209 : Code::W0202, name.place,
          same ? absl::StrCat(name.text, " is declared twice in ", owner(*scope))
               : absl::StrCat(name.text, " hides ", std::string(nounOf(found.symbol->kind)), " of ",
                              owner(*found.scope)))
        .note(found.symbol->place, absl::StrCat(name.text, " is declared here"))
        .advise("choose another name: a name has one meaning inside a scope and below");
    return nullptr;
  }
  indexDeclaration(name, symbol);
  return &scope->symbols.emplace(name.text, std::move(symbol)).first->second;
}

/// Changes what a name stands for; sides of `if` around remember what it was.
void ModelChecker::setSymbol(const Found &found, Item item) {
  for (Scope *at = scope; at && at != found.scope; at = at->parent)
    if (at->kind == Scope::Kind::Side)
      at->before.emplace(found.symbol, found.symbol->item);
  found.symbol->item = std::move(item);
}

void ModelChecker::assign(const ast::Name &name, Item item) {
  if (item.isTensor())
    model.valueNames[static_cast<size_t>(item.value)] = name.text;
  Found found = lookUp(name.text);
  if (!found.symbol) {
    declare(name, {Symbol::Kind::Value, name.place, std::move(item), nullptr});
    return;
  }
  bool variable = found.symbol->kind == Symbol::Kind::Value || found.symbol->kind == Symbol::Kind::Argument;
  indexUse(name.place, name.text, *found.symbol, item);
  if (variable && !found.crossed) {
    setSymbol(found, std::move(item));
    return;
  }
  if (!variable) {
    error(Code::W0214, name.place,
          absl::StrCat(name.text, " is ", std::string(nounOf(found.symbol->kind)), " of ",
                       owner(*found.scope), ", expected a name that can be assigned"))
        .note(found.symbol->place, absl::StrCat(name.text, " is declared here"))
        .advise("choose another name");
    return;
  }
  error(
      Code::W0214, name.place,
      absl::StrCat(owner(*found.crossed), " assigns ", name.text, ", which belongs to ", owner(*found.scope)))
      .note(found.symbol->place, absl::StrCat(name.text, " is declared here"))
      .advise(
          "a branch and a def assign only their own names: choose another name, or use the block's value");
}

/// Takes a step of parameter paths for this layer, branch or model.
bool ModelChecker::claimPath(const ast::Name &name, std::string_view what) {
  const ast::Stmt *def = calls.empty() ? nullptr : calls.back().def;
  Place place = calls.empty() ? name.place : calls.front().place;
  auto [entry, fresh] = paths->names.emplace(name.text, PathNames::Entry{place, def});
  if (fresh)
    return true;
  if (def && entry->second.def == def)
    error(Code::W0205, place,
          absl::StrCat("def ", def->names[0].text, " is called twice in one scope and would declare ",
                       std::string(what), " ", name.text, " twice"))
        .note(entry->second.place, "the first call is here")
        .note(name.place, absl::StrCat(name.text, " is declared here"))
        .advise("wrap one call in a branch");
  else
    error(Code::W0209, name.place,
          absl::StrCat("a second ", std::string(what), " ", name.text, " in one scope"))
        .note(entry->second.place, "the first is here")
        .advise("choose another name: paths of parameters must differ");
  return false;
}

} // namespace weft::lang
