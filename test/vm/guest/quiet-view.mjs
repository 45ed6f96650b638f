// The kernel's work on CPUs besides threads, read from its files without numalign; and traffic that
// causes it.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import * as kernel from './kernel-view.mjs';

const IRQS = '/proc/irq';
const PCI = '/sys/bus/pci';
// `*`: every name.
const SETTINGS = [
  '/proc/irq/default_smp_affinity',
  '/sys/devices/virtual/workqueue/cpumask',
  '/sys/devices/virtual/workqueue/*/cpumask',
  '/sys/class/net/*/queues/*/rps_cpus',
  '/sys/class/net/*/queues/*/xps_cpus',
  '/sys/devices/system/cpu/*/power/pm_qos_resume_latency_us',
];

/** Resolves with the first true result of `condition`, which is called repeatedly. */
export async function until(what, condition, ms = 20_000) {
  for (const end = performance.now() + ms; ; await pause(50)) {
    const value = await condition();
    if (value) return value;
    if (performance.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
  }
}

/** The PCI device of a network card, by the last byte of its MAC address. */
export function networkCard(last) {
  const name = readdirSync('/sys/class/net').find((each) =>
    kernel.read('/sys/class/net', each, 'address').endsWith(`:0${last}`),
  );
  const device = realpathSync(`/sys/class/net/${name}/device`);
  const path = basename(device).startsWith('virtio') ? dirname(device) : device;
  return {
    name,
    pci: basename(path),
    node: Number(kernel.read(path, 'numa_node')),
    driver: realpathSync(join(path, 'driver')),
  };
}

export const interruptsOf = (pci) =>
  readdirSync(join(PCI, 'devices', pci, 'msi_irqs'))
    .map(Number)
    .sort((a, b) => a - b);
export const handlersOf = (irq) => kernel.read('/sys/kernel/irq', String(irq), 'actions');
export const affinityOf = (irq) => kernel.parseList(kernel.read(IRQS, String(irq), 'smp_affinity_list'));
/** Where the next interrupt is delivered, as far as the kernel has moved it. */
export const effectiveOf = (irq) =>
  kernel.parseList(kernel.read(IRQS, String(irq), 'effective_affinity_list'));
export const setAffinity = (irq, list) => writeFileSync(join(IRQS, String(irq), 'smp_affinity_list'), list);
export const latencyFile = (cpu) => `/sys/devices/system/cpu/cpu${cpu}/power/pm_qos_resume_latency_us`;
export const meet = (cpus, others) => cpus.some((cpu) => others.includes(cpu));
export const maskOf = (path) => BigInt(`0x${kernel.read(path).replaceAll(',', '')}`);
export const bitsOf = (cpus) => cpus.reduce((bits, cpu) => bits | (1n << BigInt(cpu)), 0n);

/** By the number of the interrupt, how often each CPU has had it. */
function counts() {
  const [head, ...lines] = readFileSync('/proc/interrupts', 'utf8').trimEnd().split('\n');
  const cpus = [...head.matchAll(/CPU(\d+)/g)].map(([, cpu]) => Number(cpu));
  const numbered = lines.filter((line) => /^\s*\d+:/.test(line));
  return new Map(
    numbered.map((line) => {
      const [irq, ...fields] = line.trim().split(/:?\s+/);
      return [Number(irq), new Map(cpus.map((cpu, i) => [cpu, Number(fields[i])]))];
    }),
  );
}

/** Interrupts of devices on CPUs within some time, by number, without those that had none. */
export async function deliveries(cpus, ms) {
  const before = counts();
  await pause(ms);
  const sum = (perCpu) => cpus.reduce((all, cpu) => all + (perCpu?.get(cpu) ?? 0), 0);
  const grown = [...counts()].map(([irq, perCpu]) => [irq, sum(perCpu) - sum(before.get(irq))]);
  return Object.fromEntries(grown.filter(([, more]) => more !== 0));
}

function textOf(path) {
  try {
    return kernel.read(path);
  } catch {
    // A card with one queue has an empty file.
    return undefined;
  }
}

function pathsOf(pattern) {
  const at = pattern.indexOf('*');
  if (at < 0) return existsSync(pattern) ? [pattern] : [];
  const folder = pattern.slice(0, at);
  return existsSync(folder)
    ? readdirSync(folder)
        .sort()
        .flatMap((name) => pathsOf(folder + name + pattern.slice(at + 1)))
    : [];
}

/** All settings that quiet grants may change, by path. Interrupts only of these devices. */
export function settings(...devices) {
  const irqs = devices.flatMap(interruptsOf).map((irq) => join(IRQS, String(irq), 'smp_affinity_list'));
  const paths = [...irqs, ...SETTINGS.flatMap(pathsOf)];
  return Object.fromEntries(paths.map((path) => [path, textOf(path)]));
}

export const unbind = ({ driver, pci }) => writeFileSync(join(driver, 'unbind'), pci);
export const bind = ({ driver, pci }) => writeFileSync(join(driver, 'bind'), pci);
/** Its interrupts are new ones, without any of the former settings. */
export function rebind(card) {
  unbind(card);
  bind(card);
}
export const setUp = ({ name }, isUp = true) =>
  void execFileSync('ip', ['link', 'set', name, isUp ? 'up' : 'down']);

const HOST = '10.98.0.1';
// Echo requests, one after the other; ICMP's checksum is the complement of the sum of its words,
// which is below 2^16 here.
const PING = `
  use Socket;
  my ($from, $to) = map { pack_sockaddr_in(0, inet_aton($_)) } @ARGV;
  socket(my $socket, PF_INET, SOCK_RAW, 1) or die $!;
  bind($socket, $from) or die $!;
  $| = 1;
  my ($id, $answers) = ($$ % 9999, 0);
  for (my $number = 1; ; $number = $number % 9999 + 1) {
    my $sum = ~(0x0800 + $id + $number) & 0xffff;
    send($socket, pack('n4', 0x0800, $sum, $id, $number), 0, $to);
    my $ready = '';
    vec($ready, fileno($socket), 1) = 1;
    select($ready, undef, undef, 0.05) or next;
    recv($socket, my $answer, 100, 0);
    print "answered\\n" unless $answers++;
    select(undef, undef, undef, 0.005);
  }`;

/** The first line that is printed; none if the process ends before. */
async function answerOf(stream) {
  for await (const data of stream) return String(data);
  return '';
}

/**
 * Pings the host from each of these CPUs through a network card, each with an address of its own,
 * so that each CPU has a queue for its packets and for the answers. Returns a function that ends
 * it.
 */
export async function startPings(card, cpus) {
  const { name } = card;
  setUp(card);
  const children = [];
  for (const cpu of cpus) {
    const address = `10.98.0.${10 + cpu}`;
    execFileSync('ip', ['addr', 'replace', `${address}/24`, 'dev', name]);
    const args = ['-c', String(cpu), 'perl', '-e', PING, address, HOST];
    children.push(spawn('taskset', args, { stdio: ['ignore', 'pipe', 'inherit'] }));
  }
  for (const { stdout } of children) assert.notEqual(await answerOf(stdout), '', 'pings are answered');
  return async () => {
    const ends = children.map((child) => once(child, 'close'));
    for (const child of children) child.kill();
    await Promise.all(ends);
  };
}

/** irqbalance with a round every second. Returns functions that ask its socket and end it. */
export async function startIrqbalance() {
  execFileSync('mkdir', ['-p', '/run/irqbalance']);
  const child = spawn(process.env.NUMALIGN_IRQBALANCE, ['--foreground', '-t', '1'], { stdio: 'ignore' });
  const path = `/run/irqbalance/irqbalance${child.pid}.sock`;
  const ask = (text) =>
    new Promise((resolve, reject) => {
      let answer = '';
      const socket = createConnection(path, () => socket.write(text));
      socket.on('data', (data) => (answer += data));
      socket.on('error', reject).on('close', () => resolve(answer));
    });
  // It may have created its socket and not listen yet.
  await until('irqbalance answers', () => ask('setup').catch(() => ''));
  const end = async () => {
    const ended = once(child, 'close');
    child.kill();
    await ended;
  };
  return { ask, end };
}

/** The CPUs that irqbalance leaves alone, as bits. */
export const bannedIn = (answer) => BigInt(`0x${/BANNED ([0-9a-f,]+)/.exec(answer)[1].replaceAll(',', '')}`);
