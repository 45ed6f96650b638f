#include "core/json_scan.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace numalign {
namespace {

// Deeper values than numalign keeps of a file.
constexpr int kMaxDepth = 100;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
// Needs no look at what comes next in a string.
bool is_plain(char c) { return static_cast<unsigned char>(c) >= ' ' && c != '"' && c != '\\'; }
bool is_ascii(char c) { return static_cast<signed char>(c) >= 0; }

constexpr uint64_t kEach = 0x0101010101010101;
constexpr uint64_t kTops = 0x80 * kEach;

// Whether one of 8 bytes is less than `least`, which is at most 128.
bool has_less(uint64_t bytes, uint64_t least) { return ((bytes - least * kEach) & ~bytes & kTops) != 0; }
bool has(uint64_t bytes, char c) { return has_less(bytes ^ static_cast<uint64_t>(c) * kEach, 1); }

// Past the plain bytes; with `ascii_only` up to others too.
const char* past_plain(const char* next, const char* end, bool ascii_only) {
  for (uint64_t bytes; end - next >= 8; next += 8) {
    std::memcpy(&bytes, next, 8);
    if (has_less(bytes, ' ') || has(bytes, '"') || has(bytes, '\\') || (ascii_only && (bytes & kTops) != 0))
      break;
  }
  return std::find_if_not(next, end, [&](char c) { return is_plain(c) && (is_ascii(c) || !ascii_only); });
}

}  // namespace

bool JsonScan::value(std::string_view* taken) {
  const char* begin = next_;
  if (!skip_value(0)) return false;
  *taken = {begin, static_cast<size_t>(next_ - begin)};
  return true;
}

bool JsonScan::text(std::string_view* taken) {
  if (!skip('"')) return false;
  const char* begin = next_;
  next_ = past_plain(next_, end_, true);
  *taken = {begin, static_cast<size_t>(next_ - begin)};
  return skip('"');
}

bool JsonScan::skip_word(std::string_view word) {
  if (!std::string_view(next_, static_cast<size_t>(end_ - next_)).starts_with(word)) return false;
  next_ += word.size();
  return true;
}

bool JsonScan::skip_string() {
  if (!skip('"')) return false;
  for (;;) {
    next_ = past_plain(next_, end_, false);
    if (skip('"')) return true;
    if (!skip('\\') || next_ == end_) return false;
    const char kind = *next_++;
    if (kind == 'u') {
      if (end_ - next_ < 4 || !std::all_of(next_, next_ + 4, is_hex)) return false;
      next_ += 4;
    } else if (std::string_view("\"\\/bfnrt").find(kind) == std::string_view::npos) {
      return false;
    }
  }
}

bool JsonScan::skip_digits() {
  const char* begin = next_;
  next_ = std::find_if_not(next_, end_, is_digit);
  return next_ != begin;
}

bool JsonScan::skip_number() {
  skip('-');
  if (!skip('0') && !skip_digits()) return false;
  if (skip('.') && !skip_digits()) return false;
  if (!skip('e') && !skip('E')) return true;
  if (!skip('+')) skip('-');
  return skip_digits();
}

bool JsonScan::skip_value(int depth) {
  if (next_ == end_ || depth > kMaxDepth) return false;
  switch (*next_) {
    case '"':
      return skip_string();
    case '{':
      next_++;
      if (skip('}')) return true;
      do {
        if (!skip_string() || !skip(':') || !skip_value(depth + 1)) return false;
      } while (skip(','));
      return skip('}');
    case '[':
      return list([&] { return skip_value(depth + 1); });
    case 't':
      return skip_word("true");
    case 'f':
      return skip_word("false");
    case 'n':
      return skip_word("null");
    default:
      return skip_number();
  }
}

}  // namespace numalign
