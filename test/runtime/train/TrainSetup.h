//===- TrainSetup.h - A run of the bigram model for tests -------*- C++ -*-===//
#pragma once

#include "runtime/core/File.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/Train.h"
#include "test/runtime/train/BigramMachine.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

namespace weft::rt {

/// A folder of its own, removed at the end.
class Scratch {
public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weft-test-XXXXXX").string();
    root = ::mkdtemp(pattern.data());
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }
  std::string operator/(const std::string &name) const { return root + "/" + name; }

private:
  std::string root;
};

/// 400 tokens that follow a rule with exceptions, so that there is something to learn.
inline std::shared_ptr<const TokenStream> tokenStream(int64_t count = 400) {
  std::vector<int32_t> ids;
  for (int64_t i = 0, token = 1; i < count; ++i) {
    ids.push_back(static_cast<int32_t>(token));
    token = (token * 5 + 3 + (i % 7 == 0)) % 15;
  }
  auto stream = std::make_shared<TokenStream>();
  stream->add(std::move(ids));
  return stream;
}

inline Recipe smallRecipe(int64_t steps) {
  Recipe recipe;
  recipe.documentsApart = false;
  recipe.rows = 4;
  recipe.positions = 8;
  recipe.microBatches = 2;
  recipe.steps = steps;
  recipe.optimizers[0].lr = 0.1;
  recipe.optimizers[0].beta2 = 0.95;
  recipe.schedule.kind = Schedule::Kind::Cosine;
  recipe.schedule.warmup = {3, false};
  recipe.schedule.floor = 0.1;
  recipe.logEvery = 1;
  recipe.seed = 7;
  return recipe;
}

inline BigramOptions smallOptions() {
  BigramOptions options;
  options.rows = 2;
  return options;
}

/// Every way a test's run can differ.
struct RunResult {
  absl::StatusOr<TrainSummary> summary = absl::UnknownError("not run");
  std::string model, state; // bytes of the last checkpoint's files
};

inline RunResult runTraining(Machine &machine, const Recipe &recipe, const std::string &path,
                             TrainOptions options = {}, const EvalData *eval = nullptr,
                             std::shared_ptr<const TokenStream> stream = tokenStream()) {
  RunResult result;
  absl::StatusOr<TrainData> data = TrainData::make(stream, recipe);
  absl::StatusOr<RunDirectory> run =
      options.resume ? RunDirectory::open(path) : RunDirectory::create(path, "model bigram {}\n");
  if (!data.ok() || !run.ok()) {
    result.summary = data.ok() ? run.status() : data.status();
    return result;
  }
  result.summary = train(machine, recipe, *data, eval, *run, options);
  if (result.summary.ok()) {
    result.model = readFile(result.summary->checkpoint + "/model.safetensors").value_or("");
    result.state = readFile(result.summary->checkpoint + "/state.safetensors").value_or("");
  }
  return result;
}

/// The lines of log.jsonl of one kind.
inline std::vector<Json> logLines(const std::string &path, const std::string &kind) {
  std::vector<Json> lines;
  const std::string text = readFile(path + "/log.jsonl").value_or("");
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    absl::StatusOr<Json> json = parseJson(text.substr(begin, end - begin), "log");
    EXPECT_TRUE(json.ok()) << json.status();
    if (json.ok() && (*json)["kind"] == kind)
      lines.push_back(*json);
  }
  return lines;
}

} // namespace weft::rt
