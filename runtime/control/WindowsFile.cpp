//===- WindowsFile.cpp - windows.json -------------------------------------===//
#include "runtime/control/WindowsFile.h"

#include "runtime/control/WindowPlan.h"

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

absl::StatusOr<int64_t> windowOf(const Json &entry, const std::string &what) {
  if (entry.is_string() && entry.get<std::string>() == "full")
    return kNoBound;
  if (entry.is_number_unsigned() && entry.get<uint64_t>() < static_cast<uint64_t>(kNoBound))
    return entry.get<int64_t>();
  return absl::DataLossError(
      absl::StrCat(what, ": expected a number of positions or \"full\", found ", dumpJson(entry)));
}

} // namespace

absl::StatusOr<WindowsFile> parseWindows(std::string_view text, const std::string &what) {
  absl::StatusOr<Json> json = parseJson(text, what);
  if (!json.ok())
    return json.status();
  WindowsFile file;
  absl::StatusOr<int64_t> length = int64Of(*json, "length", what);
  absl::StatusOr<const Json *> lists = memberOf(*json, "windows", what);
  if (!length.ok() || !lists.ok())
    return length.ok() ? lists.status() : length.status();
  file.length = *length;
  if (!(*lists)->is_array())
    return absl::DataLossError(absl::StrCat(what, ": expected a list of lists as \"windows\""));
  for (const Json &list : **lists) {
    std::vector<int64_t> windows;
    const std::string where = absl::StrCat(what, " list ", file.windows.size());
    if (!list.is_array())
      return absl::DataLossError(absl::StrCat(where, ": expected a list, found ", dumpJson(list)));
    for (const Json &entry : list) {
      absl::StatusOr<int64_t> window = windowOf(entry, absl::StrCat(where, " entry ", windows.size()));
      if (!window.ok())
        return window.status();
      windows.push_back(*window);
    }
    file.windows.push_back(std::move(windows));
  }
  return file;
}

OrderedJson windowJson(int64_t window) {
  return window >= kNoBound ? OrderedJson("full") : OrderedJson(window);
}

std::string printWindows(const WindowsFile &file) {
  OrderedJson json = {{"length", file.length}};
  json["windows"] = OrderedJson::array();
  for (const std::vector<int64_t> &windows : file.windows) {
    OrderedJson list = OrderedJson::array();
    for (int64_t window : windows)
      list.push_back(windowJson(window));
    json["windows"].push_back(std::move(list));
  }
  return dumpJson(json) + "\n";
}

} // namespace weft::rt
