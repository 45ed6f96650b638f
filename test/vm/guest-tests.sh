#!/bin/bash
# Runs test files one after another: guest-tests.sh FILE… Each begins with the CPUs that the machine
# allows at its boot: a partition that comes or goes may give every process others.
mask=$(taskset -cp $$)
status=0
for file; do
  taskset -c "${mask##*: }" node --test --test-reporter=tap "$file" || status=1
done
exit $status
