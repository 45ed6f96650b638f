// A machine with its holders as an SVG picture of nested boxes, from 2 to 512 CPUs. Pure.
import type { CpuSet } from 'numalign';
import { formatBytes } from 'numalign/tools';
import type { NumaNode, PciDevice, Topology } from 'numalign/topology';
import {
  cpuUse,
  deviceGroups,
  devicesElsewhere,
  l3Name,
  type MachineBox,
  machineBoxes,
  type NodeBox,
  type PackageBox,
} from '../words/machine-boxes.js';
import { machineLine, memoryKind } from '../words/machine-line.js';
import { countText } from '../words/text.js';
import { type Block, frame, grid, line, row, stack, textWidth } from './blocks.js';
import { exclusiveCpus, type Holdings } from './holdings.js';
import { memoryBar, type Portion } from './legend.js';
import {
  fillLines,
  frameWithTitle,
  HEAD_WIDTH,
  ISOLATED,
  type Look,
  lookOf,
  SMALL,
  SPANNING,
  TEXT,
  USES,
} from './look.js';
import { machineLegend } from './machine-legend.js';
import { styleSheet } from './style.js';
import { element, hoverText } from './svg.js';

export interface PictureOptions {
  /** Undefined: the picture shows only the machine. */
  readonly holdings?: Holdings;
  /** A line below the title. */
  readonly note?: string;
}

const MAX_WIDTH = 1240;
const MIN_WIDTH = 520;
const MARGIN = 12;
/** Beyond this number, CPUs are drawn small. */
const MANY_CPUS = 96;
const MAX_OFFLINE_CELLS = 64;

/**
 * The machine alone, as an element of a page that has the rest: a title, a legend, and
 * {@link styleSheet}.
 */
export function bareMachine(topology: Topology, holdings: Holdings, label: string): string {
  const machine = new Picture(topology, holdings).machine();
  const [width, height] = [Math.ceil(machine.width + 2), Math.ceil(machine.height + 2)];
  const attributes = { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label };
  return element('svg', attributes, machine.draw(1, 1, machine.width, machine.height));
}

/** The whole document, with a line feed at its end. It loads nothing from elsewhere. */
export function machinePicture(topology: Topology, { holdings, note }: PictureOptions = {}): string {
  const title = machineLine(topology);
  const picture = new Picture(topology, holdings);
  const machine = picture.machine();
  const width = Math.max(MIN_WIDTH, machine.width);
  const head = stack(
    [
      ...fillLines(title, width, { size: TEXT + 2, className: 'strong' }),
      ...(note === undefined ? [] : fillLines(note, width, { size: TEXT, className: 'quiet' })),
    ],
    2,
  );
  const legend = machineLegend(topology, holdings, width);
  const page = stack([head, machine, ...(legend ? [legend] : [])], 14);
  const [w, h] = [Math.ceil(width + 2 * MARGIN), Math.ceil(page.height + 2 * MARGIN)];
  const attributes = {
    xmlns: 'http://www.w3.org/2000/svg',
    width: w,
    height: h,
    viewBox: `0 0 ${w} ${h}`,
    role: 'img',
  };
  const content = [
    hoverText(title),
    element('style', {}, styleSheet(holdings?.holders.length ?? 0)),
    element('rect', { width: w, height: h, class: 'page' }),
    page.draw(MARGIN, MARGIN, width, page.height),
  ];
  return `${element('svg', attributes, `\n${content.join('\n')}\n`)}\n`;
}

class Picture {
  readonly #topology: Topology;
  readonly #holdings: Holdings | undefined;
  readonly #exclusive: CpuSet;
  readonly #holderOfCpu = new Map<number, Look>();
  readonly #holderOfDevice = new Map<string, Look>();
  readonly #cell: {
    readonly width: number;
    readonly height: number;
    readonly size: number;
    readonly gap: number;
  };

  constructor(topology: Topology, holdings: Holdings | undefined) {
    this.#topology = topology;
    this.#holdings = holdings;
    const holders = holdings?.holders ?? [];
    this.#exclusive = exclusiveCpus(holders);
    for (const [i, holder] of holders.entries()) {
      const look = lookOf(holder, i);
      for (const cpu of holder.cpus) this.#holderOfCpu.set(cpu, look);
      for (const { id } of Object.values(holder.devices).flat()) this.#holderOfDevice.set(id, look);
    }
    const ids = [...topology.cpus, ...this.#offline];
    const digits = String(Math.max(...ids)).length;
    const [size, height, gap] = ids.length > MANY_CPUS ? [9, 15, 3] : [12, 24, 5];
    this.#cell = { width: Math.max(textWidth('0'.repeat(digits), size) + 5, height), height, size, gap };
  }

  get #offline(): CpuSet {
    return this.#topology.possible.difference(this.#topology.cpus);
  }

  machine(): Block {
    const boxes = machineBoxes(this.#topology);
    const isMemoryOnly = (box: MachineBox) => box.kind === 'node' && box.node.cpus.isEmpty;
    const [memoryOnly, others] = [boxes.filter(isMemoryOnly), boxes.filter((box) => !isMemoryOnly(box))];
    const rows = [others, memoryOnly].filter(({ length }) => length > 0);
    const blocks = rows.map((each) => this.#boxes(each, 12, MAX_WIDTH));
    const elsewhere = Array.from(devicesElsewhere(this.#topology), ([place, devices]) => {
      const chips = this.#devices(devices);
      return chips.length === 0 ? [] : [frameWithTitle('box', `PCI devices ${place}`, undefined, chips)];
    }).flat();
    return stack([...blocks, ...elsewhere, ...this.#offlineBox()], 12);
  }

  #box(box: MachineBox): Block {
    switch (box.kind) {
      case 'package': {
        const title = `Package ${box.id}${box.isPart ? ' (part)' : ''}`;
        return frameWithTitle('box package', title, countText(box.cpus.size, 'CPU'), [this.#children(box)]);
      }
      case 'node': {
        const { id, cpus } = box.node;
        const about = [cpus.isEmpty ? [] : `CPUs ${cpus}`, memoryKind(box.node) ?? []].flat().join(', ');
        const inside = [...this.#memory(box.node), ...(cpus.isEmpty ? [] : [this.#children(box)])];
        return frameWithTitle('box node', `NUMA node ${id}`, about, [
          ...inside,
          ...this.#devices(box.devices),
        ]);
      }
      case 'cores': {
        const blocks = box.cores.map((core) => this.#core(core));
        const cores = grid(blocks, this.#cell.gap, MAX_WIDTH / 2);
        const title = [l3Name(box) ?? [], box.coreKind ? `${box.coreKind} cores` : []].flat().join(', ');
        return title === '' ? cores : frameWithTitle('box l3', title, undefined, [cores]);
      }
    }
  }

  #boxes(boxes: readonly MachineBox[], gap: number, maxWidth: number): Block {
    const blocks = boxes.map((box) => this.#box(box));
    return grid(blocks, gap, maxWidth);
  }

  #children({ children }: PackageBox | NodeBox): Block {
    return this.#boxes(children, 8, MAX_WIDTH - 2 * MARGIN);
  }

  #core(cpus: CpuSet): Block {
    const { gap } = this.#cell;
    const threads = Array.from(cpus, (cpu) => this.#cpu(cpu, this.#lookOfCpu(cpu)));
    return frame(row(threads), gap / 2, 'core');
  }

  #cpu(cpu: number, { className, text }: Look): Block {
    const { width, height, size } = this.#cell;
    return {
      width,
      height,
      draw: (x, y, w, h) => {
        const label = { x: x + w / 2, y: y + h / 2 + size * 0.36, 'font-size': size, class: 'cpu' };
        const inside = [
          hoverText(`CPU ${cpu}: ${text}`),
          element('rect', {
            x: x + 1,
            y: y + 0.5,
            width: w - 2,
            height: h - 1,
            rx: 2,
            class: `cell ${className}`,
          }),
          element('text', label, String(cpu)),
        ];
        return element('g', { 'data-cpu': cpu }, inside.join(''));
      },
    };
  }

  #lookOfCpu(cpu: number): Look {
    const holder = this.#holderOfCpu.get(cpu);
    if (holder) return holder;
    if (!this.#holdings)
      return this.#topology.isolated.has(cpu) ? ISOLATED : { className: 'plain', text: 'online' };
    const use = cpuUse(this.#holdings.settings, this.#exclusive, cpu);
    return USES[use === 'exclusive' ? 'free' : use];
  }

  /** A bar for each kind of memory that the node has. */
  #memory({ id, memoryBytes, hugepages }: NumaNode): Block[] {
    const tables = this.#holdings?.memory.filter(({ node, total }) => node === id && total > 0);
    if (tables) {
      return tables.map(({ type, total, systemReserved, reserved, free }) => {
        const text = `${type} ${formatBytes(free)} free of ${formatBytes(total)}`;
        const portions = this.#holdersOfMemory(id, type, reserved);
        const system = { className: 'reserved', text: 'reserved for the system', bytes: systemReserved };
        return memoryBar(text, total, [system, ...portions]);
      });
    }
    const pools = hugepages.filter(({ count }) => count > 0);
    const texts = [
      ...(memoryBytes > 0 ? [`memory ${formatBytes(memoryBytes)}`] : []),
      ...pools.map(({ bytes, count }) => `hugepages ${count} × ${formatBytes(bytes)}`),
    ];
    return texts.map((text) => line(text, { size: SMALL, className: 'quiet' }));
  }

  // Memory on several nodes is booked for all of them together: nothing records the part on each
  // node.
  #holdersOfMemory(node: number, type: string, reserved: number): Portion[] {
    const portions = (this.#holdings?.holders ?? []).flatMap((holder, i) =>
      holder.memory
        .filter((block) => block.type === type && block.nodes.length === 1 && block.nodes[0] === node)
        .map(({ bytes }) => ({ ...lookOf(holder, i), bytes })),
    );
    const rest = reserved - portions.reduce((sum, { bytes }) => sum + bytes, 0);
    return [...portions, { ...SPANNING, bytes: rest }];
  }

  #devices(devices: readonly PciDevice[]): Block[] {
    const chips = deviceGroups(devices, this.#topology.devices).flatMap(({ kind, devices: list, more }) => [
      ...list.map((device) => this.#device(kind, device)),
      ...(more > 0 ? [line(`and ${more} more (${kind})`, { size: SMALL, className: 'quiet' })] : []),
    ]);
    return chips.length === 0 ? [] : [grid(chips, 4, MAX_WIDTH / 2)];
  }

  #device(kind: string, { id, names, vendor, device, driver }: PciDevice): Block {
    const { className, text } = this.#holderOfDevice.get(id) ?? { className: 'plain', text: 'free' };
    const label = line([kind, ...names, id].join(' '), { size: SMALL, maxWidth: HEAD_WIDTH });
    const about = [kind, ...names, id, `${vendor}:${device}`, ...(driver === null ? [] : [driver])].join(' ');
    return frame(label, 3, `cell ${className}`, this.#holdings ? `${about}: ${text}` : about);
  }

  #offlineBox(): Block[] {
    const offline = this.#offline;
    if (offline.isEmpty) return [];
    const about = `${offline} (possible, not online)`;
    const cells = Array.from(offline, (cpu) => this.#cpu(cpu, this.#holderOfCpu.get(cpu) ?? USES.offline));
    const content = offline.size > MAX_OFFLINE_CELLS ? [] : [grid(cells, this.#cell.gap, MAX_WIDTH / 2)];
    return [frameWithTitle('box', 'Offline', about, content)];
  }
}
