//===- CheckerImpl.h - The checker's state, shared by its families -*- C++ -*-===//
//
// Inside the checker only. A value that was refused is Poison: whatever is made
// of it is Poison too, silently, so that one cause gives one error.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Index.h"

#include <functional>
#include <set>

namespace weft::lang {

/// Most operations before layers repeat.
constexpr int64_t kWrittenNodeLimit = 100'000;
/// Most calls of defs.
constexpr int64_t kPastedCallLimit = 20'000;

/// What an expression is: a tensor, or a number known before anything runs.
struct Item {
  enum class Kind { Poison, Nothing, Formula, Tensor };
  Kind kind = Kind::Poison;
  FormulaRef formula;
  ValueId value = kNoValue;

  static Item poison() { return {}; }
  static Item nothing() { return {Kind::Nothing, nullptr, kNoValue}; }
  static Item of(FormulaRef formula) { return {Kind::Formula, std::move(formula), kNoValue}; }
  static Item of(ValueId value) { return {Kind::Tensor, nullptr, value}; }
  bool isPoison() const { return kind == Kind::Poison; }
  bool isFormula() const { return kind == Kind::Formula; }
  bool isTensor() const { return kind == Kind::Tensor; }
};

struct Symbol {
  enum class Kind { Setting, Let, Index, Argument, Value, Param, Input, Def };
  Kind kind = Kind::Value;
  Place place;
  Item item;                      // all but Def
  const ast::Stmt *def = nullptr; // Def
};

struct Scope {
  enum class Kind { Model, Layer, Branch, Side, Def };
  Kind kind = Kind::Model;
  std::string name;
  Scope *parent = nullptr;
  std::map<std::string, Symbol, std::less<>> symbols;
  /// Side of an `if`: outer symbols that it has assigned, and what they were.
  std::map<Symbol *, Item> before;
};

/// What a path step can lead to: parameters, branches and layers of one scope.
struct PathNames {
  struct Entry {
    Place place;
    const ast::Stmt *def = nullptr; // pasted from this def
  };
  std::map<std::string, Entry, std::less<>> names;
  std::string path; // of the scope, without indices: `block.attn`
};

class ModelChecker {
public:
  ModelChecker(const ast::Model &source, const SourceFiles &sources, const Overrides &overrides,
               Diagnostics &diagnostics, NameIndex *index = nullptr)
      : source(source), sources(sources), overrides(overrides), diagnostics(diagnostics), index(index) {}
  std::optional<Model> check();

private:
  //===--- Settings (Checker.cpp) ---===//
  void checkSettings();
  void checkSetting(const ast::Setting &setting);
  FormulaRef overrideOf(const ast::Setting &setting, std::string &text);
  void checkOverrideNames();
  void findRepeatNames();
  bool isSymbolic(const Formula &formula) const;
  std::string provenance(const Formula &formula) const;
  std::optional<Value> evaluateNow(const Formula &formula, const Place &place);

  //===--- Scopes (CheckScopes.cpp) ---===//
  Diagnostic &error(Code code, const Place &place, std::string message);
  bool enter(const Place &place);
  struct Found {
    Symbol *symbol = nullptr;
    Scope *scope = nullptr;
    Scope *crossed = nullptr; // the outermost branch or def between here and there
  };
  Found lookUp(std::string_view name);
  Symbol *declare(const ast::Name &name, Symbol symbol);
  void assign(const ast::Name &name, Item item);
  void setSymbol(const Found &found, Item item);
  bool claimPath(const ast::Name &name, std::string_view what);
  void reportUnknown(const std::string &name, const Place &place);
  std::vector<std::string> visibleNames() const;
  template <typename Body> void inScope(Scope &inner, Body body);

  //===--- Names for editors (CheckIndex.cpp); nothing without an index ---===//
  void indexDeclaration(const ast::Name &name, const Symbol &symbol);
  void indexUse(const Place &place, std::string_view name, const Symbol &symbol, const Item &item);
  void indexStep(NameKind kind, const ast::Name &name, const Place &whole);
  void indexChoice(const ast::Expr &word, std::string_view setting);
  void indexChoices(const ast::Setting &setting);
  /// A function or operator at `place`, with the value that the term `whole` has.
  void indexTerm(NameKind kind, const Place &place, std::string_view name, const Item &item,
                 const Place &whole);
  std::string typeText(const Item &item) const;
  std::string stepPath(const std::string &name) const;
  Place wordIn(const Place &place, const std::string &word) const;
  void indexCount(const ast::Stmt &layer, const FormulaRef &count);
  struct Statement {
    Place place, block;
  };

  //===--- Statements (CheckStatements.cpp) ---===//
  Item checkBlock(const ast::Block &block, bool wantsValue);
  void checkStatement(const ast::Stmt &statement);
  void checkInput(const ast::Stmt &statement);
  void checkParam(const ast::Stmt &statement);
  bool checkAxes(const ast::Stmt &statement, TensorType &type);
  std::optional<std::string> axisName(const ast::Name &axis);
  std::optional<Init> checkInit(const ast::Expr &expr);
  void checkLet(const ast::Stmt &statement);
  void checkAssign(const ast::Stmt &statement);
  void checkLayer(const ast::Stmt &statement);
  void finishLayer(Node &node, const std::vector<Found> &carried, const std::vector<Item> &outer);
  std::vector<ast::Name> assignedIn(const ast::Block &block) const;
  void checkOutput(const ast::Stmt &statement);
  void checkLoss(const ast::Stmt &statement);
  bool onlyOutermost(const ast::Stmt &statement, std::string_view what);

  //===--- Expressions (CheckExpr.cpp) ---===//
  Item checkExpr(const ast::Expr &expr);
  Item checkName(const ast::Expr &expr);
  Item checkNumber(const ast::Expr &expr);
  Item checkChain(const ast::Expr &expr);
  Item checkComparison(const ast::Expr &expr);
  Item checkEquality(const ast::Expr &expr);
  Item checkBinary(const std::string &op, Item a, Item b, const Place &place);
  Item checkPower(const ast::Expr &expr);
  Item checkNegation(const ast::Expr &expr);
  Item checkLogic(const ast::Expr &expr);
  Item checkBranch(const ast::Expr &expr);
  Item checkIf(const ast::Expr &expr, bool wantsValue, size_t arm = 0);
  Item checkSymbolicIf(const ast::Expr &expr, bool wantsValue, size_t arm, FormulaRef test);
  struct Side {
    Block block;
    Item item;
    std::map<Symbol *, Item> before, after;
  };
  Side checkSide(const std::function<Item()> &body);
  Item joinSides(const ast::Expr &expr, bool wantsValue, FormulaRef test, Side first, Side second);
  FormulaRef formulaOf(const ast::Expr &expr, std::string_view what);
  FormulaRef makeFormula(Formula::Kind kind, std::vector<FormulaRef> args, const Place &place,
                         std::string name = {});

  //===--- Calls (CheckCalls.cpp) ---===//
  Item checkCall(const ast::Expr &expr);
  Item checkBuiltin(const ast::Expr &expr);
  Item pasteDef(const ast::Expr &expr, const Found &found);
  Item pasteBody(const ast::Expr &expr, const Found &found, std::vector<Item> arguments);
  struct Arguments {
    std::vector<Item> items;                 // by position, as many as were asked for
    std::map<std::string, FormulaRef> named; // with the defaults filled in
    bool ok = true;
  };
  /// A builtin: tensors first, then options by name or in order. An option
  /// without a default must be given, `attend` fills its scale itself.
  struct Signature {
    std::string_view name;
    size_t least, most; // tensors
    struct Option {
      std::string_view name;
      FormulaRef standard;
    };
    std::vector<Option> options;
  };
  Arguments checkArguments(const ast::Expr &expr, const Signature &signature);
  void takeOption(const ast::Expr &expr, const Signature &signature, size_t index, size_t option,
                  Arguments &arguments);
  std::optional<Item> checkFormulaCall(const ast::Expr &expr);
  Item checkRowFunction(const ast::Expr &expr, NodeKind kind, const Signature &signature);
  Item checkUnary(const ast::Expr &expr);
  void reportUnknownFunction(const ast::Expr &expr);
  Item checkAttend(const ast::Expr &expr);
  Item checkDropout(const ast::Expr &expr);
  Item checkCrossEntropy(const ast::Expr &expr);
  Item checkIndex(const ast::Expr &expr);

  //===--- Axes (CheckAxes.cpp) ---===//
  bool isData(const std::string &axis) const { return axis == "batch" || axis == "pos"; }
  std::string shapeText(const TensorType &type) const;
  Item alignedBinary(const std::string &op, ValueId a, ValueId b, const Place &place);
  Item contract(ValueId a, ValueId b, const Place &place);
  bool attendAxes(const TensorType &q, const TensorType &k, const TensorType &v, const Place &place,
                  std::vector<std::string> &axes);
  bool axesKnown(ValueId value, std::string_view what);
  bool needsFloat(ValueId value, const Place &place, std::string_view what);
  bool repeatsAxis(const std::vector<std::string> &axes, const Place &place, std::string_view what);
  std::optional<ValueId> tensorOf(const Item &item, const Place &place, std::string_view what);
  const TensorType &typeOf(ValueId value) const { return model.values[static_cast<size_t>(value)]; }
  ValueId newValue(TensorType type);
  void reportTooMany(const Place &place);
  Node &emit(NodeKind kind, const Place &place, std::vector<ValueId> operands);
  Item emitValue(NodeKind kind, const Place &place, std::vector<ValueId> operands, TensorType type,
                 std::string name = {}, std::map<std::string, FormulaRef> formulas = {});
  void noteDeclaration(Diagnostic &diagnostic, ValueId value);

  const ast::Model &source;
  const SourceFiles &sources;
  const Overrides &overrides;
  Diagnostics &diagnostics;

  Model model;
  Scope *scope = nullptr;
  Block *block = nullptr;                                    // where nodes go
  PathNames *paths = nullptr;                                // of the layer or branch (or model) around
  Bindings statics;                                          // names whose values are known now
  std::set<std::string, std::less<>> symbolic;               // names that layers or passes change
  std::map<std::string, FormulaRef, std::less<>> activeLets; // every let that a formula here could mean
  std::map<std::string, Place, std::less<>> letPlaces;
  struct PastedCall {
    const ast::Stmt *def;
    Place place;
  };
  std::vector<PastedCall> calls;
  std::vector<Place> valuePlaces; // by ValueId: where it was made
  int depth = 0;
  int64_t nodeCount = 0, pastedCalls = 0;
  bool reportedDepth = false, reportedNodes = false;
  bool produces = false;
  Place lossPlace;
  bool hasLoss = false;
  NameIndex *index = nullptr;
  std::vector<Statement> statements; // around what is being checked; kept for the index

  friend struct DepthGuard;
};

/// One level of nesting in the checker; false past the limit.
struct DepthGuard {
  DepthGuard(ModelChecker &checker, const Place &place) : checker(checker) {
    ++checker.depth;
    ok = checker.enter(place);
  }
  ~DepthGuard() { --checker.depth; }
  ModelChecker &checker;
  bool ok;
};

template <typename Body> void ModelChecker::inScope(Scope &inner, Body body) {
  Scope *outerScope = scope;
  Bindings outerStatics = statics;
  auto outerSymbolic = symbolic;
  auto outerLets = activeLets;
  scope = &inner;
  body();
  scope = outerScope;
  statics = std::move(outerStatics);
  symbolic = std::move(outerSymbolic);
  activeLets = std::move(outerLets);
}

/// Reports sizes, initialisers, windows and rates that are wrong in some layer.
void checkSizes(const Model &model, const std::function<std::string(const Formula &)> &provenance,
                const SourceFiles &sources, Diagnostics &diagnostics);

} // namespace weft::lang
