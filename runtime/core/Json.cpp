//===- Json.cpp - JSON without exceptions -----------------------*- C++ -*-===//
#include "runtime/core/Json.h"

#include <limits>
#include <set>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

constexpr int kMaxDepth = 200;

absl::Status wrongType(const std::string &what, const std::string &key, const char *expected,
                       const Json &found) {
  std::string text = dumpJson(found);
  if (text.size() > 60)
    text = text.substr(0, 57) + "...";
  return absl::DataLossError(absl::StrCat(what, ": '", key, "': expected ", expected, ", found ", text));
}

} // namespace

absl::StatusOr<Json> parseJson(std::string_view text, const std::string &what) {
  std::vector<std::set<std::string>> keys; // of the objects around the current value
  std::string twice;
  bool tooDeep = false;
  auto watch = [&](int depth, Json::parse_event_t event, Json &value) {
    tooDeep |= depth > kMaxDepth;
    if (event == Json::parse_event_t::object_start)
      keys.emplace_back();
    else if (event == Json::parse_event_t::object_end && !keys.empty())
      keys.pop_back();
    else if (event == Json::parse_event_t::key && !keys.empty() &&
             !keys.back().insert(value.get_ref<const std::string &>()).second && twice.empty())
      twice = value.get_ref<const std::string &>();
    return depth <= kMaxDepth; // what lies deeper is not kept
  };
  Json value;
  try {
    value = Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::parse_error &error) {
    return absl::DataLossError(absl::StrCat(what, ": not JSON at byte ", error.byte, " of ", text.size()));
  } catch (const std::exception &error) {
    return absl::DataLossError(absl::StrCat(what, ": not readable as JSON: ", error.what()));
  }
  if (tooDeep)
    return absl::DataLossError(absl::StrCat(what, ": JSON nested deeper than ", kMaxDepth));
  if (!twice.empty())
    return absl::DataLossError(absl::StrCat(what, ": the key '", twice, "' stands twice in one object"));
  return value;
}

std::string dumpJson(const Json &value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string dumpJson(const OrderedJson &value) {
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

absl::StatusOr<const Json *> memberOf(const Json &object, const std::string &key, const std::string &what) {
  if (!object.is_object())
    return absl::DataLossError(absl::StrCat(what, ": expected an object with '", key, "'"));
  auto found = object.find(key);
  if (found == object.end())
    return absl::DataLossError(absl::StrCat(what, ": '", key, "' is missing"));
  return &*found;
}

absl::StatusOr<int64_t> int64Of(const Json &object, const std::string &key, const std::string &what) {
  absl::StatusOr<const Json *> member = memberOf(object, key, what);
  if (!member.ok())
    return member.status();
  const Json &value = **member;
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > kMax))
    return wrongType(what, key, "a whole number", value);
  return value.get<int64_t>();
}

absl::StatusOr<uint64_t> uint64Of(const Json &object, const std::string &key, const std::string &what) {
  absl::StatusOr<const Json *> member = memberOf(object, key, what);
  if (!member.ok())
    return member.status();
  if (!(*member)->is_number_unsigned())
    return wrongType(what, key, "a whole number from 0", **member);
  return (*member)->get<uint64_t>();
}

absl::StatusOr<double> numberOf(const Json &object, const std::string &key, const std::string &what) {
  absl::StatusOr<const Json *> member = memberOf(object, key, what);
  if (!member.ok())
    return member.status();
  if ((*member)->is_null())
    return std::numeric_limits<double>::quiet_NaN();
  if (!(*member)->is_number())
    return wrongType(what, key, "a number", **member);
  return (*member)->get<double>();
}

absl::StatusOr<std::string> stringOf(const Json &object, const std::string &key, const std::string &what) {
  absl::StatusOr<const Json *> member = memberOf(object, key, what);
  if (!member.ok())
    return member.status();
  if (!(*member)->is_string())
    return wrongType(what, key, "a string", **member);
  return (*member)->get<std::string>();
}

} // namespace weft::rt
