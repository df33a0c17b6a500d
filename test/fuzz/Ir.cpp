// Textual IR: MLIR's parser behind the scan of its nesting, and the verifiers of both
// dialects. Passes are not given what only these let through.
#include "test/fuzz/Fuzz.h"

#include "dialects/Tile/Tile.h"
#include "dialects/Weft/Weft.h"
#include "tools/weft-opt/Nesting.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <cctype>
#include <filesystem>
#include <memory>
#include <set>

namespace weft::fuzz {
namespace {

std::unique_ptr<mlir::MLIRContext> current;

mlir::MLIRContext &context() { return *current; }

/// A context keeps every type and attribute that it has seen: a new one now and then,
/// between inputs, when no module of the old one lives.
void beginInput() {
  constexpr int kInputs = 500;
  static int used = kInputs;
  if (used++ < kInputs)
    return;
  mlir::DialectRegistry registry;
  registerWeftDialects(registry);
  tile::registerTileDialects(registry);
  current = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  used = 1;
}

std::string printed(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out);
  return text;
}

/// `act` with the first error it told, or "ok".
template <typename Act> std::string told(Act act) {
  std::string first;
  mlir::ScopedDiagnosticHandler handler(&context(), [&](mlir::Diagnostic &diagnostic) {
    if (first.empty() && diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
      first = diagnostic.str();
    return mlir::success();
  });
  const bool good = act();
  require(good || !first.empty(), "refused without a word");
  return good ? "ok" : outcomeOf(absl::InvalidArgumentError(first));
}

/// Whether some value is named first where nothing makes it. MLIR's parser (22.1) frees the maker
/// of such a value while its user still holds it, when an error follows inside the maker's region
/// (Operation::dropAllReferences, found by this target): not ours to mend, and no IR that
/// Weft prints. Makers are results at the start of a line and arguments in a line that opens a
/// block or a region; what else there may be is taken for a use.
bool usesBeforeMaking(const std::string &input) {
  std::set<llvm::StringRef> made;
  for (llvm::StringRef rest = input; !rest.empty();) {
    llvm::StringRef line;
    std::tie(line, rest) = rest.split('\n');
    line = line.split("//").first.trim();
    const size_t equals = line.starts_with("%") ? line.find('=') : 0;
    const bool opens = line.starts_with("^") || line.ends_with("{");
    for (size_t at = line.find('%'); at != llvm::StringRef::npos; at = line.find('%', at + 1)) {
      const llvm::StringRef name = line.substr(at).take_while([](char c) {
        return c == '%' || std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.' ||
               c == '-';
      });
      const llvm::StringRef before = line.take_front(at).rtrim(),
                            after = line.substr(at + name.size()).ltrim();
      const bool argument =
          opens && (before.ends_with("(") || before.ends_with(",")) && after.starts_with(":");
      if (at < equals || argument)
        made.insert(name);
      else if (!made.contains(name))
        return true;
    }
  }
  return false;
}

mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &input, std::string &outcome) {
  beginInput();
  mlir::OwningOpRef<mlir::ModuleOp> module;
  if (usesBeforeMaking(input)) {
    outcome = "names a value before it is made";
    return module;
  }
  if (!nestingIsBounded(input, "input")) {
    outcome = "nests too deep";
    return module;
  }
  outcome = told([&] {
    module = mlir::parseSourceString<mlir::ModuleOp>(input, &context());
    return static_cast<bool>(module);
  });
  return module;
}

/// What is read and valid is printed and read again to the same.
std::string ir(const std::string &input) {
  std::string outcome;
  mlir::OwningOpRef<mlir::ModuleOp> module = parse(input, outcome);
  if (!module)
    return outcome;
  const std::string text = printed(*module);
  mlir::OwningOpRef<mlir::ModuleOp> again = mlir::parseSourceString<mlir::ModuleOp>(text, &context());
  require(again && printed(*again) == text, "what was printed reads as something else");
  return outcome;
}

/// Modules of the tests of passes and dialects that are valid.
std::vector<std::string> irSeeds() {
  namespace fs = std::filesystem;
  std::set<std::string> paths;
  for (const char *folder : {"passes", "dialects"})
    for (const auto &entry : fs::recursive_directory_iterator(std::string(WEFT_SOURCE_DIR "/test/") + folder))
      if (entry.path().extension() == ".mlir")
        paths.insert(entry.path().string().substr(sizeof WEFT_SOURCE_DIR));
  std::vector<std::string> seeds;
  for (const std::string &path : paths) {
    const std::string text = sourceFile(path);
    for (size_t at = 0, end = 0; end != std::string::npos; at = end + 8) {
      end = text.find("// -----", at);
      const std::string piece = text.substr(at, end == std::string::npos ? end : end - at);
      if (ir(piece) == "ok")
        seeds.push_back(piece);
    }
  }
  require(seeds.size() > 40, "the tests hold no modules");
  return seeds;
}

} // namespace

const std::vector<Target> &targets() {
  static const std::vector<std::string> words = {
      "?",          "x",       "-1",          "0",           "9223372036854775807",
      "tensor<",    "memref<", "f32",         "f64",         "bf16",
      "index",      "%0",      "@x",          "#weft.axes<", "weft.",
      "dense<0.0>", "true",    "affine_map<", "array<i64: ", "loc(\"a\":1:2)",
      "() -> ()",   "^bb0(",   "{",           "}",           "<",
      ">",          "unit"};
  static const std::vector<Target> all = {{"ir", irSeeds, words, ir}};
  return all;
}

} // namespace weft::fuzz
