//===- Json.h - JSON without exceptions -------------------------*- C++ -*-===//
//
// nlohmann's values, parsed and read so that wrong input becomes a Status that
// names where it stands.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft::rt {

using Json = nlohmann::json;
/// Keeps the order of keys: for lines that people read.
using OrderedJson = nlohmann::ordered_json;

/// `what` names the text in messages ("run.json"). Errors: DataLoss with the
/// byte where it stops being JSON, or the key that stands twice in one object.
absl::StatusOr<Json> parseJson(std::string_view text, const std::string &what);

/// One line, never throws: bytes that are no UTF-8 become U+FFFD; a number that
/// is not finite becomes null, as JSON has no word for it.
std::string dumpJson(const Json &value, int indent = -1);
std::string dumpJson(const OrderedJson &value);

/// A member of an object, of the asked type. Errors: DataLoss naming `what`, the
/// key, what was expected and what was found. int64Of refuses fractions and
/// numbers past 2^63 - 1; numberOf reads null as NaN.
absl::StatusOr<const Json *> memberOf(const Json &object, const std::string &key, const std::string &what);
absl::StatusOr<int64_t> int64Of(const Json &object, const std::string &key, const std::string &what);
absl::StatusOr<uint64_t> uint64Of(const Json &object, const std::string &key, const std::string &what);
absl::StatusOr<double> numberOf(const Json &object, const std::string &key, const std::string &what);
absl::StatusOr<std::string> stringOf(const Json &object, const std::string &key, const std::string &what);

} // namespace weft::rt
