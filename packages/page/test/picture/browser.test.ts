// needs: nothing
// Pictures in a real browser: Debian's chromium, where it is installed.
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { discover } from 'numalign/topology';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { machinePicture } from '../../lib/picture/machine-picture.js';
import { holdingsOn, manyHolders, OF_8_CPUS, OF_512_CPUS } from './machines.js';

const hasChromium = spawnSync('chromium', ['--version']).status === 0;

interface Measured {
  /**
   * The natural width of the picture as an image, which browsers read as strict XML: 0 if they
   * cannot.
   */
  readonly imageWidth: number;
  readonly page: string;
  readonly cpus: number;
  /** Texts outside the page. */
  readonly outside: string[];
  /** CPUs whose number is wider than its cell. */
  readonly tight: string[];
  /** Texts that overlap. */
  readonly overlapping: string[];
  /** The least contrast between a CPU's number and its cell, by WCAG 2. */
  readonly contrast: number;
  /** The number of colours of its CPUs. */
  readonly colors: number;
}

const MEASURE = readFileSync(new URL('measure.js', import.meta.url), 'utf8');

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'numalign-picture-'));
});
// Its helpers may still be writing.
afterEach(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

async function inBrowser(svg: string, scheme: 'light' | 'dark'): Promise<Measured> {
  writeFileSync(join(folder, 'picture.svg'), svg);
  writeFileSync(
    join(folder, 'page.html'),
    `<!doctype html><meta charset="utf-8"><img src="picture.svg">${svg}<pre></pre>
<script>${MEASURE}
addEventListener('load', () => { document.querySelector('pre').textContent = encodeURIComponent(JSON.stringify(measure())); })</script>`,
  );
  const { stdout } = await promisify(execFile)(
    'chromium',
    [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
      `--user-data-dir=${join(folder, 'profile')}`,
      ...(scheme === 'dark' ? ['--blink-settings=preferredColorScheme=0'] : []),
      ...['--dump-dom', `file://${join(folder, 'page.html')}`],
    ],
    { timeout: 90_000, maxBuffer: 1 << 26 },
  );
  return JSON.parse(decodeURIComponent(/<pre>(.+?)<\/pre>/.exec(stdout)![1]!));
}

describe('the picture in chromium', () => {
  it.for([
    ['8', OF_8_CPUS, 'light', 'rgb(255, 255, 255)'],
    ['8', OF_8_CPUS, 'dark', 'rgb(13, 17, 23)'],
    ['512', OF_512_CPUS, 'light', 'rgb(255, 255, 255)'],
    ['512', OF_512_CPUS, 'dark', 'rgb(13, 17, 23)'],
  ] as const)(
    'is read, and readable, at %s CPUs (%s, %s)',
    async ([count, synthetic, scheme, page], { skip }) => {
      skip(!hasChromium, 'there is no chromium here (Debian: apt-get install chromium)');
      const topology = await discover({ synthetic });
      const holders = manyHolders(topology);
      const svg = machinePicture(topology, { holdings: holdingsOn(topology, { holders }) });
      const measured = await inBrowser(svg, scheme);
      expect(measured).toMatchObject({ cpus: Number(count), page, outside: [], tight: [], overlapping: [] });
      expect(measured.imageWidth).toBe(Number(/width="(\d+)"/.exec(svg)![1]));
      expect(measured.colors).toBeGreaterThanOrEqual(holders.length);
      expect(measured.contrast).toBeGreaterThan(4.5);
    },
  );
});
