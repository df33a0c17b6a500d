//===- numpy-check.h - Answers of an independent program --------*- C++ -*-===//
#pragma once

#include "runtime/core/File.h"
#include "runtime/core/Json.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

namespace weft::rt::test {

/// What test/numpy/SCRIPT prints for `question`, both as JSON.
inline Json numpyAnswer(const std::string &script, const Json &question) {
  const std::string stem = testing::TempDir() + "numpy-" + std::to_string(::getpid());
  EXPECT_TRUE(writeFileAtomic(stem + ".in", dumpJson(question)).ok());
  const std::string command =
      "/usr/bin/python3 " WEFT_SOURCE_DIR "/test/numpy/" + script + " < " + stem + ".in > " + stem + ".out";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  auto text = readFile(stem + ".out");
  EXPECT_TRUE(text.ok());
  auto answer = parseJson(*text, "answer of " + script);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.ok() ? *answer : Json();
}

} // namespace weft::rt::test
