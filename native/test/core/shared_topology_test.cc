// A topology that several threads use at a time.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/best_fit.h"
#include "core/topology.h"
#include "support/best_fit_laws.h"
#include "support/random_machine.h"
#include "support/seed.h"

namespace numalign {
namespace {

TEST(SharedTopology, AnswersEachThreadAsIfItWereAlone) {
  SCOPED_TRACE(test::where(0));
  test::Between between = test::choices(0);
  auto topology = Topology::create(test::random_machine(between, {.max_nodes = 6, .max_cpus = 96})).value();
  CpuSet available = topology->cpus();
  auto answers = [&] {
    std::vector<CpuSet> all;
    for (int count = 0; count <= available.size(); count++) {
      for (const BestFitOptions& options : test::all_best_fit_options()) {
        all.push_back(best_fit(*topology, available, count, options).value());
      }
    }
    return all;
  };
  std::vector<CpuSet> expected = answers();
  std::vector<std::vector<CpuSet>> found(4);
  std::vector<std::thread> threads;
  for (auto& result : found) threads.emplace_back([&] { result = answers(); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : found) EXPECT_EQ(result, expected);
}

}  // namespace
}  // namespace numalign
