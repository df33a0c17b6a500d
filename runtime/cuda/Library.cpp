//===- Library.cpp --------------------------------------------------------===//
#include "runtime/cuda/Library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace weft::rt::cuda {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> foldersOf(const char *variable) {
  const char *value = std::getenv(variable);
  return value ? std::vector<std::string>(absl::StrSplit(value, ':', absl::SkipEmpty()))
               : std::vector<std::string>();
}

/// The folders inside `folder`, none when it can't be read.
std::vector<fs::path> inside(const fs::path &folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end; file.increment(error))
    found.push_back(file->path());
  return found;
}

/// PREFIX/lib/python3*/site-packages/nvidia/*/lib.
void addPipFolders(const fs::path &prefix, std::vector<std::string> &folders) {
  std::error_code error;
  for (const fs::path &python : inside(prefix / "lib"))
    if (python.filename().string().starts_with("python3"))
      for (const fs::path &package : inside(python / "site-packages" / "nvidia"))
        if (fs::is_directory(package / "lib", error))
          folders.push_back((package / "lib").string());
}

} // namespace

std::vector<std::string> foldersBefore() { return foldersOf("WEFT_CUDA_LIBS"); }

std::vector<std::string> foldersAfter() {
  std::vector<std::string> folders{"/usr/local/nvidia/lib64", "/usr/local/cuda/lib64"};
  if (const char *environment = std::getenv("VIRTUAL_ENV"))
    addPipFolders(environment, folders);
  for (const std::string &bin : foldersOf("PATH")) {
    std::error_code error;
    if (fs::exists(fs::path(bin) / "python3", error))
      addPipFolders(fs::path(bin).parent_path(), folders);
  }
  return folders;
}

absl::StatusOr<Library> Library::open(const std::vector<std::string> &names, std::string_view purpose) {
  Library library;
  auto load = [&](const std::string &path) {
    library.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    library.file = path;
    return library.handle != nullptr;
  };
  auto loadFrom = [&](const std::vector<std::string> &folders) {
    for (const std::string &folder : folders)
      for (const std::string &name : names)
        if (std::error_code error; fs::exists(fs::path(folder) / name, error))
          if (load((fs::path(folder) / name).string()))
            return true;
    return false;
  };
  if (loadFrom(foldersBefore()))
    return library;
  std::string reason;
  for (const std::string &name : names) {
    if (load(name))
      return library;
    const char *text = dlerror();
    if (reason.empty() && text)
      reason = text;
  }
  if (loadFrom(foldersAfter()))
    return library;
  return absl::NotFoundError(absl::StrCat(std::string(purpose), " needs ", absl::StrJoin(names, " or "),
                                          "; none was found (", reason,
                                          "); WEFT_CUDA_LIBS=FOLDER[:FOLDER...] names where else to look"));
}

void *Library::address(const char *symbol) const { return dlsym(handle, symbol); }

absl::Status Binder::status(std::string_view advice) const {
  if (missing.empty())
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(library.path(), " has no function ", missing, "; ", std::string(advice)));
}

} // namespace weft::rt::cuda
