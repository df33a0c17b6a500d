//===- PreSplit.cpp - GPT-2's cut of text into pieces ---------------------===//
#include "runtime/data/PreSplit.h"

#include <string>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace weft::rt {

// White_Space is spelled out: PCRE2's \s also takes U+180E.
#define SPACES R"(\x09-\x0d\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})"
static constexpr char kPattern[] = R"('(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^)" SPACES
                                   R"(\p{L}\p{N}]+|[)" SPACES "]+(?![^" SPACES "])|[" SPACES "]+";
#undef SPACES

absl::StatusOr<PreSplit> PreSplit::make() {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code *code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(kPattern), PCRE2_ZERO_TERMINATED, PCRE2_UTF,
                                   &error, &offset, nullptr);
  if (!code) {
    unsigned char message[256] = {};
    pcre2_get_error_message(error, message, sizeof(message));
    return absl::InternalError(
        absl::StrCat("can't compile the split pattern: ", reinterpret_cast<char *>(message)));
  }
  // Where the machine allows no JIT, the interpreter is used.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  PreSplit split;
  split.pattern = std::shared_ptr<const void>(code, [](pcre2_code *code) { pcre2_code_free(code); });
  return split;
}

size_t utf8Length(std::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  auto follows = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  unsigned head = byte(0), next = byte(1);
  if (text.empty())
    return 0;
  if (head < 0x80)
    return 1;
  if (head >= 0xC2 && head <= 0xDF)
    return follows(1) ? 2 : 0;
  if (head >= 0xE0 && head <= 0xEF) {
    // Neither overlong nor a surrogate.
    bool fits = head == 0xE0 ? next >= 0xA0 : head == 0xED ? next <= 0x9F : true;
    return fits && follows(1) && follows(2) ? 3 : 0;
  }
  if (head >= 0xF0 && head <= 0xF4) {
    // Neither overlong nor above U+10FFFF.
    bool fits = head == 0xF0 ? next >= 0x90 : head == 0xF4 ? next <= 0x8F : true;
    return fits && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

/// `text` with each byte that is not part of a character as U+0001, so that
/// offsets stay.
static std::string withoutInvalid(std::string_view text) {
  std::string result(text);
  for (size_t at = 0; at < text.size();) {
    size_t length = utf8Length(text.substr(at, 4));
    if (length == 0)
      result[at] = '\x01';
    at += length == 0 ? 1 : length;
  }
  return result;
}

void PreSplit::run(std::string_view text, const std::function<void(std::string_view)> &piece) const {
  const auto *code = static_cast<const pcre2_code *>(pattern.get());
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
      pcre2_match_data_create_from_pattern(code, nullptr), pcre2_match_data_free);
  std::string valid = withoutInvalid(text);
  auto subject = reinterpret_cast<PCRE2_SPTR>(valid.data());
  for (size_t at = 0; at < text.size();) {
    // Validity is checked once, above: a check in every match would be quadratic.
    uint32_t options = PCRE2_ANCHORED | PCRE2_NO_UTF_CHECK;
    int found = pcre2_match(code, subject, valid.size(), at, options, match.get(), nullptr);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
      found = pcre2_match(code, subject, valid.size(), at, options | PCRE2_NO_JIT, match.get(), nullptr);
    // The pattern takes any character; should a limit of the library stop it,
    // the character stands alone.
    size_t end = found > 0 ? pcre2_get_ovector_pointer(match.get())[1] : at + utf8Length(valid.substr(at, 4));
    piece(text.substr(at, end - at));
    at = end;
  }
}

} // namespace weft::rt
