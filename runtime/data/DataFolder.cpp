//===- DataFolder.cpp - Where fetched texts and tokenizers lie ------------===//
#include "runtime/data/DataFolder.h"

#include "runtime/core/File.h"

#include <cstdlib>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace weft::rt {

std::string dataFolder() {
  auto variable = [](const char *name) {
    const char *value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string folder = variable("WEFT_DATA_DIR"); !folder.empty())
    return folder;
  if (std::string folder = variable("XDG_DATA_HOME"); !folder.empty())
    return folder + "/weft";
  return variable("HOME") + "/.local/share/weft";
}

absl::StatusOr<std::string> readDataFile(const std::string &name, const std::string &what) {
  std::string path = dataFolder() + "/" + name;
  if (std::error_code error; !std::filesystem::exists(path, error))
    return absl::NotFoundError(absl::StrCat(path, " is not there; run: tools/get-text ", what,
                                            " (WEFT_DATA_DIR names another data folder)"));
  return readFile(path);
}

} // namespace weft::rt
