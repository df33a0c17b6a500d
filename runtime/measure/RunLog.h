//===- RunLog.h - A run's log for other programs ----------------*- C++ -*-===//
//
// log.jsonl (runtime/train/Log.h) as a table of comma-separated values, and as
// the event file that TensorBoard reads:
//
//   record = u64 length, u32 masked crc of it, bytes, u32 masked crc of them
//   (little-endian; crc is CRC-32C, masked = rotated right by 15, + 0xa282ead8)
//   bytes  = protocol buffer Event { 1: double wall_time; 2: int64 step;
//            3: string file_version; 5: Summary { 1: Value { 1: string tag;
//            2: float simple_value } ... } }
//
// Source: TensorFlow's record and event formats (tensorflow.org, TFRecord;
// event.proto, summary.proto).
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft::rt {

/// A line of the log: numbers under their keys, those inside objects and lists as
/// `regions/0/loss`. Texts are left out, and numbers that are not finite (null).
struct LogRow {
  std::string kind; // train, eval, windows, ...
  int64_t step = 0;
  double seconds = -1; // of training since the run's start; -1: the line does not say
  std::vector<std::pair<std::string, double>> numbers;
};

/// The whole lines of RUN/log.jsonl; one that a kill tore at the end is left out.
/// Errors: NotFound; DataLoss names the line.
absl::StatusOr<std::vector<LogRow>> readRunLog(const std::string &run);

/// A header, then a row a line of the log: kind, step, and every key in the order of
/// its first use. Numbers have the digits that give them back.
std::string csvOf(const std::vector<LogRow> &rows);

/// The event file: `KIND/KEY` is a tag. `start`: seconds since 1970 at the run's start;
/// rows without seconds stand at the time of the row before them.
std::string tensorBoardOf(const std::vector<LogRow> &rows, double start);

/// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78; RFC 3720, appendix B.4).
uint32_t crc32c(std::string_view bytes);

} // namespace weft::rt
