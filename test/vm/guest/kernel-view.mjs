// The kernel's view of the machine, of threads and of memory: read from its files, without
// numalign.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { threadId } from '../../../dist/entries/diagnostics.js';

const CPU = '/sys/devices/system/cpu';
const NODE = '/sys/devices/system/node';
// In /proc/<pid>/task/<tid>/stat, counted after the name, which may contain anything: `processor`
// is field 39.
const PROCESSOR = 39 - 3;

export const read = (...path) => readFileSync(join(...path), 'utf8').trim();

/** The numbers of a list such as `0-3,8`. */
export function parseList(text) {
  return text
    .trim()
    .split(',')
    .filter(Boolean)
    .flatMap((range) => {
      const [first, last = first] = range.split('-').map(Number);
      return Array.from({ length: last - first + 1 }, (_, i) => first + i);
    });
}

export const online = () => parseList(read(CPU, 'online'));
export const possible = () => parseList(read(CPU, 'possible'));
export const nodeIds = () => parseList(read(NODE, 'online'));
export const cpusOfNode = (node) => parseList(read(NODE, `node${node}`, 'cpulist'));
export const distancesOfNode = (node) => read(NODE, `node${node}`, 'distance').split(/\s+/).map(Number);
/** The CPUs in a list of this CPU's folder, such as topology/core_cpus_list. */
export const listOfCpu = (cpu, file) => parseList(read(CPU, `cpu${cpu}`, file));
export const numberOfCpu = (cpu, file) => Number(read(CPU, `cpu${cpu}`, file));
/** Ids of the nodes that have any of these CPUs. */
export const nodesOf = (cpus) =>
  nodeIds().filter((node) => cpusOfNode(node).some((cpu) => cpus.includes(cpu)));
export const bytesOfNode = (node, what = 'MemTotal') =>
  Number(new RegExp(`${what}:\\s*(\\d+)`).exec(read(NODE, `node${node}`, 'meminfo'))[1]) * 1024;
/** Nodes with CPUs and memory. */
export const wholeNodes = () =>
  nodeIds().filter((node) => cpusOfNode(node).length > 0 && bytesOfNode(node) > 0);
const bandwidthOf = (node) => {
  try {
    return Number(read(NODE, `node${node}`, 'access0/initiators/read_bandwidth'));
  } catch {
    return undefined;
  }
};
/** The tier of a node without CPUs, as the firmware reports it (HMAT); undefined if it does not. */
export function tierOf(node) {
  const [own, dram] = [bandwidthOf(node), bandwidthOf(wholeNodes()[0])];
  if (own === undefined || dram === undefined) return undefined;
  return own > dram ? 'hbm' : 'cxl';
}
/** The nearest of some nodes, the lowest of equals. */
export function nearestNode(node, among) {
  const far = (other) => distancesOfNode(node)[nodeIds().indexOf(other)];
  return among.reduce((nearest, other) => (far(other) < far(nearest) ? other : nearest));
}
/** `what`: `nr_hugepages` or `free_hugepages`, of 2 MiB. */
export const hugepagesFile = (node, what = 'nr_hugepages') =>
  `${NODE}/node${node}/hugepages/hugepages-2048kB/${what}`;

const statusField = (text, name) => parseList(new RegExp(`^${name}:\\s*(\\S*)$`, 'm').exec(text)[1]);
/** The CPUs that each thread of a process may use; none for a thread that ends meanwhile. */
export const masks = (pid = process.pid) =>
  readdirSync(`/proc/${pid}/task`).flatMap((tid) => {
    try {
      return [statusField(read(`/proc/${pid}/task/${tid}/status`), 'Cpus_allowed_list')];
    } catch (error) {
      if (error.code === 'ENOENT' || error.code === 'ESRCH') return [];
      throw error;
    }
  });
/** Reads the output of `cat /proc/self/status`. */
export const maskIn = (text) => statusField(text, 'Cpus_allowed_list');

/** The CPU that this thread runs on at this moment. */
export function processor() {
  const stat = readFileSync(`/proc/self/task/${threadId()}/stat`, 'utf8');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[PROCESSOR]);
}

/** Bytes of a process by node, as numa_maps counts them. `isCounted`: selects mappings. */
export function bytesByNode(pid = process.pid, isCounted = () => true) {
  const sums = new Map();
  for (const line of readFileSync(`/proc/${pid}/numa_maps`, 'utf8').split('\n').filter(isCounted)) {
    const page = Number(/ kernelpagesize_kB=(\d+)/.exec(line)?.[1] ?? 0) * 1024;
    for (const [, node, pages] of line.matchAll(/ N(\d+)=(\d+)/g)) {
      sums.set(Number(node), (sums.get(Number(node)) ?? 0) + Number(pages) * page);
    }
  }
  return sums;
}

/** The same for memory without a file. */
export const anonymousBytes = (pid) => bytesByNode(pid, (line) => !line.includes(' file='));

// Addresses are 64 bits each. move_pages(2) without nodes returns the node of each page, or an
// error below 0. The number is x86-64's, the architecture of the machines.
const MOVE_PAGES = 279;
const ASK_PAGES = `
  local $/;
  my ($pid, $pages) = ($ARGV[0] + 0, <STDIN>);
  my $count = length($pages) / 8;
  my $status = "\\0" x (4 * $count);
  syscall(${MOVE_PAGES}, $pid, $count, $pages, 0, $status, 0) == 0 or die "move_pages: $!";
  print $status;`;
const PAGE_BYTES = 4096;

/** Pages of the anonymous memory of a process by node, as move_pages(2) counts them. */
export function anonymousPages(pid) {
  const addresses = [];
  for (const line of read('/proc', String(pid), 'maps').split('\n')) {
    const [, from, to, inode, name] = /^(\w+)-(\w+) \S+ \S+ \S+ (\d+)\s*(.*)$/.exec(line);
    if (inode !== '0' || /^\[v/.test(name)) continue;
    for (let at = BigInt(`0x${from}`); at < BigInt(`0x${to}`); at += BigInt(PAGE_BYTES)) addresses.push(at);
  }
  const answer = execFileSync('perl', ['-e', ASK_PAGES, String(pid)], {
    input: Buffer.from(BigUint64Array.from(addresses).buffer),
    maxBuffer: 1 << 26,
  });
  const counts = new Map();
  for (let i = 0; i < answer.length; i += 4) {
    const node = answer.readInt32LE(i);
    if (node >= 0) counts.set(node, (counts.get(node) ?? 0) + 1);
  }
  return counts;
}

/** The threads that a process starts itself, which numalign leaves alone. */
export const output = (program, ...args) =>
  execFileSync(program, args, { encoding: 'utf8', maxBuffer: 1 << 26 });
