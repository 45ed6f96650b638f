// A process that records its CPU as fast as it can, and prints the record once its input ends:
// lines "CPU FROM TO", in nanoseconds of CLOCK_MONOTONIC. Between FROM and TO no two samples are
// further apart than GAP: a task that was on the CPU for longer was seen on it.
//
//   sampler SAMPLING_THREADS AGGRESSIVE_THREADS
//
// Aggressive threads ask while they sample, again and again, for each CPU alone and then for all.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define GAP 5000
// Of each thread: only the filled part of the memory is used.
#define MOST (1 << 25)

struct run {
  int cpu;
  int64_t from, to;
};

struct sampler {
  pthread_t thread;
  int is_aggressive;
  struct run *runs;
  size_t count;
};

static atomic_int is_over;
static atomic_int up;

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void *sample(void *given) {
  struct sampler *sampler = given;
  struct run run = {-1, 0, 0};
  cpu_set_t all, one;
  CPU_ZERO(&all);
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) CPU_SET(cpu, &all);
  const int cpus = sysconf(_SC_NPROCESSORS_CONF);
  int turn = 0;
  atomic_fetch_add(&up, 1);
  while (!is_over) {
    if (sampler->is_aggressive) {
      // A single CPU: the thread goes there at once, if it may; with all CPUs it would go when the
      // kernel finds its CPU too crowded.
      CPU_ZERO(&one);
      CPU_SET(turn, &one);
      turn = (turn + 1) % (cpus + 1);
      sched_setaffinity(0, sizeof all, turn == 0 ? &all : &one);
    }
    const int64_t from = now();
    const int cpu = sched_getcpu();
    const int64_t to = now();
    // Its CPU in between is unknown.
    if (to - from > GAP) continue;
    if (cpu == run.cpu && from - run.to <= GAP) {
      run.to = to;
      continue;
    }
    if (run.cpu >= 0 && sampler->count < MOST) sampler->runs[sampler->count++] = run;
    run = (struct run){cpu, from, to};
  }
  if (run.cpu >= 0 && sampler->count < MOST) sampler->runs[sampler->count++] = run;
  return NULL;
}

int main(int argc, char **argv) {
  const int calm = argc > 1 ? atoi(argv[1]) : 1;
  const int count = calm + (argc > 2 ? atoi(argv[2]) : 0);
  struct sampler *samplers = calloc(count, sizeof *samplers);
  for (int i = 0; i < count; i++) {
    samplers[i].is_aggressive = i >= calm;
    samplers[i].runs = malloc(MOST * sizeof(struct run));
    pthread_create(&samplers[i].thread, NULL, sample, &samplers[i]);
  }
  while (up < count) usleep(1000);
  puts("up");
  fflush(stdout);
  while (getchar() != EOF) {
  }
  is_over = 1;
  for (int i = 0; i < count; i++) {
    pthread_join(samplers[i].thread, NULL);
    // Full: later samples are lost.
    if (samplers[i].count == MOST) return 1;
    for (size_t j = 0; j < samplers[i].count; j++) {
      const struct run *run = &samplers[i].runs[j];
      printf("%d %lld %lld\n", run->cpu, (long long)run->from, (long long)run->to);
    }
  }
  return 0;
}
