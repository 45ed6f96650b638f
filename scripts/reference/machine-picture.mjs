// A small picture of machines and of what one request gets on each: boxes of packages, NUMA nodes and
// L3 groups, a frame for each core, a cell for each thread.
const CELL = 6;
const GAP = 4;
const TITLE = 13;
const LETTER = 7;
const WIDTH = 760;

/** Parts beside each other, in rows of at most `width`. Parts have a size, and are drawn at a place. */
function flow(parts, width, gap = GAP) {
  let [x, y, row, widest] = [0, 0, 0, 0];
  const places = parts.map((part) => {
    if (x > 0 && x + part.width > width) [x, y, row] = [0, y + row + gap, 0];
    const place = { part, x, y };
    x += part.width + gap;
    row = Math.max(row, part.height);
    widest = Math.max(widest, x - gap);
    return place;
  });
  const draw = (page, left, top) => {
    for (const { part, x, y } of places) part.draw(page, left + x, top + y);
  };
  return { width: widest, height: y + row, draw };
}

function box(title, className, inner) {
  const head = title ? TITLE : 0;
  const width = Math.max(inner.width + 2 * GAP, title.length * LETTER + 2 * GAP);
  const height = inner.height + 2 * GAP + head;
  const draw = (page, left, top) => {
    page.boxes.push(
      `<rect class="${className}" x="${left}" y="${top}" width="${width}" height="${height}"/>`,
    );
    if (title) page.boxes.push(`<text x="${left + GAP}" y="${top + 12}">${title}</text>`);
    inner.draw(page, left + GAP, top + GAP + head);
  };
  return { width, height, draw };
}

/** A core: up to four threads beside each other. */
function core(threads, useOf) {
  const columns = Math.min(threads.length, 4);
  const [width, height] = [columns * CELL, Math.ceil(threads.length / columns) * CELL * 1.5];
  const draw = (page, left, top) => {
    page.cores += `M${left} ${top}h${width}v${height}h-${width}z`;
    for (let x = CELL; x < width; x += CELL) page.cores += `M${left + x} ${top}v${height}`;
    for (const [i, cpu] of threads.entries()) {
      const [x, y] = [left + (i % columns) * CELL, top + Math.floor(i / columns) * CELL * 1.5];
      const use = useOf(cpu);
      if (use) page[use] += `M${x} ${y}h${CELL}v${CELL * 1.5}h-${CELL}z`;
    }
  };
  return { width, height, draw };
}

const partsOf = (groups, cpus) => groups.filter((group) => group.cpus.intersects(cpus));

/** A machine. `reserved` and `granted`: sets of CPUs. */
function machine({ topology, reserved, granted }) {
  const useOf = (cpu) => (granted.has(cpu) ? 'granted' : reserved.has(cpu) ? 'reserved' : undefined);
  const coresOf = (cpus) => {
    const cores = partsOf(topology.cores, cpus).map((each) => core([...each.cpus], useOf));
    const columns = Math.max(4, Math.ceil(Math.sqrt(cores.length * 2)));
    return flow(cores, columns * (cores[0].width + 2), 2);
  };
  const l3s = (cpus, width) => {
    const groups = partsOf(topology.l3Groups, cpus);
    // One for each core says nothing.
    if (groups.length === 1 || groups.length === partsOf(topology.cores, cpus).length) return coresOf(cpus);
    return flow(
      groups.map((group) => box('', 'l3', coresOf(group.cpus.intersection(cpus)))),
      width,
    );
  };
  const nodes = (cpus, width) =>
    flow(
      partsOf(topology.nodes, cpus).map(({ id, cpus: own }) =>
        box(`NUMA node ${id}`, 'node', l3s(own.intersection(cpus), width / 3)),
      ),
      width,
    );
  const { packages } = topology;
  return packages.length > topology.nodes.length
    ? flow(
        topology.nodes.map(({ id, cpus }) =>
          box(
            `NUMA node ${id}`,
            'node',
            flow(
              partsOf(packages, cpus).map((each) => box(`Package ${each.id}`, 'package', coresOf(each.cpus))),
              WIDTH,
            ),
          ),
        ),
        WIDTH,
      )
    : flow(
        packages.map((each) => box(`Package ${each.id}`, 'package', nodes(each.cpus, WIDTH / 2))),
        WIDTH,
      );
}

/** Machines below each other, each under its title, as SVG. */
export function machinesPicture(machines, title) {
  const page = { boxes: [], cores: '', granted: '', reserved: '' };
  let [width, height] = [0, 0];
  for (const each of machines) {
    const part = machine(each);
    page.boxes.push(`<text x="${GAP}" y="${height + TITLE}">${each.title}</text>`);
    part.draw(page, GAP, height + TITLE + GAP);
    width = Math.max(width, Math.ceil(part.width + 2 * GAP), each.title.length * LETTER);
    height += Math.ceil(part.height) + 2 * TITLE + GAP;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">
<title>${title}</title>
<style>
text{font:11px ui-monospace,"DejaVu Sans Mono",monospace;fill:#12161b}
rect,path{stroke:#6e7781;stroke-width:.7;fill:#fff}.package{fill:#eef1f4}.l3{fill:#f3f5f7}
.granted{fill:#f2a65a}.reserved{fill:#a8b0b9}.core{fill:none}
@media (prefers-color-scheme:dark){text{fill:#f0f3f6}rect,path{fill:#0d1117;stroke:#7d8590}.package{fill:#161b22}.l3{fill:#171d25}.granted{fill:#b3641a}.reserved{fill:#444c56}.core{fill:none}}
</style>
<rect width="${width}" height="${height}" stroke="none"/>
${page.boxes.join('\n')}
<path d="${page.cores}"/>
<path class="reserved" d="${page.reserved}"/>
<path class="granted" d="${page.granted}"/>
<path class="core" d="${page.cores}"/>
</svg>
`;
}
