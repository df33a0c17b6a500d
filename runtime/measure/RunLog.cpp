//===- RunLog.cpp - A run's log for other programs ------------------------===//
#include "runtime/measure/RunLog.h"

#include "runtime/core/File.h"
#include "runtime/core/Json.h"

#include <array>
#include <charconv>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

void collect(const OrderedJson &value, const std::string &key, LogRow &row) {
  if (value.is_number())
    row.numbers.emplace_back(key, value.get<double>());
  else if (value.is_boolean())
    row.numbers.emplace_back(key, value.get<bool>() ? 1.0 : 0.0);
  else if (value.is_structured())
    for (const auto &item : value.items())
      collect(item.value(), absl::StrCat(key, "/", item.key()), row);
}

absl::StatusOr<LogRow> rowOf(std::string_view line, const std::string &what) {
  absl::StatusOr<Json> checked = parseJson(line, what); // twice the same key, depth, ...
  if (!checked.ok())
    return checked.status();
  if (!checked->is_object())
    return absl::DataLossError(absl::StrCat(what, ": expected an object"));
  LogRow row;
  const OrderedJson json = OrderedJson::parse(line, nullptr, false);
  for (const auto &item : json.items()) {
    if (item.key() == "kind" && item.value().is_string())
      row.kind = item.value().get<std::string>();
    else if (item.key() == "step" && item.value().is_number_integer())
      row.step = item.value().get<int64_t>();
    else
      collect(item.value(), item.key(), row);
  }
  if (row.kind.empty())
    return absl::DataLossError(absl::StrCat(what, ": expected a `kind`"));
  for (const auto &[key, number] : row.numbers)
    if (key == "seconds" && row.kind == "train")
      row.seconds = number;
  return row;
}

std::string shortest(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

//===----------------------------------------------------------------------===//
// Protocol buffers and records
//===----------------------------------------------------------------------===//

template <typename T> void appendBytes(std::string &out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T)); // little-endian, as every host of Weft
  out.append(bytes, sizeof(T));
}

void appendVarint(std::string &out, uint64_t value) {
  for (; value >= 128; value >>= 7)
    out.push_back(static_cast<char>(value | 128));
  out.push_back(static_cast<char>(value));
}

enum Wire : uint32_t { kVarint = 0, kDouble = 1, kBytes = 2, kFloat = 5 };

void appendTag(std::string &out, uint32_t field, Wire wire) { appendVarint(out, field << 3 | wire); }

void appendField(std::string &out, uint32_t field, std::string_view bytes) {
  appendTag(out, field, kBytes);
  appendVarint(out, bytes.size());
  out.append(bytes);
}

std::string eventHead(double time, int64_t step) {
  std::string event;
  appendTag(event, 1, kDouble);
  appendBytes(event, time);
  appendTag(event, 2, kVarint);
  appendVarint(event, static_cast<uint64_t>(step));
  return event;
}

uint32_t masked(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

void appendRecord(std::string &out, const std::string &event) {
  std::string length;
  appendBytes(length, uint64_t{event.size()});
  out += length;
  appendBytes(out, masked(length));
  out += event;
  appendBytes(out, masked(event));
}

} // namespace

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit)
        value = value & 1 ? value >> 1 ^ 0x82f63b78u : value >> 1;
      made[i] = value;
    }
    return made;
  }();
  uint32_t crc = ~0u;
  for (const char byte : bytes)
    crc = table[(crc ^ static_cast<unsigned char>(byte)) & 255] ^ crc >> 8;
  return ~crc;
}

absl::StatusOr<std::vector<LogRow>> readRunLog(const std::string &run) {
  const std::string path = absl::StrCat(run, "/log.jsonl");
  absl::StatusOr<std::string> text = readFile(path);
  if (!text.ok())
    return absl::Status(text.status().code(),
                        absl::StrCat(text.status().message(), ": expected the folder of a run"));
  std::vector<LogRow> rows;
  int64_t number = 0;
  for (size_t begin = 0, end; (end = text->find('\n', begin)) != std::string::npos; begin = end + 1) {
    absl::StatusOr<LogRow> row = rowOf(std::string_view(*text).substr(begin, end - begin),
                                       absl::StrCat("'", path, "' line ", ++number));
    if (!row.ok())
      return row.status();
    rows.push_back(*std::move(row));
  }
  return rows;
}

std::string csvOf(const std::vector<LogRow> &rows) {
  std::vector<std::string> columns;
  std::map<std::string, size_t> places;
  for (const LogRow &row : rows)
    for (const auto &[key, number] : row.numbers)
      if (places.try_emplace(key, columns.size()).second)
        columns.push_back(key);
  auto quoted = [](const std::string &text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos)
      return text;
    std::string result = "\"";
    for (const char c : text)
      result += c == '"' ? std::string("\"\"") : std::string(1, c);
    return result + "\"";
  };
  std::string text = "kind,step";
  for (const std::string &column : columns)
    absl::StrAppend(&text, ",", quoted(column));
  text += "\n";
  for (const LogRow &row : rows) {
    std::vector<std::string> cells(columns.size());
    for (const auto &[key, number] : row.numbers)
      cells[places.at(key)] = shortest(number);
    absl::StrAppend(&text, quoted(row.kind), ",", row.step);
    for (const std::string &cell : cells)
      absl::StrAppend(&text, ",", cell);
    text += "\n";
  }
  return text;
}

std::string tensorBoardOf(const std::vector<LogRow> &rows, double start) {
  std::string file, first = eventHead(start, 0);
  appendField(first, 3, "brain.Event:2");
  appendRecord(file, first);
  double time = start;
  for (const LogRow &row : rows) {
    if (row.seconds >= 0)
      time = start + row.seconds;
    std::string summary;
    for (const auto &[key, number] : row.numbers) {
      std::string value;
      appendField(value, 1, absl::StrCat(row.kind, "/", key));
      appendTag(value, 2, kFloat);
      appendBytes(value, static_cast<float>(number));
      appendField(summary, 1, value);
    }
    std::string event = eventHead(time, row.step);
    appendField(event, 5, summary);
    appendRecord(file, event);
  }
  return file;
}

} // namespace weft::rt
