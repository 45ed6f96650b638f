// usage COMMAND…: runs a program, and prints as JSON what it used: its CPU time in nanoseconds,
// user and system, with that of its ended children, its peak memory in bytes, and the CPU time of
// the processes that it left running, until they have ended. A small program of its own, since the
// kernel counts what a process had before exec(2) as its peak. Built by yardstick.mjs.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double ns(struct timeval time) { return (double)time.tv_sec * 1e9 + (double)time.tv_usec * 1e3; }

static double cpu_ns(const struct rusage* used) { return ns(used->ru_utime) + ns(used->ru_stime); }

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  // What the program leaves running then becomes a child of this process.
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return 1;
  pid_t child = fork();
  if (child == 0) {
    if (dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO) >= 0) execvp(argv[1], argv + 1);
    perror(argv[1]);
    _exit(127);
  }
  int status = 0;
  struct rusage used;
  if (child < 0 || wait4(child, &status, 0, &used) != child) return 1;
  double left_ns = 0;
  for (struct rusage left; wait4(-1, NULL, 0, &left) > 0;) left_ns += cpu_ns(&left);
  printf("{\"cpuNs\":%.0f,\"peakBytes\":%.0f,\"leftNs\":%.0f}\n", cpu_ns(&used), (double)used.ru_maxrss * 1024, left_ns);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
