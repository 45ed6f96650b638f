// The machines that are booted: QEMU's arguments for each, and the tests that run in it.
import { isLong } from '../support/budget.mjs';

/** QEMU's arguments for NUMA nodes with memory: [id, MiB, more of -numa node]. */
const memoryNodes = (nodes) =>
  nodes.flatMap(([id, mebibytes, more = '']) => [
    ...['-object', `memory-backend-ram,id=m${id},size=${mebibytes}M`],
    ...['-numa', `node,nodeid=${id},memdev=m${id}${more}`],
  ]);
/** CPUs of a node, by socket or die. */
const nodeCpus = (...places) => places.flatMap(([node, place]) => ['-numa', `cpu,node-id=${node},${place}`]);
/** [[from, to, distance], …]; the way back is the same. */
const distances = (list) =>
  list.flatMap(([src, dst, val]) => ['-numa', `dist,src=${src},dst=${dst},val=${val}`]);
/** Latency and bandwidth from one node to another, for the HMAT. */
const hmat = (list) =>
  list.flatMap(([initiator, target, latency, bandwidth]) => {
    const pair = `hmat-lb,initiator=${initiator},target=${target},hierarchy=memory`;
    return [
      ...['-numa', `${pair},data-type=access-latency,latency=${latency}`],
      ...['-numa', `${pair},data-type=access-bandwidth,bandwidth=${bandwidth}G`],
    ];
  });

// Two packages of two dies, a NUMA node for each die, two cores of two threads each.
const PACKAGES = [
  ...['-smp', '16,sockets=2,dies=2,cores=2,threads=2', '-m', '4096'],
  ...memoryNodes([0, 1, 2, 3].map((id) => [id, 1024])),
  ...nodeCpus(
    [0, 'socket-id=0,die-id=0'],
    [1, 'socket-id=0,die-id=1'],
    [2, 'socket-id=1,die-id=0'],
    [3, 'socket-id=1,die-id=1'],
  ),
  ...distances([
    [0, 1, 12],
    [0, 2, 20],
    [0, 3, 22],
    [1, 2, 22],
    [1, 3, 20],
    [2, 3, 12],
  ]),
];

const SMALL = [
  ...['-smp', '4,sockets=2,dies=1,cores=1,threads=2', '-m', '2560'],
  ...memoryNodes([0, 1].map((id) => [id, 1280])),
  ...nodeCpus([0, 'socket-id=0'], [1, 'socket-id=1']),
];

// A network card and a disk on node 1; a network card and a disk with virtual functions on node 3.
const DEVICES = [
  ...['-device', 'pxb-pcie,id=bus1,bus=pcie.0,bus_nr=64,numa_node=1'],
  ...['-device', 'pcie-root-port,id=port1,bus=bus1,chassis=1,slot=1'],
  ...['-device', 'pcie-root-port,id=port2,bus=bus1,chassis=2,slot=2'],
  ...['-device', 'pxb-pcie,id=bus3,bus=pcie.0,bus_nr=128,numa_node=3'],
  ...['-device', 'pcie-root-port,id=port3,bus=bus3,chassis=3,slot=3'],
  ...['-device', 'pcie-root-port,id=port4,bus=bus3,chassis=4,slot=4'],
  ...['-device', 'virtio-net-pci,bus=port1,mac=52:54:00:00:00:01'],
  ...['-drive', 'if=none,id=disk0,driver=null-co,size=1G,read-zeroes=on'],
  ...['-device', 'nvme,bus=port2,serial=first,drive=disk0'],
  ...['-device', 'e1000e,bus=port3,mac=52:54:00:00:00:03'],
  ...['-device', 'nvme-subsys,id=subsystem0'],
  '-device',
  'nvme,bus=port4,serial=second,subsys=subsystem0,max_ioqpairs=10,msix_qsize=12,sriov_max_vfs=4,sriov_vq_flexible=8,sriov_vi_flexible=4',
];

// A network card of 4 queue pairs, whose driver places its interrupts, on node 1; one whose driver
// does not, on node 2; a disk of 4 queues on node 3.
const QUIET = [
  ...['-smp', '8,sockets=4,dies=1,cores=1,threads=2', '-m', '2560'],
  ...memoryNodes([0, 1, 2, 3].map((id) => [id, 640])),
  ...nodeCpus(...[0, 1, 2, 3].map((id) => [id, `socket-id=${id}`])),
  ...[1, 2, 3].flatMap((node) => [
    ...['-device', `pxb-pcie,id=bus${node},bus=pcie.0,bus_nr=${64 * node},numa_node=${node}`],
    ...['-device', `pcie-root-port,id=port${node},bus=bus${node},chassis=${node},slot=${node}`],
  ]),
  ...['-netdev', 'tap,id=many,ifname=tap0,queues=4,script=no,downscript=no'],
  ...['-device', 'virtio-net-pci,bus=port1,netdev=many,mq=on,vectors=10,mac=52:54:00:00:00:01'],
  ...['-device', 'e1000e,bus=port2,mac=52:54:00:00:00:02'],
  ...['-drive', 'if=none,id=disk0,driver=null-co,size=1G,read-zeroes=on'],
  ...['-device', 'nvme,bus=port3,serial=first,drive=disk0,max_ioqpairs=4,msix_qsize=5'],
];

// A memory-only node, like CXL, and perhaps a CPU-only node.
const CPU_LATENCIES = [
  [0, 0, 100, 100],
  [0, 1, 210, 50],
  [0, 2, 250, 20],
  [1, 0, 210, 50],
  [1, 1, 100, 100],
  [1, 2, 350, 10],
];

/** The address of the host's end of tap0, with its prefix. */
export const TAP_ADDRESS = '10.98.0.1/24';

/**
 * `nodeCpus`: the CPUs of each NUMA node as Linux numbers them: nodes with CPUs come first.
 * `tests`: files of test/vm/guest that run in it, all in one boot. `append`: kernel arguments.
 * `bootMs`: the time until it runs tests. `offline`: CPUs that are taken offline before. `kernel`:
 * `stable` (default), `backports` or `newest`. `hasContainers`: its tests run containers, and the host
 * has the programs. `hasTap`: its first network card is tap0 of a network namespace of its own, which
 * answers pings to {@link TAP_ADDRESS}. `hasIrqbalance`: its tests run Debian's irqbalance. `hasDisk`:
 * it boots twice, the second time for `afterReboot`, and keeps /disk. `release`: of the Debian that it
 * runs, if that is not the host's. `isRare`: only `npm run test:vm` without `--changed-since` boots it.
 */
export const SHAPES = [
  {
    name: '4-nodes',
    about: '2 packages x 2 NUMA nodes, SMT, distances',
    nodeCpus: ['0-3', '4-7', '8-11', '12-15'],
    arguments: PACKAGES,
    tests: [
      'machine',
      'grants',
      'memory',
      // By default the machines of 8-nodes run them.
      ...(isLong ? ['moves'] : []),
      'move-crashes',
      'hugepages',
      'cgroups-v2',
      'enforcement',
      'masks',
      'drift',
      'parts',
      'cluster',
      'pools',
      'children',
      'container-memory',
      'hotplug',
      'frozen',
      'recipes',
      'restart',
      'until-reboot',
    ],
    afterReboot: ['reboot'],
    hasDisk: true,
  },
  {
    name: 'systemd',
    about: '2 small NUMA nodes, with systemd as the first process',
    nodeCpus: ['0-1', '2-3'],
    arguments: SMALL,
    append: 'numalign.systemd',
    bootMs: 300_000,
    tests: ['services', 'agent-service'],
  },
  {
    name: 'next-debian',
    about: 'the same with the next Debian and its kernel',
    nodeCpus: ['0-1', '2-3'],
    arguments: SMALL,
    append: 'numalign.systemd',
    kernel: 'newest',
    release: 'trixie',
    bootMs: 300_000,
    tests: ['services', 'agent-service'],
    isRare: true,
  },
  {
    name: '4-nodes-pci',
    about: 'the same with PCI devices on their nodes',
    nodeCpus: ['0-3', '4-7', '8-11', '12-15'],
    arguments: [...PACKAGES, ...DEVICES],
    tests: ['machine', 'grants', 'devices', 'trace'],
  },
  {
    name: '8-nodes',
    about: '8 packages, a NUMA node each',
    nodeCpus: ['0-3', '4-7', '8-11', '12-15', '16-19', '20-23', '24-27', '28-31'],
    arguments: [
      ...['-smp', '32,sockets=8,dies=1,cores=2,threads=2', '-m', '4096'],
      ...memoryNodes([0, 1, 2, 3, 4, 5, 6, 7].map((id) => [id, 512])),
      ...nodeCpus(...[0, 1, 2, 3, 4, 5, 6, 7].map((id) => [id, `socket-id=${id}`])),
      ...distances(
        [0, 1, 2, 3, 4, 5, 6, 7].flatMap((a) =>
          [0, 1, 2, 3, 4, 5, 6, 7]
            .filter((b) => b > a)
            .map((b) => [a, b, Math.floor(a / 4) === Math.floor(b / 4) ? 16 : 32]),
        ),
      ),
    ],
    tests: ['machine', 'grants', 'memory', 'moves'],
  },
  {
    name: '64-cpus',
    about: '64 CPUs in 4 packages of 2 dies',
    nodeCpus: ['0-15', '16-31', '32-47', '48-63'],
    arguments: [
      ...['-smp', '64,sockets=4,dies=2,cores=4,threads=2', '-m', '4096'],
      ...memoryNodes([0, 1, 2, 3].map((id) => [id, 1024])),
      ...nodeCpus(...[0, 1, 2, 3].map((id) => [id, `socket-id=${id}`])),
    ],
    tests: ['machine', 'grants'],
  },
  {
    name: 'cpu-holes',
    about: 'holes in CPU ids, cores of one thread, uneven nodes',
    nodeCpus: ['0-1,3-4,6-7', '8'],
    // Linux numbers the plugged CPUs without holes.
    offline: [2, 5],
    arguments: [
      ...['-smp', '8,maxcpus=12,sockets=3,dies=1,cores=2,threads=2', '-m', '2560'],
      ...memoryNodes([
        [0, 1536],
        [1, 1024],
      ]),
      ...nodeCpus([0, 'socket-id=0'], [0, 'socket-id=1'], [1, 'socket-id=2']),
      ...['-device', 'Skylake-Server-x86_64-cpu,socket-id=2,die-id=0,core-id=1,thread-id=0'],
    ],
    tests: ['machine', 'grants'],
  },
  {
    name: 'memory-only-node',
    about: 'a memory-only node with HMAT',
    nodeCpus: ['0-3', '4-7', ''],
    arguments: [
      ...['-machine', 'hmat=on', '-smp', '8,sockets=2,dies=1,cores=2,threads=2', '-m', '3072'],
      ...memoryNodes([
        [0, 1024, ',initiator=0'],
        [1, 1024, ',initiator=1'],
        [2, 1024, ',initiator=0'],
      ]),
      ...nodeCpus([0, 'socket-id=0'], [1, 'socket-id=1']),
      ...distances([
        [0, 1, 21],
        [0, 2, 14],
        [1, 2, 24],
      ]),
      ...hmat(CPU_LATENCIES),
    ],
    tests: ['machine', 'grants', 'memory', 'container-memory'],
  },
  {
    name: 'memory-tiers',
    about: 'an HBM node and a CXL node, the kernel of the next Debian’s backports',
    nodeCpus: ['0-3', '4-7', '', ''],
    arguments: [
      ...['-machine', 'hmat=on', '-smp', '8,sockets=2,dies=1,cores=2,threads=2', '-m', '3072'],
      ...memoryNodes([
        [0, 1024, ',initiator=0'],
        [1, 1024, ',initiator=1'],
        [2, 512, ',initiator=0'],
        [3, 512, ',initiator=1'],
      ]),
      ...nodeCpus([0, 'socket-id=0'], [1, 'socket-id=1']),
      ...distances([
        [0, 1, 21],
        [0, 2, 14],
        [1, 2, 24],
        [0, 3, 28],
        [1, 3, 18],
        [2, 3, 34],
      ]),
      ...hmat([
        [0, 0, 100, 100],
        [0, 1, 210, 50],
        [0, 2, 120, 400],
        [0, 3, 350, 10],
        [1, 0, 210, 50],
        [1, 1, 100, 100],
        [1, 2, 230, 50],
        [1, 3, 250, 20],
      ]),
    ],
    kernel: 'newest',
    tests: ['machine', 'memory'],
  },
  {
    name: 'cpu-only-node',
    about: 'a CPU node without memory, and a memory-only node',
    nodeCpus: ['0-3', '4-7', '8-11', ''],
    // hwloc leaves out a node without memory, and puts its CPUs elsewhere.
    xmlNodeCpus: ['0-3,8-11', '4-7', ''],
    arguments: [
      ...['-machine', 'hmat=on', '-smp', '12,sockets=3,dies=1,cores=2,threads=2', '-m', '3072'],
      ...memoryNodes([
        [0, 1024, ',initiator=0'],
        [1, 1024, ',initiator=1'],
        [2, 1024, ',initiator=0'],
      ]),
      ...['-numa', 'node,nodeid=3'],
      ...nodeCpus([0, 'socket-id=0'], [1, 'socket-id=1'], [3, 'socket-id=2']),
      ...distances([
        [0, 1, 21],
        [0, 2, 14],
        [1, 2, 24],
        [0, 3, 31],
        [1, 3, 31],
        [2, 3, 31],
      ]),
      ...hmat(CPU_LATENCIES),
    ],
    tests: ['machine', 'grants'],
  },
  {
    name: 'isolated',
    about: 'booted with isolcpus and nohz_full',
    nodeCpus: ['0-3', '4-7', '8-11', '12-15'],
    arguments: PACKAGES,
    append: 'isolcpus=12-15 nohz_full=12-15',
    tests: ['machine', 'isolated', 'threads', 'children', 'enforcement', 'doctor'],
  },
  {
    name: 'containers',
    about: 'like 4-nodes, with containerd and runc',
    nodeCpus: ['0-3', '4-7', '8-11', '12-15'],
    arguments: PACKAGES,
    hasContainers: true,
    tests: ['containers', 'static-kubelet', 'confined-node', 'slices'],
  },
  {
    name: 'systemd-containers',
    about: '4 small NUMA nodes, with systemd as the first process, containerd and runc',
    nodeCpus: ['0-1', '2-3', '4-5', '6-7'],
    arguments: [
      ...['-smp', '8,sockets=4,dies=1,cores=1,threads=2', '-m', '2560'],
      ...memoryNodes([0, 1, 2, 3].map((id) => [id, 640])),
      ...nodeCpus(...[0, 1, 2, 3].map((id) => [id, `socket-id=${id}`])),
    ],
    append: 'numalign.systemd',
    bootMs: 300_000,
    hasContainers: true,
    tests: ['systemd-containers', 'slices'],
  },
  {
    name: 'newer-kernel',
    about: 'the kernel of Debian’s backports',
    nodeCpus: ['0-3', '4-7', '8-11', '12-15'],
    arguments: PACKAGES,
    kernel: 'backports',
    tests: ['machine', 'grants', 'memory', 'cgroups-v2', 'enforcement', 'masks', 'drift', 'pools'],
  },
  {
    name: 'sixteen',
    about: 'like 4-nodes, with the kernel of the next Debian’s backports',
    nodeCpus: ['0-3', '4-7', '8-11', '12-15'],
    arguments: PACKAGES,
    kernel: 'newest',
    tests: ['pools'],
  },
  {
    name: 'quiet',
    about: '4 nodes, a network card and a disk of 4 queues each, irqbalance, the kernel of backports',
    nodeCpus: ['0-1', '2-3', '4-5', '6-7'],
    arguments: QUIET,
    kernel: 'backports',
    hasTap: true,
    hasIrqbalance: true,
    tests: ['quiet-kernel', 'quiet', 'quiet-rivals'],
  },
  {
    name: 'quiet-newest',
    about: 'the same with the kernel of the next Debian’s backports',
    nodeCpus: ['0-1', '2-3', '4-5', '6-7'],
    arguments: QUIET,
    kernel: 'newest',
    hasTap: true,
    hasIrqbalance: true,
    tests: ['quiet-kernel', 'quiet', 'quiet-rivals'],
  },
];

/** The machines, of several alike ones the first: test/fixtures/machines has a file by its name. */
export const FIXTURES = SHAPES.filter(
  (shape, i) => SHAPES.findIndex((other) => other.arguments === shape.arguments) === i,
);
