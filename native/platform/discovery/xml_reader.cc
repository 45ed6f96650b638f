#include "platform/discovery/xml_reader.h"

#include <algorithm>
#include <utility>

namespace numalign {
namespace {

constexpr size_t kMaxDepth = 128;  // real machines, even with PCI bridges, stay below 30
constexpr std::string_view kSpaces = " \t\r\n";

bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

}  // namespace

std::optional<XmlReader::Event> XmlReader::next() {
  if (pending_close_) {
    pending_close_ = false;
    return pop();
  }
  while (true) {
    size_t text_start = at_;
    at_ = std::min(text_.find('<', at_), text_.size());
    content_ = text_.substr(text_start, at_ - text_start);
    if (content_.find_first_not_of(kSpaces) != content_.npos) {
      return open_.empty() ? fail("text outside of the document's element") : std::optional(Event::kText);
    }
    if (at_ == text_.size()) return end();
    if (starts("</")) return close();
    if (!starts("<?") && !starts("<!")) return open();
    if (!skip_markup()) return std::nullopt;
  }
}

std::optional<std::string_view> XmlReader::attribute(std::string_view name) const {
  auto found = std::ranges::find(attributes_, name, &Attribute::name);
  return found == attributes_.end() ? std::nullopt : std::optional(found->value);
}

std::nullopt_t XmlReader::fail(std::string what) {
  auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
  error_ = {ErrorCode::kHwloc, "hwloc XML, line " + std::to_string(line) + ": " + std::move(what) +
                                   "; expected a document as \"lstopo --of xml\" writes it"};
  return std::nullopt;
}

std::optional<XmlReader::Event> XmlReader::end() {
  if (!open_.empty()) return fail("the document ends inside <" + std::string(open_.back()) + ">");
  if (!seen_element_) return fail("the document has no element");
  return Event::kEnd;
}

bool XmlReader::skip_markup() {
  if (starts("<?")) return skip_past("?>", "a processing instruction");
  if (starts("<!--")) return skip_past("-->", "a comment");
  std::string_view rest = text_.substr(at_);
  bool is_plain_doctype = starts("<!DOCTYPE ") && rest.substr(0, rest.find('>')).find('[') == rest.npos;
  if (is_plain_doctype && !seen_element_) return skip_past(">", "the document type");
  fail("a declaration that hwloc never writes (an entity, CDATA)");
  return false;
}

bool XmlReader::skip_past(std::string_view terminator, const char* what) {
  size_t found = text_.find(terminator, at_);
  if (found == text_.npos) {
    fail(std::string("the document ends inside ") + what);
    return false;
  }
  at_ = found + terminator.size();
  return true;
}

std::string_view XmlReader::take_name() {
  size_t start = at_;
  while (at_ < text_.size() && is_of_name(text_[at_])) at_++;
  return text_.substr(start, at_ - start);
}

void XmlReader::skip_spaces() { at_ = std::min(text_.find_first_not_of(kSpaces, at_), text_.size()); }

std::optional<XmlReader::Event> XmlReader::open() {
  if (open_.empty() && seen_element_) return fail("a second element after the document's own");
  at_++;
  name_ = take_name();
  if (name_.empty()) return fail("'<' without the name of an element");
  attributes_.clear();
  for (skip_spaces(); at_ < text_.size() && !starts(">") && !starts("/>"); skip_spaces()) {
    if (!take_attribute()) return std::nullopt;
  }
  if (at_ == text_.size()) return fail("the document ends inside the tag <" + std::string(name_) + ">");
  if (open_.size() == kMaxDepth) return fail("elements are nested too deep");
  seen_element_ = true;
  open_.push_back(name_);
  pending_close_ = starts("/>");
  at_ += pending_close_ ? 2 : 1;
  return Event::kOpen;
}

bool XmlReader::take_attribute() {
  std::string_view name = take_name();
  size_t end = text_.find('"', std::min(at_ + 2, text_.size()));
  if (name.empty() || !starts("=\"") || end == text_.npos) {
    fail("the tag <" + std::string(name_) + "> is not closed, or has something else than name=\"value\"");
    return false;
  }
  std::string_view value = text_.substr(at_ + 2, end - at_ - 2);
  if (value.find('<') != value.npos) {
    fail("the value of " + std::string(name) + " is not closed");
    return false;
  }
  attributes_.push_back({name, value});
  at_ = end + 1;
  return true;
}

std::optional<XmlReader::Event> XmlReader::close() {
  at_ += 2;
  std::string_view name = take_name();
  skip_spaces();
  if (!starts(">")) return fail("a closing tag is not closed");
  if (open_.empty() || open_.back() != name) return fail("</" + std::string(name) + "> closes nothing");
  at_++;
  return pop();
}

XmlReader::Event XmlReader::pop() {
  name_ = open_.back();
  open_.pop_back();
  return Event::kClose;
}

}  // namespace numalign
