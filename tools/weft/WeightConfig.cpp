//===- WeightConfig.cpp - Sizes and promises of another program's JSON -----===//

#include "tools/weft/WeightFiles.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <cmath>

using namespace weft;

namespace {

/// The value at a path of keys, or null where there is none (or it is null).
const rt::Json *valueAt(const rt::Json &config, const std::vector<std::string> &keys) {
  const rt::Json *value = &config;
  for (const std::string &key : keys) {
    if (!value->is_object() || !value->contains(key))
      return nullptr;
    value = &(*value)[key];
  }
  return value->is_null() ? nullptr : value;
}

std::string nameOf(const std::vector<std::string> &keys) { return absl::StrJoin(keys, "."); }

/// `128`, `1e-06`: as `--set` reads it.
std::string settingText(const rt::Json &number) {
  const auto value = number.get<double>();
  return value == std::floor(value) && std::abs(value) < 1e15 ? absl::StrCat(static_cast<int64_t>(value))
                                                              : rt::dumpJson(number);
}

/// Puts `value` at a path of keys.
void place(rt::OrderedJson &config, const std::vector<std::string> &keys, const rt::OrderedJson &value) {
  rt::OrderedJson *at = &config;
  for (const std::string &key : keys)
    at = &(*at)[key];
  *at = value;
}

} // namespace

absl::StatusOr<std::vector<std::string>> weft::settingsFrom(const lang::WeightTable &table,
                                                            const rt::Json &config, const std::string &what) {
  std::vector<std::string> settings;
  for (const lang::SizeSource &source : table.sizes) {
    const rt::Json *found = nullptr;
    std::string name;
    std::vector<std::string> asked;
    for (const std::vector<std::string> &keys : source.keys) {
      asked.push_back(nameOf(keys));
      const rt::Json *value = valueAt(config, keys);
      if (!value)
        continue;
      if (!value->is_number())
        return absl::FailedPreconditionError(absl::StrCat(what, ": ", nameOf(keys),
                                                          ": expected a number for `", source.setting,
                                                          "`, found ", value->dump()));
      if (found && *found != *value)
        return absl::FailedPreconditionError(absl::StrCat(what, ": ", name, " is ", found->dump(), " and ",
                                                          nameOf(keys), " is ", value->dump(),
                                                          ": both mean `", source.setting, "`"));
      if (!found)
        name = nameOf(keys);
      found = found ? found : value;
    }
    if (found)
      settings.push_back(absl::StrCat(source.setting, "=", settingText(*found)));
    else if (!source.optional)
      return absl::FailedPreconditionError(absl::StrCat(what, ": expected ", absl::StrJoin(asked, " or "),
                                                        " for `", source.setting, "`, found no such key"));
  }
  return settings;
}

absl::Status weft::checkExpected(const lang::WeightTable &table, const rt::Json &config,
                                 const std::string &what) {
  for (const lang::Expectation &expectation : table.expected) {
    const rt::Json *found = valueAt(config, expectation.key);
    bool fits = false;
    std::vector<std::string> allowed;
    for (const std::string &text : expectation.allowed) {
      fits = fits || (text.empty() ? !found : found && *found == rt::Json::parse(text, nullptr, false));
      allowed.push_back(text.empty() ? "no such key" : text);
    }
    if (!fits)
      return absl::FailedPreconditionError(absl::StrCat(
          what, ": ", nameOf(expectation.key), ": expected ", absl::StrJoin(allowed, " or "), ", found ",
          found ? found->dump() : "no such key", ": model ", table.model, " would compute something else"));
  }
  return absl::OkStatus();
}

rt::OrderedJson weft::configOf(const lang::WeightTable &table,
                               const std::map<std::string, double> &settings) {
  rt::OrderedJson config = rt::OrderedJson::object();
  for (const lang::Expectation &expectation : table.expected)
    if (const std::string &text = expectation.allowed.front(); !text.empty())
      place(config, expectation.key, rt::OrderedJson::parse(text, nullptr, false));
  for (const lang::SizeSource &source : table.sizes) {
    auto found = settings.find(source.setting);
    if (found == settings.end())
      continue;
    const double value = found->second;
    for (const std::vector<std::string> &keys : source.keys)
      place(config, keys,
            value == std::floor(value) && std::abs(value) < 1e15
                ? rt::OrderedJson(static_cast<int64_t>(value))
                : rt::OrderedJson(value));
  }
  return config;
}
