//===- Index.h - What each name of a text means -----------------*- C++ -*-===//
//
// The checker writes down every name that it resolves: where it stands, where
// it is declared, and what it is there. Editors ask it (tools/lsp). A name
// inside a def is what the first call makes of it; the side of an `if` that the
// settings leave out, and a def that nothing calls, have no entries.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Checker.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::lang {

enum class NameKind {
  Model,
  Plan,
  Recipe,
  Table,
  Setting,
  Choice, // a word that a setting can be
  Let,
  Index, // of a layer
  Argument,
  Value,
  Param,
  Input,
  Def,
  Layer,
  Branch,
  Function, // of the language
  Operator,
};

struct NameEntry {
  NameKind kind = NameKind::Value;
  std::string name;
  Place place;    // of the name here
  Place declared; // of the name where it is declared; length 0: by the language
  Place term;     // a declaration's statement; a function's or operator's whole term
  Place extent;   // of a declaration: the block that knows the name
  /// `[batch, pos, dim = 1024]`, `128`, `0 to 27`; empty when it was refused.
  std::string type;
  std::string model; // the model that it belongs to
  /// Layer, branch, parameter: the steps to it without indices, `block.attn.wq`.
  std::string path;

  bool isDeclaration() const {
    return place.file == declared.file && place.offset == declared.offset && declared.length > 0;
  }
};

class NameIndex {
public:
  /// The first entry of a place stays.
  void add(NameEntry entry);
  bool has(const Place &place) const { return entries.count({place.file, place.offset}) > 0; }
  /// The entry at a place gets its type, which is known only after its arguments are.
  void setType(const Place &place, std::string type, const Place &term);
  /// `path` of `model` leads to the name declared at `declared`.
  void addPath(const std::string &model, const std::string &path, const Place &declared);

  /// The name at a byte of a file, or behind its last byte; null when none is there.
  const NameEntry *at(int32_t file, int32_t offset) const;
  /// Entries of what is declared there, in order of places.
  std::vector<const NameEntry *> usesOf(const Place &declared) const;
  /// The entry of the declaration, or null.
  const NameEntry *declarationOf(const NameEntry &entry) const;
  const Place *pathPlace(const std::string &model, const std::string &path) const;
  /// A setting or let of `model`, which has no path; null when there is none.
  const NameEntry *sizeNamed(const std::string &model, std::string_view name) const;
  /// Every entry, in order of places.
  std::vector<const NameEntry *> all() const;

private:
  std::map<std::pair<int32_t, int32_t>, NameEntry> entries; // by file and offset
  std::map<std::pair<std::string, std::string>, Place> paths;
};

/// As checkModel, and writes its names to `names`, also when there are errors.
std::optional<Model> checkModel(const ast::File &file, const SourceFiles &sources, std::string_view modelName,
                                const Overrides &overrides, Diagnostics &diagnostics, NameIndex &names);

/// Names outside models: what statements are called and are for, addresses of
/// plans and recipes, paths and layouts of weight tables. The models' own names
/// are in `names` already.
void indexStatements(const ast::File &file, NameIndex &names);

} // namespace weft::lang
