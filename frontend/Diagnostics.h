//===- Diagnostics.h - Errors with places, collected ------------*- C++ -*-===//
//
// Every error of a text has a code, a place, one sentence (what, expected,
// found), notes that point at the other half, and what to do. Independent
// errors are all kept; printing sorts them by place. An error follows from
// another one when the checker met a value that was already refused: it does
// not report those.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Source.h"

#include "absl/status/status.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::lang {

/// The codes of Codes.def: Code::W0301 and so on.
enum class Code {
#define WEFT_CODE(code, title) code,
#include "frontend/Codes.def"
#undef WEFT_CODE
};

/// "W0301".
std::string_view codeName(Code code);
/// The title of Codes.def.
std::string_view codeTitle(Code code);
/// The code with that name, or nullopt.
std::optional<Code> codeNamed(std::string_view name);

struct Note {
  Place place;
  std::string message;
};

struct Diagnostic {
  Code code{};
  Place place;
  std::string message; // lower-case start, no full stop
  std::vector<Note> notes;
  std::string help;
  bool hasPlace = true; // false: nothing to point at (a command line, a missing file)
  bool warning = false;

  Diagnostic &note(const Place &place, std::string message) {
    notes.push_back({place, std::move(message)});
    return *this;
  }
  Diagnostic &advise(std::string text) {
    help = std::move(text);
    return *this;
  }
};

/// Collects diagnostics. `error` returns the entry, to add notes and help to;
/// the reference holds until the next call.
class Diagnostics {
public:
  Diagnostic &error(Code code, const Place &place, std::string message);
  Diagnostic &warning(Code code, const Place &place, std::string message);
  /// An error about something that lies in no file.
  Diagnostic &errorAnywhere(Code code, std::string message);

  bool hasErrors() const { return errors > 0; }
  int errorCount() const { return errors; }
  /// Sorted by file, line and column; equal ones at one place once.
  std::vector<Diagnostic> sorted() const;

  /// As a person reads them: `file:line:col: error[W0304]: message`, the source
  /// line with a caret, notes, help. At most `limit` errors; the rest is counted.
  std::string render(const SourceFiles &sources, bool colour = false, int limit = 20) const;
  /// An array of objects {code, severity, file, line, column, length, message, notes, help}.
  std::string renderJson(const SourceFiles &sources) const;
  /// OK without errors, else InvalidArgument with the rendered text.
  absl::Status status(const SourceFiles &sources) const;

private:
  std::vector<Diagnostic> entries;
  int errors = 0;
};

/// The candidate that `name` is most likely a misspelling of (edit distance at
/// most a third of its length, at least 1), or empty.
std::string nearest(std::string_view name, const std::vector<std::string> &candidates);

} // namespace weft::lang
