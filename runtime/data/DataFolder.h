//===- DataFolder.h - Where fetched texts and tokenizers lie ----*- C++ -*-===//
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace weft::rt {

/// $WEFT_DATA_DIR, else $XDG_DATA_HOME/weft, else ~/.local/share/weft.
std::string dataFolder();

/// The file `name` of the data folder, read whole. Errors: NotFound names the
/// path and the command that fetches it, `tools/get-text WHAT`.
absl::StatusOr<std::string> readDataFile(const std::string &name, const std::string &what);

} // namespace weft::rt
