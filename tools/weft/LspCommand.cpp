//===- LspCommand.cpp - weft lsp -------------------------------------------===//

#include "tools/lsp/Loop.h"
#include "tools/weft/Command.h"
#include "tools/weft/Describe.h"

#include "absl/strings/str_cat.h"

#include <unistd.h>

using namespace weft;

int weft::lspCommand(int argc, const char **argv) {
  llvm::cl::opt<bool> stdio("stdio", llvm::cl::desc("speak over standard input and output (it always does)"),
                            llvm::cl::cat(flagCategory()));
  if (!parseFlags(argc, argv,
                  "a language server: diagnostics, hover, definitions, completion and layout for editors",
                  "  weft lsp\n"))
    return kUsage;
  const std::string cache = cacheFolder();
  lsp::Server server({versionText(), cache.empty() ? "" : cache + "/errors"});
  std::string why;
  const int status = lsp::serve(STDIN_FILENO, STDOUT_FILENO, server, why);
  return why.empty() ? status : fail(absl::InvalidArgumentError(absl::StrCat("lsp: ", why)));
}
