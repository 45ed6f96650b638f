// The micro-benchmarks with Google Benchmark. Its own options are listed by --help.
#include <benchmark/benchmark.h>

#include "bench/cases.h"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  for (const numalign::bench::Case& each : numalign::bench::cases()) {
    benchmark::RegisterBenchmark(each.name.c_str(), [prepare = each.prepare](benchmark::State& state) {
      const numalign::bench::Call call = prepare();
      size_t i = 0;
      for (auto _ : state) call(i++);
    });
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
