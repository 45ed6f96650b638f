// A folder tree that stands for the kernel settings that quiet grants change: interrupts,
// workqueues and idle states of a machine, with their original values; and what must be true of it
// at every moment.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseList } from './state-file.mjs';

/** Below the state folder, so that the shim sees what is done in it. */
export const TREE = 'kernel';
const FIRST_IRQ = 24;
const IRQS = 6;
const DESCRIPTIONS = '/sys/kernel/irq';
const affinityOf = (irq) => `/proc/irq/${irq}/smp_affinity_list`;
const QUEUES = ['', 'writeback/', 'blkcg_punt_bio/'];

// The kernel takes each write as a whole: all files have the same length, so that no rest stays.
const LENGTH = 64;
export const padded = (value) => value.padEnd(LENGTH, '\n');

const maskOf = (cpus) => cpus.reduce((mask, cpu) => mask | (1n << BigInt(cpu)), 0n).toString(16);
const cpusOfMask = (mask, count) =>
  Array.from({ length: count }, (_, cpu) => cpu).filter((cpu) => (BigInt(`0x${mask}`) >> BigInt(cpu)) & 1n);

/** The settings: { path, part, original, cpusOf }; `cpusOf`: the CPUs that a value acts on. */
function settingsOf(count) {
  const all = Array.from({ length: count }, (_, cpu) => cpu);
  const hex = (part, path) => ({
    part,
    path,
    original: maskOf(all),
    cpusOf: (text) => cpusOfMask(text, count),
  });
  const list = (path, cpus) => ({ part: 'interrupts', path, original: cpus, cpusOf: parseList });
  return [
    hex('interrupts', '/proc/irq/default_smp_affinity'),
    // Some settings cover only part of the CPUs.
    ...Array.from({ length: IRQS }, (_, i) =>
      list(
        `/proc/irq/${24 + i}/smp_affinity_list`,
        i % 2 === 0 ? `0-${count - 1}` : `0,${i + 1}-${count - 2}`,
      ),
    ),
    ...QUEUES.map((queue) => hex('workqueues', `/sys/devices/virtual/workqueue/${queue}cpumask`)),
    ...all.map((cpu) => ({
      part: 'idle',
      path: `/sys/devices/system/cpu/cpu${cpu}/power/pm_qos_resume_latency_us`,
      original: '0',
      cpusOf: (text) => (text === '0' ? [cpu] : []),
    })),
  ];
}

export class QuietTree {
  #root;
  #settings;

  /** `root`: stands for `/`; `cpus`: their number, up to 32. */
  constructor(root, cpus) {
    this.#root = root;
    this.#settings = settingsOf(cpus);
  }

  make() {
    for (const { path, original } of this.#settings) this.set(path, original);
    for (let irq = FIRST_IRQ; irq < FIRST_IRQ + IRQS; irq++) this.#describe(irq);
  }

  #describe(irq) {
    const facts = { chip_name: 'PCI-MSIX', hwirq: String(irq), actions: `eth0-${irq}` };
    for (const [name, value] of Object.entries(facts)) this.set(`${DESCRIPTIONS}/${irq}/${name}`, value);
  }

  /** A change by another program. */
  set(path, value) {
    mkdirSync(dirname(join(this.#root, path)), { recursive: true });
    writeFileSync(join(this.#root, path), padded(value));
  }

  /** One setting more than those of {@link make}. */
  addInterrupt(irq, cpus) {
    this.#describe(irq);
    this.set(affinityOf(irq), cpus);
  }

  removeInterrupt(irq) {
    for (const folder of [dirname(affinityOf(irq)), `${DESCRIPTIONS}/${irq}`])
      rmSync(join(this.#root, folder), { recursive: true });
  }

  valueOf(path) {
    return readFileSync(join(this.#root, path), 'utf8').trim();
  }

  /** The values by path. */
  read() {
    return new Map(this.#settings.map(({ path }) => [path, this.valueOf(path)]));
  }

  /** Settings that differ from their original values. */
  changed() {
    const values = this.read();
    return this.#settings
      .filter(({ path, original }) => values.get(path) !== original)
      .map(({ path, original }) => `${path} is left at ${values.get(path)}, and was ${original}`);
  }

  /**
   * What must never be, for values and a state of one moment. `held`: certain holdings by grant,
   * whose quiet must be in force. `mayFail`: a value may be left from a refused write, although the
   * next write of the setting is on record.
   */
  wrong(values, { pods, quiet }, held, mayFail) {
    const recorded = new Map(quiet.map((each) => [each.path, each]));
    return this.#settings.flatMap((setting) => {
      const { path, original } = setting;
      const [value, record] = [values.get(path), recorded.get(path)];
      const its = [...pods.values()].filter((pod) => pod.quiet?.[setting.part]);
      const found = [];
      if (record && record.original !== original)
        found.push(`${path} was ${original}, and ${record.original} is on record`);
      if (value !== original && !record?.written.includes(value))
        found.push(`${path} is ${value} and was ${original}, which is not on record`);
      if (record?.refusal || (mayFail && record?.written.length > 1)) return found;
      const keys = new Set(its.flatMap((pod) => [...pod.keys]));
      const left = setting.cpusOf(original).filter((cpu) => !setting.cpusOf(value).includes(cpu));
      const unasked = left.filter((cpu) => !keys.has(`cpu ${cpu}`));
      if (unasked.length > 0) found.push(`${path} is ${value}, though no grant has quiet on CPUs ${unasked}`);
      const sure = new Set(
        its.flatMap(({ uid, keys: has }) => [...has].filter((key) => held.get(uid)?.has(key))),
      );
      const loud = setting.cpusOf(value).filter((cpu) => sure.has(`cpu ${cpu}`));
      if (loud.length > 0) found.push(`${path} is ${value}, though CPUs ${loud} are to be quiet`);
      return found;
    });
  }
}
