// Interrupts of devices: the CPUs that they are delivered to, as the kernel's core-api/irq
// describes them, and what irqbalance must know.
import { CpuSet } from '../../machine/cpu-set.js';
import { type NamedProcess, namedProcesses } from '../../processes/named-processes.js';
import { type Ask, askSocket } from '../kernel/irqbalance-client.js';
import type { KernelFiles } from '../kernel/kernel-files.js';
import { HEX, LIST, MaskSetting } from '../kernel/mask-setting.js';
import type { Inheritance, Part, PartDemand } from '../kernel/setting.js';
import { irqbalanceSettings, rivalObstacles } from './irqbalance.js';

const FOLDER = '/proc/irq';
const DEFAULT = `${FOLDER}/default_smp_affinity`;
const DESCRIPTIONS = '/sys/kernel/irq';
// Interrupts of a GIC below 32, and all of the RISC-V per-CPU controller, belong to one CPU each:
// its timer and counters.
const GIC_SHARED = 32;

const NEW_INTERRUPTS: Inheritance = {
  path: DEFAULT,
  convert: (mask) => LIST.print(HEX.parse(mask) ?? CpuSet.EMPTY),
};

class DeviceInterrupt extends MaskSetting {
  constructor(
    files: KernelFiles,
    private readonly irq: string,
  ) {
    super(files, `${FOLDER}/${irq}/smp_affinity_list`, '', LIST);
  }

  readonly inherits = NEW_INTERRUPTS;

  // Interrupt numbers are reused. The handler's name is not part of the identity: it disappears
  // while a network interface is down, but the affinity stays.
  override get identity(): string | null {
    const [chip, pin] = [this.#about('chip_name'), this.#about('hwirq')];
    return chip === undefined || pin === undefined ? null : `${chip} ${pin}`;
  }

  override get title(): string {
    const handlers = this.#about('actions');
    return `IRQ ${this.irq}${handlers ? ` (${handlers})` : ''}`;
  }

  get isOfDevice(): boolean {
    const chip = this.#about('chip_name') ?? '';
    if (chip.startsWith('GIC')) return Number(this.#about('hwirq') ?? GIC_SHARED) >= GIC_SHARED;
    return chip !== 'RISC-V INTC';
  }

  /**
   * Most chips deliver to one CPU of the mask. A chip that can only move an interrupt as it arrives
   * delivers it once more to the earlier CPU, and then no more.
   */
  override disturbs(value: string, { cpus }: PartDemand): CpuSet {
    const allowed = this.cpusOf(value).intersection(cpus);
    // Without a handler the interrupt is off. Most interrupts are on no quiet CPU, so no further
    // file is read for them.
    if (allowed.isEmpty || this.#about('actions') === '') return CpuSet.EMPTY;
    const effective = this.readFrom(`${FOLDER}/${this.irq}/effective_affinity_list`);
    return effective ? allowed.intersection(this.cpusOf(effective)) : allowed;
  }

  #about(file: string): string | undefined {
    return this.files.read(`${DESCRIPTIONS}/${this.irq}/${file}`);
  }
}

function* deviceInterrupts(files: KernelFiles): Generator<DeviceInterrupt> {
  const numbers = files.list(FOLDER).filter((name) => /^\d+$/.test(name));
  for (const irq of numbers.sort((a, b) => Number(a) - Number(b))) {
    const interrupt = new DeviceInterrupt(files, irq);
    if (interrupt.isOfDevice) yield interrupt;
  }
}

/** How to ask irqbalance, and how to find it if it has no socket. */
export interface IrqbalanceMeans {
  readonly ask: Ask;
  readonly running: () => Iterable<NamedProcess>;
}

// There can be thousands of processes, at about 10 µs each, and `grant.quiet` may be read often.
const SCAN_MS = 1000;

const THIS_MACHINE: IrqbalanceMeans = {
  ask: askSocket,
  running: recent(() => [...namedProcesses(['irqbalance'])], SCAN_MS),
};

export function interruptsPart({ ask, running }: IrqbalanceMeans = THIS_MACHINE): Part {
  return {
    name: 'interrupts',

    // irqbalance would move interrupts back, and new interrupts follow the default: both come
    // first.
    *settings(files) {
      yield* irqbalanceSettings(files, ask);
      if (files.exists(DEFAULT))
        yield new MaskSetting(files, DEFAULT, 'the default affinity of new IRQs', HEX);
      yield* deviceInterrupts(files);
    },

    hidden: (files, records) => (files.exists(DEFAULT) ? [] : records),

    obstacles(files, { cpus }) {
      return [
        ...(!files.exists(DEFAULT)
          ? [`${FOLDER} cannot be seen from here: in a container, mount the machine's /proc`]
          : []),
        ...rivalObstacles(files, running(), cpus),
      ];
    },
  };
}

export const interrupts: Part = interruptsPart();

/** `read`, with its result kept for `ms` milliseconds. `now`: the time in milliseconds. */
export function recent<T>(read: () => T, ms: number, now: () => number = () => performance.now()): () => T {
  let last: { readonly value: T; readonly until: number } | undefined;
  return () => {
    if (!last || last.until <= now()) last = { value: read(), until: now() + ms };
    return last.value;
  };
}
