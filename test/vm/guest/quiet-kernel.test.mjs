import { execSync } from 'node:child_process';
import { test } from 'node:test';
test('explore', () => {
  console.log(execSync(`uname -r; cat /proc/interrupts; for i in /proc/irq/*/; do echo $i $(cat $i/smp_affinity_list $i/effective_affinity_list $i/node 2>&1 | tr '\\n' ' '); done; cat /proc/irq/default_smp_affinity; ls -l /sys/class/net; for p in /sys/bus/pci/devices/*; do echo $p $(cat $p/class $p/numa_node) $(ls $p/msi_irqs 2>/dev/null); done; find /sys/devices/virtual/workqueue -name cpumask; for q in /sys/class/net/*/queues/*/{rps,xps}_cpus; do echo $q $(cat $q); done; ls /sys/devices/system/cpu/cpu0/power /sys/devices/system/cpu/cpu0/cpuidle /sys/devices/system/cpu/cpu0/; echo $NUMALIGN_IRQBALANCE; ls /sys/fs/cgroup`, { encoding: 'utf8', shell: '/bin/bash' }));
});
