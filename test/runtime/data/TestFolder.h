//===- TestFolder.h - A folder that a test may fill -------------*- C++ -*-===//
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace weft::rt {

/// A fresh folder, removed at the end.
class TestFolder {
public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "weft-test-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~TestFolder() {
    std::error_code error;
    std::filesystem::remove_all(path, error);
  }
  TestFolder(const TestFolder &) = delete;
  TestFolder &operator=(const TestFolder &) = delete;

  std::string write(const std::string &name, const std::string &bytes) const {
    std::string file = path + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }

  std::string path;
};

} // namespace weft::rt
