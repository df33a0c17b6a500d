//===- Loop.h - A server on two descriptors ---------------------*- C++ -*-===//
#pragma once

#include "tools/lsp/Server.h"

#include <string>

namespace weft::lsp {

/// Reads messages from `in` and writes answers to `out` until `exit` or the end
/// of `in`. Returns the exit code; `why` says in a line what broke the stream off.
int serve(int in, int out, Server &server, std::string &why);

} // namespace weft::lsp
