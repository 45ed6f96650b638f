// Repacking: converts tables of numbers to a problem, and moves to a table.
#include <algorithm>
#include <span>

#include "addon/convert.h"
#include "addon/environment.h"
#include "core/repacking.h"

namespace numalign::addon {
namespace {

// Rows of a Float64Array. Masks of NUMA nodes are two numbers, low and high.
// lib/decision/repacking/problem-tables.ts has the same columns.
class Rows {
 public:
  Rows(const Napi::Object& call, const char* name, size_t columns) : env_(call.Env()), columns_(columns) {
    Napi::Value value = call.Get(name);
    if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_float64_array) {
      throw Napi::TypeError::New(env_, std::string(name) + " must be a Float64Array");
    }
    auto array = value.As<Napi::Float64Array>();
    numbers_ = {array.Data(), array.ElementLength()};
    if (columns == 0 ? !numbers_.empty() : numbers_.size() % columns != 0) fail();
  }

  size_t count() const { return columns_ == 0 ? 0 : numbers_.size() / columns_; }
  double operator()(size_t row, size_t column) const { return numbers_[row * columns_ + column]; }
  int integer(size_t row, size_t column) const { return static_cast<int>((*this)(row, column)); }
  size_t index(size_t row, size_t column, size_t below) const {
    double number = (*this)(row, column);
    if (!(number >= 0 && number < static_cast<double>(below))) fail();
    return static_cast<size_t>(number);
  }
  NodeMask mask(size_t row, size_t column) const {
    auto low = static_cast<uint64_t>(static_cast<uint32_t>((*this)(row, column)));
    auto high = static_cast<uint64_t>(static_cast<uint32_t>((*this)(row, column + 1)));
    return NodeMask(low | high << 32);
  }
  void must_have(size_t rows) const {
    if (count() != rows && columns_ != 0) fail();
  }

 private:
  [[noreturn]] void fail() const {
    throw Napi::RangeError::New(env_, "the tables of a repacking do not fit together");
  }

  Napi::Env env_;
  size_t columns_;
  std::span<const double> numbers_;
};

RepackingGround to_ground(const Napi::Object& call, size_t nodes) {
  RepackingGround ground;
  ground.nodes = nodes;
  Rows views(call, "views", 1 + nodes);
  for (size_t i = 0; i < views.count(); i++) {
    CpuView& view = ground.views.emplace_back();
    view.cpus_per_unit = std::max(1, views.integer(i, 0));
    for (size_t node = 0; node < nodes; node++) view.free.push_back(views.integer(i, 1 + node));
  }
  Rows cores(call, "cores", 5);
  for (size_t i = 0; i < cores.count(); i++) {
    ground.views[cores.index(i, 0, views.count())].cores.push_back(
        {static_cast<int>(cores.index(i, 1, nodes)), cores.integer(i, 2), cores.integer(i, 3),
         cores.integer(i, 4)});
  }
  Rows memory(call, "memory", 3 * nodes);
  ground.types = memory.count();
  for (size_t type = 0; type < ground.types; type++) {
    for (size_t node = 0; node < nodes; node++) {
      ground.memory.push_back(
          {memory(type, 3 * node), memory(type, 3 * node + 1), memory(type, 3 * node + 2)});
    }
  }
  Rows groups(call, "groups", 3);
  for (size_t i = 0; i < groups.count(); i++) {
    ground.groups.push_back({groups.mask(i, 0), groups.integer(i, 2)});
  }
  return ground;
}

// The request's parts first, then the grants.
std::vector<RepackingDemand> to_demands(const Napi::Object& call, const RepackingGround& ground) {
  Rows rows(call, "demands", 3 + ground.views.size() + ground.types);
  std::vector<RepackingDemand> demands;
  for (size_t i = 0; i < rows.count(); i++) {
    RepackingDemand& demand = demands.emplace_back();
    demand.view = rows.index(i, 0, ground.views.size());
    demand.units = rows.integer(i, 1);
    demand.is_one_block = rows(i, 2) != 0;
    size_t column = 3;
    for (size_t v = 0; v < ground.views.size(); v++) demand.cpus_by_view.push_back(rows.integer(i, column++));
    for (size_t t = 0; t < ground.types; t++) demand.bytes.push_back(rows(i, column++));
    if (std::ranges::all_of(demand.bytes, [](double bytes) { return bytes == 0; })) demand.bytes.clear();
  }
  return demands;
}

void add_holdings(const Napi::Object& call, RepackingProblem& problem) {
  const RepackingGround& ground = problem.ground;
  size_t count = problem.grants.size();
  Rows cpus(call, "cpus", ground.views.size() * ground.nodes);
  cpus.must_have(count);
  for (size_t i = 0; i < cpus.count(); i++) {
    std::vector<int>& counts = problem.grants[i].holding.cpus;
    for (size_t c = 0; c < ground.views.size() * ground.nodes; c++) counts.push_back(cpus.integer(i, c));
  }
  Rows shares(call, "shares", 4);
  for (size_t i = 0; i < shares.count(); i++) {
    size_t view = shares.index(i, 1, ground.views.size());
    size_t core = shares.index(i, 2, ground.views[view].cores.size());
    problem.grants[shares.index(i, 0, count)].holding.shares.push_back({view, core, shares.integer(i, 3)});
  }
  Rows blocks(call, "blocks", 5);
  for (size_t i = 0; i < blocks.count(); i++) {
    problem.grants[blocks.index(i, 0, count)].holding.memory.push_back(
        {blocks.mask(i, 1), blocks.index(i, 3, ground.types), blocks(i, 4)});
  }
}

RepackingProblem to_problem(const Napi::Object& call) {
  RepackingProblem problem;
  auto nodes = to_size(call.Get("nodes"), "nodes");
  if (nodes < 1 || nodes > NodeMask::kBits) throw Napi::RangeError::New(call.Env(), "1 to 64 NUMA nodes");
  problem.ground = to_ground(call, nodes);
  std::vector<RepackingDemand> demands = to_demands(call, problem.ground);
  Rows costs(call, "costs", 2);
  Rows stays(call, "stays", 1);
  size_t parts = stays.count();
  if (parts + costs.count() != demands.size()) {
    throw Napi::RangeError::New(call.Env(), "each part and each grant needs a demand");
  }
  for (size_t i = 0; i < parts; i++) problem.request.push_back({demands[i], {}, stays(i, 0) != 0});
  for (size_t i = 0; i < costs.count(); i++) {
    problem.grants.push_back({demands[parts + i], {}, {}, costs(i, 0), costs.integer(i, 1)});
  }
  Rows places(call, "places", 5);
  for (size_t i = 0; i < places.count(); i++) {
    problem.request[places.index(i, 0, parts)].places.push_back({places.mask(i, 1), places.mask(i, 3)});
  }
  Rows targets(call, "targets", 4);
  for (size_t i = 0; i < targets.count(); i++) {
    problem.grants[targets.index(i, 0, costs.count())].targets.push_back(
        {targets.mask(i, 1), targets(i, 3) != 0});
  }
  add_holdings(call, problem);
  return problem;
}

// (tables, { moves, skip, most, budget })
Napi::Value find_repackings_binding(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  if (!info[0].IsObject()) throw Napi::TypeError::New(env, "the tables of a repacking must be an object");
  Fields limits(info[1], "the limits of a repacking");
  RepackingProblem problem = to_problem(info[0].As<Napi::Object>());
  RepackingOptions options{to_size(limits["moves"], "moves"), to_size(limits["skip"], "skip"),
                           to_size(limits["most"], "most"), to_size(limits["budget"], "budget")};
  if (options.moves < 1) throw Napi::RangeError::New(env, "a repacking has at least one move");
  Repackings answer = find_repackings(problem, options);
  auto words = Napi::Uint32Array::New(env, 1 + 2 * options.moves * answer.proposals.size());
  words[0] = (answer.is_complete ? 1 : 0) | (answer.is_bounded ? 2 : 0);
  size_t at = 1;
  for (const std::vector<RepackingMove>& moves : answer.proposals) {
    for (const RepackingMove& move : moves) {
      words[at++] = static_cast<uint32_t>(move.grant);
      words[at++] = static_cast<uint32_t>(move.target);
    }
  }
  return words;
}

}  // namespace

void export_repacking(Napi::Env env, Napi::Object exports) {
  exports["findRepackings"] = Napi::Function::New<find_repackings_binding>(env);
}

}  // namespace numalign::addon
