//===- Model.h - A checked model, still rolled ------------------*- C++ -*-===//
//
// What the checker makes of `model NAME (...) { ... }`: names resolved, `def`s
// pasted, axes lined up by name, every size a formula. Layers, branches and the
// `if`s that ask for a layer index or a repeat count stay as they were written.
// The emitter turns it into rolled weft IR one node at a time. No MLIR here.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Formula.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace weft::lang {

/// A range of a source file. `file` indexes SourceFiles; line and column are
/// counted from 1, columns in bytes.
struct Place {
  int32_t file = 0, line = 0, column = 0, offset = 0, length = 0;
};

/// An element type and named axes, outermost first. Sizes live in formulas:
/// one name has one size inside a scope.
struct TensorType {
  enum class Element { Int, Float };
  Element element = Element::Float;
  std::vector<std::string> axes;
  bool operator==(const TensorType &) const = default;
};

/// How a parameter starts. `a` (and `b`): normal(std) | uniform(low, high) or
/// uniform(bound) = uniform(-bound, bound) | truncated(std), cut at 2 std |
/// orthogonal(gain) | constant(value).
struct Init {
  enum class Kind { Constant, Normal, Uniform, Truncated, Orthogonal };
  Kind kind = Kind::Constant;
  FormulaRef a, b;
};

using ValueId = int32_t; // index into Model::values
constexpr ValueId kNoValue = -1;

enum class NodeKind {
  Input,        // name; result
  Param,        // name, init; result
  Constant,     // formulas["value"]; a float without axes
  Position,     // int[batch, pos]: index inside the document
  Document,     // int[batch, pos]: number of the document in its row
  Let,          // name, formulas["value"]: a size or number of a layer's scope; no result
  Unary,        // name: neg exp log sqrt tanh sigmoid silu gelu gelu_tanh relu
  Binary,       // name: add sub mul div pow; axes line up by name
  Contract,     // `@`: sums the axes both sides share, data axes excepted
  Gather,       // operands: table, index; the table's first axis is looked up
  LayerNorm,    // formulas["eps"]; over the last axis, no gain
  RmsNorm,      // formulas["eps"]
  Softmax,      // over the last axis
  Rope,         // formulas["base"]; halves paired, positions inside documents
  Attend,       // operands: q, k, v; formulas["window"] (may be full), formulas["scale"]
  Dropout,      // formulas["rate"]
  CrossEntropy, // operands: logits, targets[, weight]; formulas["z"], ["smoothing"]
  Layer,        // name, index (may be empty), formulas["count"]; operands: carried values;
                // blocks[0] has one argument a carried value and yields their next values
  Branch,       // name; blocks[0] yields one value
  If,           // formulas["test"]; blocks[0], blocks[1] yield the results
  Output,       // name; operand
  Loss,         // operand: a float without axes
};

struct Node;

/// Statements in order. `arguments` are values that the block defines at its
/// start, `yields` those it ends with.
struct Block {
  std::vector<ValueId> arguments;
  std::vector<Node> nodes;
  std::vector<ValueId> yields;
};

struct Node {
  NodeKind kind{};
  std::string name;
  std::string index; // Layer: the name of the index
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  std::map<std::string, FormulaRef> formulas;
  Init init; // Param
  std::vector<Block> blocks;
  Place place;
};

/// A setting after `--set`: a number, a word, or a formula of earlier ones.
struct Setting {
  std::string name;
  FormulaRef value;               // what is in force
  std::vector<std::string> words; // its choices, when it is a word
  bool overridden = false;        // set from outside
  Place place;                    // of the name
};

struct Model {
  std::string name;
  std::string text;                                     // the source of the model statement, for checkpoints
  std::vector<Setting> settings;                        // in order
  std::vector<std::pair<std::string, FormulaRef>> lets; // of the model's outermost scope, in order
  std::vector<TensorType> values;                       // by ValueId
  std::vector<std::string> valueNames; // the name last given to a value, or empty; by ValueId
  std::set<std::string, std::less<>> dropped; // paths of branches that a plan makes 0 (`block.3.ffn`)
  Block body;
  Place place;

  /// Settings and outer lets evaluated, as layers see them.
  Bindings bindings() const;
};

/// A parameter of the unrolled model: its path is the checkpoint's key.
struct ParameterInfo {
  std::string path; // block.3.attn.wq
  std::vector<std::string> axes;
  std::vector<int64_t> shape;
  Init::Kind init{};
  double initA = 0, initB = 0; // evaluated
  bool inLayer = false;        // declared inside a layer
  Place place;
};

/// Parameters in order of the unrolled text.
std::vector<ParameterInfo> parametersOf(const Model &model);

} // namespace weft::lang
