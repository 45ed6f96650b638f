#!/bin/bash
# Runs test files one after another: guest-tests.sh FILE… Each begins with the CPUs that the machine
# allowed at boot, because a partition that comes or goes may change the CPUs of every process.
# Without --test, which takes a process more for each file: emulated, that is seconds.
mask=$(taskset -cp $$)
status=0
for file; do
  taskset -c "${mask##*: }" node --test-reporter=tap "$file" || status=1
done
exit $status
