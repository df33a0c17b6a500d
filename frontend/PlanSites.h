//===- PlanSites.h - Where plans can act in a model -------------*- C++ -*-===//
//
// The unrolled outline of a checked model: layers, branches and the attends in
// them, with their heads. Plans address it by path; `heads` counts query heads
// row-major over all axes between the data axes and the channel.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Model.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weft::lang {

/// An attend of the unrolled model. Several attends under one path count as
/// one, their heads in the order of the text.
struct HeadSite {
  std::string path;             // block.3.attn; empty outside layers and branches
  int64_t heads = 0;            // query heads
  int64_t kvHeads = 0;          // key heads; divides heads
  int64_t channels = 0;         // size of q's last axis
  std::vector<int64_t> windows; // by head, what the model itself says; INT64_MAX: full
  int64_t valueChannels = 0;    // size of v's last axis
};

/// A layer (one repeat of it) or a branch.
struct OutlineScope {
  std::string name;   // block
  int64_t index = -1; // 3; -1: a branch
  std::string path;   // block.3
  std::vector<OutlineScope> children;
  int32_t site = -1; // into Outline::sites, when an attend stands right in it
};

struct Outline {
  OutlineScope root;
  std::vector<HeadSite> sites; // in order of the unrolled text
};

/// The outline of `model`, without the branches whose paths are in `dropped` (or its own)
/// (`block.3.ffn`). Fails where a formula has no value, which a checked model
/// has only after a setting was changed.
absl::StatusOr<Outline> outlineOf(const Model &model, const std::set<std::string, std::less<>> &dropped = {});

/// The setting that is the count of the outermost layer `layer`, or empty.
std::string depthSettingOf(const Model &model, std::string_view layer);

/// `model` with setting `name` at `value`.
Model withSetting(Model model, std::string_view name, double value);

/// Paths of the parameters that a product (`@`) or a lookup reads: with two axes
/// or more they are matrices. A bias `[heads, head]` is none.
std::set<std::string> matricesOf(const Model &model, const std::set<std::string, std::less<>> &dropped = {});

/// Weights in the matrices of layers, without those under `dropped`.
int64_t layerMatrixWeights(const Model &model, const std::set<std::string, std::less<>> &dropped);

/// Weights that the product behind the loss's logits multiplies a row with:
/// vocabulary times width, 0 where logits are no product.
int64_t headWeights(const Model &model);

} // namespace weft::lang
