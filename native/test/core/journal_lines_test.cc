#include "core/journal_lines.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "core/crc32.h"
#include "core/json_scan.h"
#include "core/pod_rows.h"

namespace numalign {
namespace {

std::string seal(const std::string& object) {
  const std::string body = object.substr(0, object.size() - 1);
  char digits[9];
  snprintf(digits, sizeof digits, "%08x", crc32(body));
  return body + ",\"checksum\":\"crc32:" + digits + "\"}\n";
}

std::string change(int generation, const std::string& members = "") {
  return seal(R"({"line":"change","generation":)" + std::to_string(generation) + members + "}");
}

std::string pod(const std::string& uid, int version = 0) {
  return R"({"uid":")" + uid + R"(","version":)" + std::to_string(version) + "}";
}

std::string merged(const std::string& lines, std::optional<uint64_t> generation = 1) {
  const auto found = merge_lines(lines, generation);
  return found ? found->change : "not plain";
}

// Adds a pod, and returns true if it has a template.
bool add(PodRows& pods, std::string_view pod) {
  pods.add(pod);
  return !pods.text().ends_with(std::string(pod) + "]}");
}

constexpr const char* kPod =
    R"({"uid":"a","name":"a","containers":[{"name":"main","kind":"app","started":true,"request":{"cpu":1000},)"
    R"("cpus":"0","held":"","hint":{"nodes":[0],"preferred":true},"devices":{"x":[{"id":"d","nodes":null}]},)"
    R"("memory":[{"nodes":[0,1],"type":"memory","bytes":5}],)"
    R"("reusable":{"cpus":"","memory":[],"devices":{}}}],"policy":"none","scope":"pod","options":{"a":false},)"
    R"("owner":{"kind":"process","uuid":"u","pid":7,"command":"node é","cgroup":null},)"
    R"("enforcement":{"level":"recorded","target":null},"upcoming":null,"transfer":null,"formerOwner":null,)"
    R"("admittedAt":"now"})";

std::string with(std::string from, std::string to) {
  std::string text = kPod;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Crc32, IsThatOfZlib) {
  EXPECT_EQ(crc32(""), 0u);
  EXPECT_EQ(crc32("123456789"), 0xCBF43926u);
  EXPECT_EQ(crc32("The quick brown fox jumps over the lazy dog"), 0x414FA339u);
}

TEST(Crc32, GoesOnFromWhatStandsBefore) {
  const std::string text = "The quick brown fox jumps over the lazy dog";
  for (size_t i = 0; i <= text.size(); i++)
    EXPECT_EQ(crc32(text.substr(i), crc32(text.substr(0, i))), 0x414FA339u) << i;
}

TEST(JsonScan, TakesWhatJsonParseTakes) {
  for (const char* text : {"0", "-0", "1.5e-7", "1E+2", "\"\"", R"("\"\\\/\b\f\n\r\t\u00e9é")", "[]",
                           "[1,[2,{}]]", "{}", R"({"":null,"a":[true,false]})", "\"\x7f\""}) {
    JsonScan scan(text);
    std::string_view value;
    EXPECT_TRUE(scan.value(&value) && scan.at_end()) << text;
    EXPECT_EQ(value, text);
  }
  for (const char* text :
       {"",         "-",           "01",      "1.",          ".5",        "1e",   "+1", "nul", "True",
        "\"",       "\"\n\"",      R"("\x")", R"("\u12g4")", R"("\u123)", "[1,]", "[",  "[1",  "{",
        R"({"a"})", R"({"a":1,})", "{a:1}",   "NaN",         " 1",        "1 ",   "'a'"}) {
    JsonScan scan(text);
    std::string_view value;
    EXPECT_FALSE(scan.value(&value) && scan.at_end()) << text;
  }
}

TEST(JsonScan, GoesAsDeepAsNumalignKeepsValues) {
  std::string_view value;
  for (const auto& [depth, is_taken] : {std::pair{100, true}, {102, false}, {100'000, false}}) {
    const std::string text = std::string(depth, '[') + std::string(depth, ']');
    EXPECT_EQ(JsonScan(text).value(&value), is_taken) << depth;
  }
}

TEST(JournalLines, BecomeOneChangeWithTheLatestOfEachMember) {
  EXPECT_EQ(
      merged(change(2, R"(,"bootId":"b","memory":{"0":{"memory":1}})") +
             change(3, R"(,"bootId":"c","settings":{},"named":[{"name":"x","cpus":"1"}])") +
             change(4, R"(,"memory":{},"named":[{"name":"y","cpus":"2"},{"name":"x","cpus":"3"}])")),
      R"({"generation":4,"line":"change","bootId":"c","memory":{},"settings":{},"released":[],"gone":[],)"
      R"("named":[{"name":"x","cpus":"1"},{"name":"y","cpus":"2"},{"name":"x","cpus":"3"}],)"
      R"("pods":{"templates":[],"rows":[]}})");
}

TEST(JournalLines, LeaveOutPodsThatCameAndWent) {
  EXPECT_EQ(merged(change(2, R"(,"pods":[)" + pod("a") + "," + pod("b") + "]") +
                   change(3, R"(,"released":["old"],"pods":[)" + pod("b", 1) + "]") +
                   change(4, R"(,"released":["a"],"pods":[)" + pod("c") + "]") +
                   change(5, R"(,"pods":[)" + pod("a", 2) + "]")),
            R"({"generation":5,"line":"change","released":["old"],"gone":["a"],"named":[],)"
            R"("pods":{"templates":[],"rows":[)" +
                pod("b", 1) + "," + pod("c") + "," + pod("a", 2) + "]}}");
}

TEST(JournalLines, EndWithTheLastWholeLine) {
  const std::string line = change(2), next = change(3);
  const auto found = merge_lines(line + next.substr(0, next.size() - 1), 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->generation, 2u);
  EXPECT_EQ(found->length, line.size());
  EXPECT_EQ(found->seal, line.substr(line.size() - 11, 8));
  EXPECT_TRUE(found->has_tail);
  const auto nothing = merge_lines("", 7);
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->change, "");
  EXPECT_EQ(nothing->generation, 7u);
  EXPECT_FALSE(nothing->has_tail);
  // Of a last line, anything may be on disk.
  std::string torn = change(2);
  torn[5] ^= 1;
  EXPECT_TRUE(merge_lines(torn, 1)->has_tail);
}

TEST(JournalLines, AreLeftToTheirReaderIfTheyAreNotPlain) {
  std::string damaged = change(2);
  damaged[5] ^= 1;
  const std::string lines[] = {
      damaged + change(3),
      change(3),  // a gap
      change(1),  // a step back
      seal(R"({"line":"change","generation":2.0})"),
      seal(R"({"line":"change","generation":02})"),
      seal(R"({"line":"change","generation":"2"})"),
      seal(R"({"line":"change"})"),
      seal(R"({"line":"state","generation":2})"),
      seal(R"({"generation":2})"),
      seal(R"({"line":"change","generation":2,"generation":2})"),
      seal(R"({"line":"change","\u0067eneration":2})"),
      change(2, R"(,"lastCpus":[])"),
      change(2, R"(,"gone":[])"),
      change(2, R"(,"newer":1)"),
      change(2, R"(,"pods":{})"),
      change(2, R"(,"pods":[1])"),
      change(2, R"(,"pods":[{}])"),
      change(2, R"(,"pods":[{"uid":1}])"),
      change(2, R"(,"pods":[{"uid":"a","uid":"b"}])"),
      change(2, R"(,"pods":[{"uid":"\u0061"}])"),
      change(2, R"(,"pods":[{"\u0075id":"a","uid":"a"}])"),
      change(2, R"(,"pods":[{"uid":"é"}])"),
      change(2, R"(,"released":"a")"),
      change(2, R"(,"released":[1])"),
      change(2, R"(,"released":["a","a"])"),
      change(2, R"(,"released":["a"])") + change(3, R"(,"released":["a"])"),
      change(2, R"(,"pods":[{"uid":"a"}])") + change(3, R"(,"released":["a"])") +
          change(4, R"(,"released":["a"])"),
      change(2, R"(,"named":null)"),
      change(2, R"(,"memory":[1,])"),
      seal("[1]"),
      "\n" + change(2),
      change(2, " "),
  };
  for (const std::string& text : lines) EXPECT_EQ(merged(text + change(9)), "not plain") << text;
}

TEST(PodRows, HaveTemplatesOfWhatIsTheSame) {
  PodRows pods;
  EXPECT_TRUE(add(pods, kPod));
  EXPECT_FALSE(add(pods, pod("b")));
  EXPECT_TRUE(add(pods, with(R"("uid":"a","name":"a")", R"("uid":"c","name":"\u0063")")));
  EXPECT_FALSE(add(pods, with(R"("cpus":"0")", R"("cpus":"1-0")")));
  EXPECT_TRUE(add(pods, with(R"("cpus":"0","held":"")", R"("held":"35","newer":1,"cpus":"3,64")")));
  std::string container =
      R"({"name":"main","kind":"app","started":true,"request":{"cpu":1000},)"
      R"("cpus":"","held":"","hint":{"nodes":[0],"preferred":true},"devices":{"x":[{"id":"d","nodes":null}]},)"
      R"("memory":[{"nodes":[0,1],"type":"memory","bytes":5}],)"
      R"("reusable":{"cpus":"","memory":[],"devices":{}}})";
  std::string text = R"({"templates":[)" + container;
  text +=
      R"(,{"uid":"","name":"","containers":[],"policy":"none","scope":"pod","options":{"a":false},)"
      R"("owner":{"kind":"process","uuid":"u","pid":7,"command":"node é","cgroup":null},)"
      R"("enforcement":{"level":"recorded","target":null},"upcoming":null,"transfer":null,"formerOwner":null,)"
      R"("admittedAt":""},)";
  const std::string usual = R"("cpus":"","held":"")";
  text += container.replace(container.find(usual), usual.size(), R"("held":"","newer":1,"cpus":"")");
  text += R"(],"rows":["a",0,"now",1,1,0,1,0,)" + pod("b") + R"(,"c","\u0063","now",1,1,0,1,0,)" +
          with(R"("cpus":"0")", R"("cpus":"1-0")") + R"(,"a",0,"now",1,1,2,3,2]})";
  EXPECT_EQ(pods.text(), text);
  EXPECT_EQ(pods.words(), (std::vector<uint32_t>{1, 1, 8, 0, 1, 0, 8}));
}

TEST(PodRows, HaveOtherPodsAsTheyAre) {
  PodRows pods;
  const std::pair<const char*, const char*> changes[] = {
      {R"("name":"a",)", ""},
      {R"("name":"a")", R"("name":1)"},
      {R"("name":"a")", R"("name":"a","name":"a")"},
      {R"("name":"a")", R"("name":"a","n\u0061me":"b")"},
      {R"("name":"a")", R"("name":"a","booking":{})"},
      {R"("upcoming":null)", R"("upcoming":{})"},
      {R"("admittedAt":"now"})", R"("admittedAt":null})"},
      {R"("cpus":"0",)", ""},
      {R"("cpus":"0")", R"("cpus":[0])"},
      {R"("cpus":"0")", R"("cpus":"0","cpus":"0")"},
      {R"("cpus":"0")", R"("cpus":"a")"},
      {R"("cpus":"0")", R"("cpus":"65536")"},
      {R"("held":"")", R"("held":null)"},
  };
  for (const auto& [from, to] : changes) EXPECT_FALSE(add(pods, with(from, to))) << to;
  EXPECT_TRUE(add(pods, with(R"("name":"a")", R"("name":"a","booking":null,"mixed":[{}],"newer":"é")")));
  for (const char* text :
       {"{}", "[]", "1", "", R"({"uid":1})", R"({"uid":"é"})", R"({"uid":"a","uid":"b"})"}) {
    JsonScan scan(text);
    std::string_view uid;
    EXPECT_FALSE(PodRows().take(scan, &uid)) << text;
  }
  JsonScan scan(R"({"uid":"b"},)");
  std::string_view uid;
  EXPECT_TRUE(PodRows().take(scan, &uid));
  EXPECT_EQ(uid, "b");
  EXPECT_EQ(*scan.next(), ',');
}

TEST(JournalLines, BeginWithAWholeState) {
  const std::string state = seal(R"({"line":"state","newer":[1],"generation":7,"settings":{},"pods":[)" +
                                 pod("a") + R"(],"memory":{},"lastCpus":[]})");
  EXPECT_EQ(merged(state, {}),
            R"({"generation":7,"line":"state","newer":[1],"settings":{},"memory":{},"lastCpus":[],)"
            R"("released":[],"gone":[],"named":[],"pods":{"templates":[],"rows":[)" +
                pod("a") + "]}}");
  for (const std::string& text : {
           change(7),
           seal(R"({"line":"state","generation":7})"),
           seal(R"({"line":"state","pods":[]})"),
           seal(R"({"line":"state","generation":7,"pods":null})"),
           seal(R"({"line":"state","generation":7,"pods":[)" + pod("a") + "," + pod("a") + "]}"),
           seal(R"({"line":"state","generation":7,"pods":[],"gone":[]})"),
           seal(R"({"line":"state","generation":7,"pods":[],"named":[]})"),
           seal(R"({"line":"state","generation":7,"pods":[],"released":[]})"),
       })
    EXPECT_EQ(merged(text, {}), "not plain") << text;
}

}  // namespace
}  // namespace numalign
