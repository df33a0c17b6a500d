//===- Ast.h - What was written, before it is understood --------*- C++ -*-===//
//
// Models are trees of statements and expressions; plans, recipes and weight
// tables are generic trees of clauses, options and terms, which their checkers
// read. Nodes live in the File's arenas: destroying a tree never recurses.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Diagnostics.h"
#include "frontend/Source.h"

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace weft::lang::ast {

struct Name {
  std::string text;
  Place place;
};

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

struct Block;
struct Expr;

/// One side of an `if`; the `else` side has no test.
struct Arm {
  const Expr *test = nullptr;
  const Block *body = nullptr;
  Place place; // of `if` or `else`
};

struct Expr {
  enum class Kind {
    Number, // number; text as written
    Name,   // text
    Chain,  // items a, b, c and operators between them, of one precedence, left to right
    Power,  // items: base, exponent
    Neg,    // items: operand
    Not,    // items: operand
    Call,   // text; items are the arguments, keys their names (text empty: by position)
    Index,  // items: table, index
    Branch, // text; body
    If,     // arms; the last may be without a test
  };
  Kind kind = Kind::Number;
  Place place;
  bool parenthesized = false;
  double number = 0;
  std::string text;
  std::vector<const Expr *> items;
  std::vector<Name> operators; // Chain: + - * / @ mod < <= > >= is "is not" and or
  std::vector<Name> keys;      // Call
  std::vector<Arm> arms;
  const Block *body = nullptr;
};

struct Stmt {
  enum class Kind { Input, Param, Let, Def, Layer, If, Assign, Output, Loss, Value };
  Kind kind = Kind::Value;
  Place place;                  // the whole statement
  std::vector<Name> names;      // Input, Param: all; Let, Def, Layer, Assign, Output: one
  std::vector<Name> axes;       // Input, Param
  std::string element;          // Input: "int" or "float"
  std::vector<Name> parameters; // Def
  Name index;                   // Layer: text empty without one
  bool adds = false;            // Assign: +=
  const Expr *expr =
      nullptr; // Param: init; Let, Assign, Output, Loss, Value, If; Layer: count; Def: `= expr`
  const Block *body = nullptr; // Layer; Def with braces
};

struct Block {
  std::vector<Stmt> statements;
  Place place; // from { to }
};

struct Setting {
  Name name;
  const Expr *value = nullptr; // null for words
  std::vector<Name> words;     // `a | b | c`, the default first
};

struct Model {
  Name name;
  std::vector<Setting> settings;
  const Block *body = nullptr;
  Place place; // the whole statement
};

//===----------------------------------------------------------------------===//
// Plans, recipes, weight tables
//===----------------------------------------------------------------------===//

struct Phrase;
struct Argument;

/// One index inside an address: `3`, `0..9`, `..`, `3..`, or a name (`i`).
struct IndexRange {
  std::optional<int64_t> low, high; // both ends included; an absent end is open
  std::string name;                 // `i`
  Place place;
};

/// One step of an address: `block[0..9, 12]`, `attn`, `(wq, wk, wv)`.
struct Segment {
  std::vector<Name> names; // more than one only for a group in parentheses
  bool indexed = false;
  std::vector<IndexRange> indices;
  Place place;
};

struct Term {
  enum class Kind {
    Number,  // number (`2 ** -11` and `-1` are numbers)
    Percent, // number: 25% is 25
    String,  // text without quotes, escapes resolved
    Word,    // text
    Call,    // text(arguments)
    List,    // [arguments]
    Group,   // (arguments)
    Range,   // low..high
    Address, // segments: words joined by dots, or with an index
    Symbol,  // text: <-> or ==
  };
  Kind kind = Kind::Word;
  Place place;
  std::string text;
  double number = 0;
  std::optional<double> low, high; // Range
  std::vector<Argument> arguments; // Call, List, Group
  std::vector<Segment> segments;   // Address; also filled for Word, with one segment
};

/// Terms side by side: `every 1000 steps on all`, `480 x 1024 in 40`.
struct Phrase {
  std::vector<Term> terms;
  Place place;
};

/// `0.9` or `lr = 6e-4`.
struct Argument {
  Name key; // text empty without one
  Phrase value;
};

/// `key = phrase, phrase, ...`
struct Option {
  Name key;
  std::vector<Phrase> values;
  Place place;
};

/// `verb phrase, phrase, ... { options }`. In a weight table the lines without
/// a verb (`embed <-> "wte.weight" [vocab, dim]`) have the verb "".
struct Clause {
  Name verb;
  std::vector<Phrase> phrases;
  bool braces = false;
  std::vector<Option> options;
  Place place;
};

/// `plan NAME for MODEL { clauses }`, `train NAME for MODEL { options }`,
/// `weights NAME for MODEL { clauses }`.
struct Plan {
  Name name, model;
  std::vector<Clause> clauses;
  Place place;
};
struct Train {
  Name name, model;
  std::vector<Option> options;
  Place place;
};
struct Weights {
  Name name, model;
  std::vector<Clause> clauses;
  Place place;
};

/// `use "gpt2.weft"`
struct Use {
  std::string path; // as written
  Place place;
};

/// From `#` to the end of the line.
struct Comment {
  Place place;
  bool ownLine = false; // nothing but spaces before it
};

/// Everything that one or more files hold; `sources` are the numbers of the
/// files that were read into it, the used ones before those that use them.
struct File {
  std::vector<Use> uses;
  std::vector<Model> models;
  std::vector<Plan> plans;
  std::vector<Train> trains;
  std::vector<Weights> weights;
  std::vector<Comment> comments;
  std::vector<int32_t> sources;

  const Model *findModel(std::string_view name) const;
  const Plan *findPlan(std::string_view name) const;
  const Train *findTrain(std::string_view name) const;
  const Weights *findWeights(std::string_view name) const;

  Expr *newExpr() { return &exprs.emplace_back(); }
  Block *newBlock() { return &blocks.emplace_back(); }

  File() = default;
  File(File &&) = default;
  File &operator=(File &&) = default;
  File(const File &) = delete;
  File &operator=(const File &) = delete;

private:
  std::deque<Expr> exprs;
  std::deque<Block> blocks;
};

} // namespace weft::lang::ast
