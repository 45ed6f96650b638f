// Reads JSON in place, as numalign writes it: without blanks. Whatever JSON.parse() refuses is refused,
// and so is what it reads in another way than byte by byte where that matters (see text()). A scanner
// borrows the text; one object is not safe for concurrent use.
#pragma once

#include <string_view>

namespace numalign {

class JsonScan {
 public:
  explicit JsonScan(std::string_view text) : next_(text.data()), end_(text.data() + text.size()) {}

  bool at_end() const { return next_ == end_; }
  // Where the next value begins.
  const char* next() const { return next_; }
  // Takes the next value, of any kind.
  bool value(std::string_view* taken);
  // Takes an ASCII string without escapes, so that its bytes are what it says; without its quotes.
  bool text(std::string_view* taken);
  // Takes an object. `each(name)` takes the value of a member and returns true if it is as expected.
  // Names must be as in text().
  template <class Each>
  bool object(Each each) {
    if (!skip('{')) return false;
    if (skip('}')) return true;
    do {
      std::string_view name;
      if (!text(&name) || !skip(':') || !each(name)) return false;
    } while (skip(','));
    return skip('}');
  }
  // Takes a list. `each()` takes an item.
  template <class Each>
  bool list(Each each) {
    if (!skip('[')) return false;
    if (skip(']')) return true;
    do {
      if (!each()) return false;
    } while (skip(','));
    return skip(']');
  }

 private:
  bool skip(char c) {
    if (next_ == end_ || *next_ != c) return false;
    next_++;
    return true;
  }
  bool skip_word(std::string_view word);
  bool skip_string();
  bool skip_digits();
  bool skip_number();
  bool skip_value(int depth);

  const char* next_;
  const char* end_;
};

}  // namespace numalign
