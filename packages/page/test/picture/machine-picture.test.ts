// needs: nothing
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { CpuSet } from 'numalign';
import type { StateStatus } from 'numalign/diagnostics';
import { discover, type Topology } from 'numalign/topology';
import { describe, expect, it } from 'vitest';
import type { DiscoverOptions } from '../../../../lib/machine/discovery.js';
import { hybridMachine, P8_E12 } from '../../../../test/support/hybrid.js';
import { allOf, parseXml, type XmlElement } from '../../../../test/support/xml.js';
import { holdingsOf } from '../../lib/picture/holdings.js';
import { machinePicture } from '../../lib/picture/machine-picture.js';
import { holder, holdingsOn, manyHolders, OF_8_CPUS, OF_512_CPUS, settingsOn } from './machines.js';

const FIXTURES = fileURLToPath(new URL('../../../../test/fixtures/machines/', import.meta.url));

const MACHINES: [name: string, source: DiscoverOptions][] = [
  ...readdirSync(FIXTURES).map((name): [string, DiscoverOptions] => [name, { xml: `${FIXTURES}${name}` }]),
  ...[
    OF_8_CPUS,
    OF_512_CPUS,
    'core:1 pu:1',
    'numa:1 core:512 pu:1',
    'package:8 numa:1 core:8 pu:8',
    'numa:64 core:4 pu:2',
  ].map((synthetic): [string, DiscoverOptions] => [synthetic, { synthetic }]),
];

const cpusOf = (svg: XmlElement) =>
  allOf(svg).filter(({ attributes }) => attributes['data-cpu'] !== undefined);
const rectOf = ({ children }: XmlElement) => children.find(({ name }) => name === 'rect')!;
const classOf = (element: XmlElement) => rectOf(element).attributes.class!.replace('cell ', '');
const textsOf = (svg: XmlElement) => allOf(svg).filter(({ name }) => name === 'text');

/** How a CPU is drawn: its class, and the words that show under the pointer. */
function look(svg: XmlElement, cpu: number): [className: string, words: string] {
  const drawn = cpusOf(svg).find(({ attributes }) => attributes['data-cpu'] === String(cpu))!;
  return [classOf(drawn), drawn.children.find(({ name }) => name === 'title')!.text];
}

/** The words of the legend's row with this class of swatch. */
function legendRow(svg: XmlElement, className: string): string[] {
  const swatch = svg.children.findLast(
    ({ name, attributes }) => name === 'rect' && attributes.class === `cell ${className}`,
  )!;
  const [left, top] = [Number(swatch.attributes.x), Number(swatch.attributes.y)];
  return textsOf(svg)
    .filter(({ attributes: { x, y } }) => Number(x) > left && Number(y) > top - 3 && Number(y) < top + 15)
    .map(({ text }) => text);
}

function box({ attributes }: XmlElement) {
  const [x, y, width, height] = ['x', 'y', 'width', 'height'].map((name) =>
    Number(attributes[name] ?? 0),
  ) as [number, number, number, number];
  return { left: x, top: y, right: x + width, bottom: y + height };
}

describe.each(MACHINES)('the picture of %s', (_, source) => {
  const drawn = async (withHolders: boolean): Promise<[Topology, string]> => {
    const topology = await discover(source);
    const holdings = holdingsOn(topology, { holders: manyHolders(topology) });
    return [topology, machinePicture(topology, withHolders ? { holdings } : {})];
  };

  it.each([false, true])('is well-formed and loads nothing (holders: %s)', async (withHolders) => {
    const [, text] = await drawn(withHolders);
    const svg = parseXml(text);
    expect(svg).toMatchObject({ name: 'svg', attributes: { xmlns: 'http://www.w3.org/2000/svg' } });
    expect([...new Set(allOf(svg).map(({ name }) => name))].sort()).toEqual([
      'g',
      'rect',
      'style',
      'svg',
      'text',
      'title',
    ]);
    expect(text).not.toMatch(/href|url\(|@import|@font-face|NaN|Infinity|undefined/);
    expect(text.match(/https?:/g)).toHaveLength(1);
  });

  it('has every CPU once, with its id, and every NUMA node and package', async () => {
    const [topology, text] = await drawn(true);
    const svg = parseXml(text);
    const offline = topology.possible.difference(topology.cpus);
    const ids = cpusOf(svg).map(({ attributes }) => Number(attributes['data-cpu']));
    expect(ids.sort((a, b) => a - b)).toEqual([...topology.cpus.union(offline)]);
    for (const cpu of cpusOf(svg)) expect(textsOf(cpu)[0]!.text).toBe(cpu.attributes['data-cpu']);
    const heads = (pattern: RegExp) =>
      textsOf(svg)
        .filter((each) => pattern.test(each.text))
        .map((each) => each.text);
    expect(heads(/^NUMA node /).sort()).toEqual(topology.nodes.map(({ id }) => `NUMA node ${id}`).sort());
    expect(new Set(heads(/^Package /))).toEqual(new Set(topology.packages.map(({ id }) => `Package ${id}`)));
    expect(heads(/^memory only( \((HBM|CXL)\))?$/)).toHaveLength(
      topology.nodes.filter(({ cpus }) => cpus.isEmpty).length,
    );
  });

  it('is at most as wide as a screen, keeps everything inside, and no CPU is over another', async () => {
    const [, text] = await drawn(true);
    const svg = parseXml(text);
    const page = box(svg);
    expect(page.right).toBeLessThan(1300);
    for (const rect of allOf(svg).filter(({ name }) => name === 'rect')) {
      const { left, top, right, bottom } = box(rect);
      expect(left < right && top < bottom).toBe(true);
      expect([left >= 0, top >= 0, right <= page.right, bottom <= page.bottom]).toEqual([
        true,
        true,
        true,
        true,
      ]);
    }
    const cells = cpusOf(svg).map((cpu) => box(rectOf(cpu)));
    const isOver = (a: (typeof cells)[0], b: (typeof cells)[0]) =>
      a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    expect(cells.filter((cell, i) => cells.slice(i + 1).some((other) => isOver(cell, other)))).toEqual([]);
  });
});

describe('the picture of holders', () => {
  it('draws CPUs in the colour of their holder, and names the holder in the legend and under the pointer', async () => {
    const topology = await discover({ synthetic: OF_8_CPUS });
    const holders = [holder('gateway', '0-1,4'), holder('db', '5')];
    const svg = parseXml(machinePicture(topology, { holdings: holdingsOn(topology, { holders }) }));
    for (const cpu of [0, 1, 4]) expect(look(svg, cpu)).toEqual(['holder-0', `CPU ${cpu}: gateway`]);
    expect(look(svg, 5)).toEqual(['holder-1', 'CPU 5: db']);
    expect(look(svg, 6)).toEqual(['free', 'CPU 6: free (shared until granted)']);
    expect(legendRow(svg, 'holder-0')).toEqual(['gateway', 'CPUs 0-1, 4']);
    expect(legendRow(svg, 'holder-1')).toEqual(['db', 'CPUs 5']);
    expect(legendRow(svg, 'free')).toEqual(['free (shared until granted)', 'CPUs 2-3, 6-7']);
  });

  it('names grants without a name by as much of their ids as distinguishes them', async () => {
    const topology = await discover({ synthetic: OF_8_CPUS });
    const of = (id: string) => ({
      uid: id,
      name: id,
      cpus: CpuSet.EMPTY,
      upcoming: null,
      former: null,
      alive: true,
    });
    const view = {
      ...holdingsOn(topology),
      grants: [of('12345678-a'), of('12345678-b')],
    } as unknown as StateStatus;
    expect(holdingsOf(view).holders.map(({ name }) => name)).toEqual(['12345678-a', '12345678-b']);
  });

  it('has a grant on all CPUs that it keeps from others while it moves', async () => {
    const topology = await discover({ synthetic: OF_8_CPUS });
    const [cpus, former] = [CpuSet.parse('4-5'), CpuSet.parse('0-1')];
    const grant = { uid: 'u', name: 'job', cpus, upcoming: cpus, former, alive: true };
    const view = { ...holdingsOn(topology), grants: [grant] } as unknown as StateStatus;
    expect(holdingsOf(view).holders.map((each) => String(each.cpus))).toEqual(['0-1,4-5']);
  });

  it('has a colour for each of 40 holders, by day and by night', async () => {
    const topology = await discover({ synthetic: OF_512_CPUS });
    const holders = Array.from({ length: 40 }, (_, i) => holder(`pod-${i}`, String(i)));
    const text = machinePicture(topology, { holdings: holdingsOn(topology, { holders }) });
    const [day, night] = text.split('@media (prefers-color-scheme:dark)') as [string, string];
    for (const part of [day, night]) {
      const fills = [...part.matchAll(/\.holder-\d+\{fill:(hsl\(.*?\))\}/g)].map(([, color]) => color);
      expect(fills).toHaveLength(40);
      expect(new Set(fills).size).toBe(40);
    }
  });

  it('distinguishes reserved, isolated, unmanaged and offline CPUs', async () => {
    const topology = await discover({
      json: {
        columns: ['cpu', 'core', 'socket', 'numa', 'uncoreCache'],
        cpus: [0, 1, 2, 3].map((cpu) => [cpu, cpu, 0, 0, 0]),
        nodes: [{ id: 0, cpuLess: false, distances: null }],
        possible: '0-5',
      },
    });
    const settings = settingsOn(CpuSet.parse('0-2'), '0', '1');
    const svg = parseXml(machinePicture(topology, { holdings: holdingsOn(topology, { settings }) }));
    expect([0, 1, 2, 3, 4, 5].map((cpu) => look(svg, cpu)[0])).toEqual([
      'reserved',
      'isolated',
      'free',
      'unmanaged',
      'offline',
      'offline',
    ]);
    expect(legendRow(svg, 'reserved')).toEqual(['reserved', 'CPUs 0']);
    expect(legendRow(svg, 'isolated')).toEqual(['isolated, free', 'CPUs 1']);
    expect(legendRow(svg, 'unmanaged')).toEqual(['not managed', 'CPUs 3']);
    expect(textsOf(svg).map(({ text }) => text)).toContain('4-5 (possible, not online)');
  });

  it('shows CPUs that the kernel isolates if there are no holders', async () => {
    const machine = (await discover({ synthetic: OF_8_CPUS })).toJSON();
    const topology = await discover({ json: { ...machine, isolated: '2-3' } });
    const svg = parseXml(machinePicture(topology));
    expect([1, 2, 3].map((cpu) => look(svg, cpu)[0])).toEqual(['plain', 'isolated', 'isolated']);
    expect(legendRow(svg, 'isolated')).toEqual(['isolated', 'CPUs 2-3']);
  });

  it('shows cores of each kind apart', async () => {
    const svg = parseXml(machinePicture(await hybridMachine(P8_E12)));
    const titles = textsOf(svg).flatMap(({ text }) => /(performance|efficiency) cores/.exec(text)?.[0] ?? []);
    expect(titles).toEqual(['performance cores', 'efficiency cores']);
  });

  it('only counts offline CPUs if there are very many', async () => {
    const topology = await discover({
      json: {
        columns: ['cpu', 'core', 'socket', 'numa', 'uncoreCache'],
        cpus: [[0, 0, 0, 0, 0]],
        nodes: [{ id: 0, cpuLess: false, distances: null }],
        possible: '0-255',
      },
    });
    const svg = parseXml(machinePicture(topology));
    expect(cpusOf(svg)).toHaveLength(1);
    expect(textsOf(svg).map(({ text }) => text)).toContain('1-255 (possible, not online)');
  });

  it('outlines the subject of a plan, and nothing else', async () => {
    const topology = await discover({ synthetic: OF_8_CPUS });
    const holders = [holder('old', '0'), holder('new (planned)', '2-3', { isHighlighted: true })];
    const svg = parseXml(machinePicture(topology, { holdings: holdingsOn(topology, { holders }) }));
    const outlined = cpusOf(svg).filter((cpu) => classOf(cpu).split(' ').includes('highlighted'));
    expect(outlined.map(({ attributes }) => attributes['data-cpu'])).toEqual(['2', '3']);
    expect(legendRow(svg, 'holder-1 highlighted')).toEqual(['new (planned)', 'CPUs 2-3']);
  });

  it('fills memory bars by reserved and booked memory, by holder if it is on one node', async () => {
    const topology = await discover({ synthetic: OF_8_CPUS });
    const GiB = 2 ** 30;
    const holders = [
      holder('one', '0', { memory: [{ nodes: [0], type: 'memory', bytes: 2 * GiB }] }),
      holder('both', '1', { memory: [{ nodes: [0, 1], type: 'memory', bytes: 4 * GiB }] }),
    ];
    const base = { type: 'memory', total: 8 * GiB, group: [0, 1] };
    const memory = [
      { ...base, node: 0, systemReserved: GiB, allocatable: 7 * GiB, reserved: 5 * GiB, free: 2 * GiB },
      { ...base, node: 1, systemReserved: 0, allocatable: 8 * GiB, reserved: GiB, free: 7 * GiB },
    ];
    const svg = parseXml(machinePicture(topology, { holdings: holdingsOn(topology, { holders, memory }) }));
    const bars = allOf(svg).filter(({ attributes, name }) => name === 'rect' && attributes.height === '9');
    const [whole] = bars;
    const parts = bars.map(({ attributes }) => [
      attributes.class!.replace('cell ', ''),
      Math.round((8 * Number(attributes.width)) / Number(whole!.attributes.width)),
    ]);
    expect(parts).toEqual([
      ['free', 8],
      ['reserved', 1],
      ['holder-0', 2],
      ['granted', 3],
      ['free', 8],
      ['granted', 1],
    ]);
    expect(textsOf(svg).map(({ text }) => text)).toContain('memory 2 GiB free of 8 GiB');
    expect(legendRow(svg, 'granted')[0]).toBe('on several nodes');
    expect(legendRow(svg, 'reserved')).toEqual(['reserved', '1 GiB on 0']);
  });

  it("draws devices below their NUMA node, in their holder's colour", async () => {
    const topology = await discover({ xml: `${FIXTURES}pci.xml` });
    const held = topology.devices.find(({ names }) => names.includes('eth1'))!;
    const holders = [holder('net', '12', { devices: { 'example.com/nic': [{ id: held.id, nodes: [3] }] } })];
    const svg = parseXml(machinePicture(topology, { holdings: holdingsOn(topology, { holders }) }));
    const isChip = (each: XmlElement) =>
      each.name === 'g' && textsOf(each).some(({ text }) => /^(network|storage) /.test(text));
    const chips = allOf(svg).filter(isChip);
    const drawn = chips.map((chip) => [textsOf(chip)[0]!.text, classOf(chip)]);
    expect(drawn).toContainEqual([`network eth1 ${held.id}`, 'holder-0']);
    expect(drawn.filter(([, className]) => className === 'holder-0')).toHaveLength(1);
    expect(drawn).toHaveLength(7);
    expect(legendRow(svg, 'holder-0')).toEqual(['net', `CPUs 12; example.com/nic ${held.id}`]);
  });

  it('writes names unchanged, whatever they would mean to XML or a terminal', async () => {
    const topology = await discover({ synthetic: OF_8_CPUS });
    const name = `<script>alert("1")</script> & 'x' ]]> &amp;`;
    const holders = [holder(name, '0'), holder('\u0000\u001b[31m\ud800\ufffe\u202e', '1')];
    const svg = parseXml(
      machinePicture(topology, { holdings: holdingsOn(topology, { holders }), note: name }),
    );
    expect(look(svg, 0)[1]).toBe(`CPU 0: ${name}`);
    expect(look(svg, 1)[1]).toBe('CPU 1: ??[31m???');
    expect(allOf(svg).some((each) => each.name === 'script')).toBe(false);
  });

  it('has the legend of many holders in columns, from top to bottom', async () => {
    const topology = await discover({ synthetic: OF_512_CPUS });
    const holders = manyHolders(topology);
    const svg = parseXml(machinePicture(topology, { holdings: holdingsOn(topology, { holders }) }));
    const swatches = svg.children.filter(({ attributes }) => /^cell holder-/.test(attributes.class ?? ''));
    const columns = new Set(swatches.map(({ attributes }) => attributes.x));
    expect(swatches).toHaveLength(holders.length);
    expect(columns.size).toBe(3);
    const places = swatches.map(({ attributes: { x, y } }) => [Number(x), Number(y)] as const);
    expect(places).toEqual([...places].sort((a, b) => a[0] - b[0] || a[1] - b[1]));
    const last = holders.at(-1)!;
    expect(legendRow(svg, `holder-${holders.length - 1}`).slice(0, 2)).toEqual([
      last.name,
      `CPUs ${last.cpus}`,
    ]);
  });

  it('cuts a long name in the legend, and fills long lists of CPUs into lines', async () => {
    const topology = await discover({ synthetic: OF_512_CPUS });
    const odd = CpuSet.from([...topology.cpus].filter((cpu) => cpu % 2 === 1));
    const name = 'n'.repeat(300);
    const svg = parseXml(
      machinePicture(topology, { holdings: holdingsOn(topology, { holders: [holder(name, String(odd))] }) }),
    );
    const lines = textsOf(svg).filter(({ text }) => /^(CPUs )?1, 3, 5|^\d+, \d+, \d+, \d+, /.test(text));
    expect(lines.length).toBeGreaterThan(5);
    const [cut] = textsOf(svg).filter(({ text }) => /^n+…$/.test(text));
    expect(cut!.children).toEqual([{ name: 'title', attributes: {}, children: [], text: name }]);
  });
});
