// needs: nothing
// The picture of the README: 20 seconds of `numalign top`, with figures made up for it.
import { CpuSet, type GrantInfo } from 'numalign';
import type { StateStatus } from 'numalign/diagnostics';
import { expect, it } from 'vitest';
import { rowOf } from '../lib/top/figures.js';
import { topText } from '../lib/top/top-text.js';

const SECONDS = 20;
const [WIDTH, LINES] = [96, 12];
const LINE = 18;
const FOREIGN = { pid: 4711, tid: 4711, command: 'cc1', kind: 'user', bound: false, runTimeNs: 312e6 };

interface Figures {
  readonly name: string;
  readonly cpus: string;
  /** Shares of a CPU. */
  readonly run: number;
  readonly delayMs: number;
  readonly switches: number;
  readonly interrupts: number;
  readonly isDisturbed?: boolean;
}

function rowFor({ name, cpus, isDisturbed = false, ...figures }: Figures) {
  const audit = (elapsedMs: number, totals: object) => ({
    elapsedMs,
    totals,
    threads: Array(CpuSet.parse(cpus).size),
    cpus: [{ cpu: CpuSet.parse(cpus).first, foreign: isDisturbed ? [FOREIGN] : [] }],
    seesAllTasks: true,
    throttling: null,
  });
  const none = { runTimeNs: 0, runDelayNs: 0, involuntarySwitches: 0, interrupts: 0 };
  const { run, delayMs, switches, interrupts } = figures;
  const totals = {
    runTimeNs: run * 1e9,
    runDelayNs: delayMs * 1e6,
    involuntarySwitches: switches,
    interrupts,
  };
  const grant = { uid: name, name, cpus: CpuSet.parse(cpus), owner: { kind: 'process' }, flags: [] };
  return rowOf({
    grant: grant as unknown as GrantInfo,
    before: audit(0, none) as never,
    now: audit(1000, totals) as never,
    elsewhereBytes: 0,
  });
}

const GATEWAY = { name: 'gateway', cpus: '2-3', run: 1.84, delayMs: 0.04, switches: 1, interrupts: 31 };
const TRAINER = { name: 'trainer', cpus: '8-15', run: 7.97, delayMs: 0.11, switches: 3, interrupts: 18 };
const SCENES: readonly (readonly [shared: string, grants: readonly Figures[]])[] = [
  ['0-15', []],
  ['0-1,4-15', [GATEWAY]],
  ['0-1,4-7', [GATEWAY, TRAINER]],
  ['0-1,4-7', [GATEWAY, { ...TRAINER, run: 7.66, delayMs: 308, switches: 96, isDisturbed: true }]],
  ['0-1,4-15', [{ ...GATEWAY, run: 1.9 }]],
];

/** The pages, one after the other. */
function pages(): string[] {
  return SCENES.map(([shared, grants], i) => {
    const pool = CpuSet.parse(shared);
    const status = { exists: true, sharedPool: pool, free: pool, refusal: null } as unknown as StateStatus;
    const time = new Date(Date.UTC(2026, 0, 1, 12, 0, (i * SECONDS) / SCENES.length));
    const look = { stateDir: '/run/numalign', time, status, rows: grants.map(rowFor), hasNodes: true };
    const choice = { seconds: 1, order: { by: 'delay', isReversed: false }, hasKeys: true } as const;
    return topText(look, choice, { width: WIDTH, isNarrow: true });
  });
}

const escaped = (text: string) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');

function picture(): string {
  const lines = (page: string) =>
    page
      .trimEnd()
      .split('\n')
      .map((line, i) => (line === '' ? '' : `<text x="14" y="${24 + i * LINE}">${escaped(line)}</text>\n`))
      .join('');
  const frames = pages().map((page, i) => {
    const delay = (i * SECONDS) / SCENES.length;
    const still = i === 2 ? ' still' : '';
    return `<g class="frame${still}" style="animation-delay:${delay}s">\n${lines(page)}</g>\n`;
  });
  const [width, height] = [WIDTH * 8 + 28, LINES * LINE + 20];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">
<title>numalign top: two grants come, a compiler gets onto a CPU of one of them, and that grant ends</title>
<style>rect{fill:#f6f8fa}text{font:13px ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;fill:#12161b;white-space:pre}
.frame{opacity:0;animation:show ${SECONDS}s step-end infinite}
@keyframes show{0%{opacity:1}${100 / SCENES.length}%{opacity:0}}
@media (prefers-reduced-motion:reduce){.frame{animation:none}.still{opacity:1}}
@media (prefers-color-scheme:dark){rect{fill:#0d1117}text{fill:#f0f3f6}}</style>
<rect width="${width}" height="${height}" rx="6"/>
${frames.join('')}</svg>
`;
}

it('shows 20 seconds of numalign top', async () => {
  expect(Math.max(...pages().map((page) => page.trimEnd().split('\n').length))).toBeLessThanOrEqual(LINES);
  // To change the picture on purpose: vitest run packages/cli/test/top-picture.test.ts --update
  await expect(picture()).toMatchFileSnapshot('../../../docs/top.svg');
});
