//===- CompileC.h - Objects for tests, from C -------------------*- C++ -*-===//
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace weft::rt {

/// The relocatable object that gcc makes of `source`; empty (and a test failure)
/// when it doesn't compile.
inline std::string compileC(const std::string &source, const std::string &flags = "") {
  static int count = 0;
  std::string stem =
      ::testing::TempDir() + "weft-object-" + std::to_string(getpid()) + "-" + std::to_string(count++);
  std::ofstream(stem + ".c") << source;
  std::string command = "gcc -c -O2 -fPIC -mcmodel=small " + flags + " -o " + stem + ".o " + stem + ".c";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  std::ifstream file(stem + ".o", std::ios::binary);
  std::string object{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::remove((stem + ".c").c_str());
  std::remove((stem + ".o").c_str());
  return object;
}

} // namespace weft::rt
