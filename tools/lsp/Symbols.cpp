//===- Symbols.cpp - The outline of a text ---------------------------------===//

#include "tools/lsp/Symbols.h"

namespace weft::lsp {
namespace {

namespace ast = lang::ast;

/// SymbolKind of the protocol.
enum class SymbolKind {
  Module = 2,
  Namespace = 3,
  Class = 5,
  Property = 7,
  Field = 8,
  Function = 12,
  Variable = 13,
  Constant = 14,
  Object = 19,
  Event = 24
};

class Outliner {
public:
  explicit Outliner(Analysis &analysis) : analysis(analysis) {}

  rt::Json run() {
    const ast::File &file = analysis.file;
    rt::Json list = rt::Json::array();
    for (const ast::Model &model : file.models)
      if (model.place.file == analysis.own) {
        rt::Json inside = rt::Json::array();
        for (const ast::Setting &setting : model.settings)
          inside.push_back(symbol(setting.name, SymbolKind::Constant, setting.name.place));
        addBlock(*model.body, inside);
        list.push_back(symbol(model.name, SymbolKind::Class, model.place, std::move(inside)));
      }
    for (const ast::Plan &plan : file.plans)
      addStatement(plan, plan.clauses, list);
    for (const ast::Train &train : file.trains)
      if (train.place.file == analysis.own) {
        rt::Json inside = rt::Json::array();
        for (const ast::Option &option : train.options)
          inside.push_back(symbol(option.key, SymbolKind::Property, option.place));
        list.push_back(symbol(train.name, SymbolKind::Object, train.place, std::move(inside)));
      }
    for (const ast::Weights &table : file.weights)
      addStatement(table, table.clauses, list);
    return list;
  }

private:
  rt::Json symbol(const ast::Name &name, SymbolKind kind, const lang::Place &whole,
                  rt::Json children = rt::Json::array()) {
    rt::Json made = {{"name", name.text.empty() ? "?" : name.text},
                     {"kind", static_cast<int>(kind)},
                     {"range", jsonOf(analysis.rangeOf(whole))},
                     {"selectionRange", jsonOf(analysis.rangeOf(name.place))}};
    if (!children.empty())
      made["children"] = std::move(children);
    return made;
  }

  /// A plan or weight table: each clause under what it says first.
  template <typename Statement>
  void addStatement(const Statement &statement, const std::vector<ast::Clause> &clauses, rt::Json &list) {
    if (statement.place.file != analysis.own)
      return;
    rt::Json inside = rt::Json::array();
    for (const ast::Clause &clause : clauses) {
      const std::string_view text = analysis.sources.textAt(clause.place);
      const size_t end = std::min({text.find_first_of("{\r\n"), text.find(" <->"), text.size()});
      const ast::Name name{std::string(text.substr(0, end)), clause.place};
      inside.push_back(symbol(name, SymbolKind::Event, clause.place));
    }
    list.push_back(symbol(statement.name, SymbolKind::Object, statement.place, std::move(inside)));
  }

  void addBlock(const ast::Block &block, rt::Json &list) {
    for (const ast::Stmt &statement : block.statements)
      add(statement, list);
  }

  void add(const ast::Stmt &statement, rt::Json &list) {
    rt::Json inside = rt::Json::array();
    if (statement.kind != ast::Stmt::Kind::Def && statement.expr)
      addBranches(*statement.expr, statement.kind == ast::Stmt::Kind::Layer ? inside : list);
    if (statement.body)
      addBlock(*statement.body, inside);
    switch (statement.kind) {
    case ast::Stmt::Kind::Input:
    case ast::Stmt::Kind::Param:
      for (const ast::Name &name : statement.names)
        list.push_back(symbol(name, SymbolKind::Field, name.place));
      return;
    case ast::Stmt::Kind::Let:
      list.push_back(symbol(statement.names[0], SymbolKind::Constant, statement.place));
      return;
    case ast::Stmt::Kind::Def:
      list.push_back(symbol(statement.names[0], SymbolKind::Function, statement.place));
      return;
    case ast::Stmt::Kind::Layer:
      list.push_back(symbol(statement.names[0], SymbolKind::Namespace, statement.place, std::move(inside)));
      return;
    case ast::Stmt::Kind::Output:
      list.push_back(symbol(statement.names[0], SymbolKind::Variable, statement.place));
      return;
    case ast::Stmt::Kind::Loss:
      list.push_back(symbol({"loss", statement.place}, SymbolKind::Variable, statement.place));
      return;
    case ast::Stmt::Kind::If:
    case ast::Stmt::Kind::Assign:
    case ast::Stmt::Kind::Value:
      return;
    }
  }

  /// Branches inside an expression, and what the sides of an `if` declare.
  void addBranches(const ast::Expr &expr, rt::Json &list) {
    for (const ast::Expr *item : expr.items)
      addBranches(*item, list);
    for (const ast::Arm &arm : expr.arms)
      addBlock(*arm.body, list);
    if (expr.kind != ast::Expr::Kind::Branch)
      return;
    rt::Json inside = rt::Json::array();
    addBlock(*expr.body, inside);
    const ast::Name name{expr.text, expr.place};
    list.push_back(
        symbol(name, SymbolKind::Module, lang::spanOf(expr.place, expr.body->place), std::move(inside)));
  }

  Analysis &analysis;
};

} // namespace

rt::Json symbolsOf(Analysis &analysis) { return Outliner(analysis).run(); }

} // namespace weft::lsp
