//===- WeightFiles.cpp - Weights in another program's layout ---------------===//

#include "tools/weft/WeightFiles.h"

#include "frontend/Diagnostics.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace weft;

namespace {

/// `a, b, c and 12 more`.
std::string someOf(const std::vector<std::string> &names) {
  constexpr size_t kShown = 5;
  const size_t shown = std::min(names.size(), kShown);
  std::string text = absl::StrJoin(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", ");
  if (names.size() > shown)
    absl::StrAppend(&text, " and ", names.size() - shown, " more");
  return text;
}

/// Whether `name` is `pattern`, where `{...}` stands for digits.
bool matches(std::string_view pattern, std::string_view name) {
  size_t at = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '{') {
      if (at == name.size() || name[at++] != pattern[i])
        return false;
      continue;
    }
    const size_t start = at;
    while (at < name.size() && name[at] >= '0' && name[at] <= '9')
      ++at;
    i = pattern.find('}', i);
    if (at == start || i == std::string_view::npos)
      return false;
  }
  return at == name.size();
}

bool isFloat(const std::string &dtype) {
  return dtype == "F16" || dtype == "BF16" || dtype == "F32" || dtype == "F64";
}

/// Calls `visit(index in the file, index in the parameter)` for each element, the
/// parameter's in order.
template <typename Visit> void forEachElement(const Placement &placement, Visit visit) {
  const size_t rank = placement.shape.size();
  const int64_t inner = rank ? placement.shape.back() : 1, step = rank ? placement.strides.back() : 0;
  int64_t count = 1;
  for (int64_t size : placement.shape)
    count *= size;
  std::vector<int64_t> index(rank, 0);
  for (int64_t done = 0; done < count;) {
    int64_t at = placement.first;
    for (size_t axis = 0; axis + 1 < rank; ++axis)
      at += index[axis] * placement.strides[axis];
    for (int64_t i = 0; i < inner; ++i)
      visit(static_cast<size_t>(at + i * step), static_cast<size_t>(done++));
    for (size_t axis = rank < 2 ? 0 : rank - 1; axis-- > 0;) {
      if (++index[axis] < placement.shape[axis])
        break;
      index[axis] = 0;
    }
  }
}

} // namespace

Placement weft::placementOf(const lang::WeightEntry &entry, size_t part,
                            const lang::ParameterInfo &parameter) {
  Placement placement{parameter.shape, std::vector<int64_t>(parameter.shape.size()), 0};
  int64_t stride = 1;
  for (auto axis = entry.layout.rbegin(); axis != entry.layout.rend(); ++axis) {
    for (auto name = axis->axes.rbegin(); name != axis->axes.rend(); ++name) {
      const auto at = static_cast<size_t>(std::find(parameter.axes.begin(), parameter.axes.end(), *name) -
                                          parameter.axes.begin());
      placement.strides[at] = stride;
      stride *= parameter.shape[at];
    }
    if (axis->stack) {
      placement.first = static_cast<int64_t>(part) * stride;
      stride *= static_cast<int64_t>(entry.parameters.size());
    }
  }
  return placement;
}

rt::Tensor weft::taken(const rt::Tensor &file, const Placement &placement) {
  rt::Tensor parameter(rt::ElementType::F32, placement.shape);
  std::span<const float> from = file.as<float>();
  std::span<float> to = parameter.as<float>();
  forEachElement(placement, [&](size_t there, size_t here) { to[here] = from[there]; });
  return parameter;
}

void weft::put(const rt::Tensor &parameter, const Placement &placement, rt::Tensor &file) {
  std::span<const float> from = parameter.as<float>();
  std::span<float> to = file.as<float>();
  forEachElement(placement, [&](size_t there, size_t here) { to[there] = from[here]; });
}

//===----------------------------------------------------------------------===//
// Files against table and model
//===----------------------------------------------------------------------===//

absl::StatusOr<WeightFiles> WeightFiles::open(const std::string &path, const lang::WeightTable &table,
                                              const std::vector<lang::ParameterInfo> &parameters) {
  absl::StatusOr<rt::SafetensorsSet> set = rt::SafetensorsSet::open(path);
  if (!set.ok())
    return set.status();
  WeightFiles files;
  files.where = path;
  files.table = &table;
  files.set = *std::move(set);
  for (const lang::ParameterInfo &info : parameters)
    files.infos[info.path] = info;
  for (const lang::WeightEntry &entry : table.entries)
    for (size_t part = 0; part < entry.parameters.size(); ++part)
      if (!entry.tied)
        files.sources[entry.parameters[part]] = {&entry, part};
  files.before = files.choosePrefix();
  if (absl::Status status = files.compare(); !status.ok())
    return status;
  return files;
}

/// The one under which most tensors are found; of several the first.
std::string WeightFiles::choosePrefix() const {
  auto found = [&](const std::string &prefix) {
    return std::ranges::count_if(table->entries, [&](const lang::WeightEntry &entry) {
      return !entry.tied && set->info(prefix + entry.key) != nullptr;
    });
  };
  return *std::ranges::max_element(table->prefixes, {}, found);
}

/// What the files call `entry`. A second copy may stand outside the prefix.
std::string WeightFiles::nameOf(const lang::WeightEntry &entry) const {
  return entry.tied && set->info(entry.key) ? entry.key : before + entry.key;
}

absl::Status WeightFiles::compare() {
  std::vector<std::string> missing, unknown, shapes, types;
  std::set<std::string> known;
  for (const lang::WeightEntry &entry : table->entries) {
    const std::string name = nameOf(entry);
    known.insert(name);
    const rt::TensorInfo *info = set->info(name);
    if (!info) {
      if (!entry.tied)
        missing.push_back(name);
      continue;
    }
    ++used;
    if (info->shape != entry.shape())
      shapes.push_back(absl::StrCat(name, ": expected ", rt::describeShape(entry.shape()), ", found ",
                                    rt::describeShape(info->shape)));
    if (!isFloat(info->dtype))
      types.push_back(absl::StrCat(name, ": ", info->dtype));
  }
  for (const std::string &name : set->names()) {
    bool ignored = known.contains(name);
    for (const std::string &pattern : table->ignored)
      ignored = ignored || matches(pattern, name) || matches(before + pattern, name);
    if (!ignored)
      unknown.push_back(name);
  }
  auto fault = [&](std::string_view what, const std::vector<std::string> &names, std::string_view advice) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", where, "' does not fit weight table `", table->name, "` for model ", table->model,
                     ": ", std::string(what), " ", someOf(names), std::string(advice)));
  };
  if (!missing.empty()) {
    const std::string near = lang::nearest(missing.front(), unknown);
    return fault(absl::StrCat("it lacks ", missing.size(), " of ", known.size(), " tensors:"), missing,
                 near.empty() ? "" : absl::StrCat("; it has ", near, ", which the table does not know"));
  }
  if (!unknown.empty())
    return fault("the table does not know", unknown, "; the table can `ignore` what the model does not need");
  if (!shapes.empty())
    return fault("other shapes:", shapes, "");
  if (!types.empty())
    return fault("expected F32, BF16, F16 or F64, found", types, "");
  return absl::OkStatus();
}

absl::StatusOr<const rt::Tensor *> WeightFiles::tensor(const std::string &name) {
  if (held == name)
    return &last;
  absl::StatusOr<rt::Tensor> read = set->readAs(name, rt::ElementType::F32);
  if (!read.ok())
    return read.status();
  for (const float value : read->as<float>())
    if (!std::isfinite(value))
      return absl::FailedPreconditionError(
          absl::StrCat("'", where, "' tensor '", name, "' holds a number that is not finite"));
  last = *std::move(read);
  held = name;
  return &last;
}

absl::Status WeightFiles::checkCopies() {
  for (const lang::WeightEntry &entry : table->entries) {
    const std::string name = nameOf(entry);
    if (!entry.tied || !set->info(name))
      continue;
    for (size_t part = 0; part < entry.parameters.size(); ++part) {
      const std::string &path = entry.parameters[part];
      absl::StatusOr<const rt::Tensor *> copy = tensor(name);
      if (!copy.ok())
        return copy.status();
      const rt::Tensor second = taken(**copy, placementOf(entry, part, infos.at(path)));
      absl::StatusOr<rt::Tensor> first = parameter(path);
      if (!first.ok())
        return first.status();
      float largest = 0;
      for (size_t i = 0; i < first->as<float>().size(); ++i)
        largest = std::max(largest, std::abs(first->as<float>()[i] - second.as<float>()[i]));
      if (largest > 0)
        return absl::FailedPreconditionError(
            absl::StrCat("'", where, "': ", name, " should be a copy of ", nameOf(*sources.at(path).first),
                         " (the model has one parameter, ", path, "), and differs by up to ", largest));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<rt::Tensor> WeightFiles::parameter(const std::string &path) {
  const auto &[entry, part] = sources.at(path);
  absl::StatusOr<const rt::Tensor *> file = tensor(nameOf(*entry));
  if (!file.ok())
    return file.status();
  return taken(**file, placementOf(*entry, part, infos.at(path)));
}

std::string WeightFiles::types() const {
  std::set<std::string> types;
  for (const lang::WeightEntry &entry : table->entries)
    if (const rt::TensorInfo *info = set->info(nameOf(entry)))
      types.insert(info->dtype);
  return absl::StrJoin(types, " and ");
}
