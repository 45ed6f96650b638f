// Bugs that the tests in virtual machines must find. `find`: the title of the test, or its end, in the
// file `test` of guest/.
export const BUGS = [
  {
    name: 'threads are pinned to CPUs of another node',
    file: 'lib/machine/affinity.ts',
    before: ['native.pin({ tid: toTid(threads), cpus: cpus.words, grant, part, owner, replace })'],
    after:
      'native.pin({ tid: toTid(threads), cpus: CpuSet.from([...cpus].map((cpu) => (cpu + 4) % 16)).words, grant, part, owner, replace })',
    test: 'grants',
    find: 'puts CPUs and memory on one node, on each node in its turn',
  },
  {
    name: 'the memory policy is not set',
    file: 'lib/threads/memory.ts',
    before: ['    reason = setPolicy(mode, nodes);'],
    after: '',
    test: 'memory',
    find: 'bound memory lies on the node, whichever it is, and the policy ends with the grant',
  },
  {
    name: 'the kernel’s answer to a partition is not read back',
    file: 'lib/cgroups/groups/cpuset-v2.ts',
    before: ['        if (!valid) throw'],
    after: "        if (!valid && text === '') throw",
    test: 'cgroups-v2',
    find: 'that the kernel rejects are reported with its answer, and nothing changes',
  },
  {
    name: 'a lost CPU is not substituted',
    file: 'lib/reconcile/reconciler.ts',
    before: ['    const hotplug = await this.#substitute(client);'],
    after: '    const hotplug = client.periodMs < 0 ? await this.#substitute(client) : [];',
    test: 'hotplug',
    find: 'a manager notices that a CPU of a partition is offline, repairs the grant, and reports it',
  },
  {
    name: 'the record keeps an outdated problem',
    file: 'lib/reconcile/repair.ts',
    before: ['  if (changes.length === 0) return [];'],
    after: '  if (changes.length >= 0) return [];',
    test: 'drift',
    find: 'a setting that another program changes again and again is left to it, and the record says so',
  },
  {
    name: 'a move gives up the old CPUs before threads have left them',
    file: 'lib/changes/carry-out.ts',
    before: ['await commit(beginMove(state, pod, uuid));'],
    after: `await commit(
    finishMove(beginMove(state, pod, uuid), findPod(beginMove(state, pod, uuid), pod.uid) as MovingPod, moveTime()),
  );`,
    test: 'move-crashes',
    find: 'of the level partition is completely done or undone if the process that asks is killed at a step on the state folder',
  },
  {
    name: 'a device is near every node',
    file: 'lib/decision/devices/device-resources.ts',
    before: ['if (devices[i]!.numaNodes !== null) return true;'],
    after: 'if (devices[i]!.numaNodes === undefined) return true;',
    shape: '4-nodes-pci',
    test: 'devices',
    find: 'a device comes with CPUs and memory of its node, which the kernel lists as local to it',
  },
  {
    name: 'a container is not held to the memory nodes of its hint',
    file: 'packages/kubernetes/lib/containers/container-placement.ts',
    before: [', ...(mems && !mems.isEmpty && { mems: mems.toString() })'],
    after: ', ...(mems?.isEmpty && { mems: mems.toString() })',
    shape: 'containers',
    test: 'containers',
    find: 'are born on the CPUs and the memory node of their hint',
  },
];
