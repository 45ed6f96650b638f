// Pictures in a real browser.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { discover } from 'numalign/topology';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { machinePicture } from '../../lib/picture/machine-picture.js';
import { holdingsOn, manyHolders, OF_8_CPUS, OF_512_CPUS } from '../picture/machines.js';
import { Chromium } from './chromium.js';

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
let chromium: Chromium;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'numalign-picture-'));
  chromium = new Chromium();
});
afterAll(async () => {
  await chromium.close();
  rmSync(folder, { recursive: true });
});

async function inBrowser(svg: string, theme: 'light' | 'dark'): Promise<Measured> {
  const path = join(folder, 'page.html');
  writeFileSync(join(folder, 'picture.svg'), svg);
  writeFileSync(path, `<!doctype html><meta charset="utf-8"><img src="picture.svg">${svg}`);
  const tab = await chromium.open(`file://${path}`, { theme });
  const measured = await tab.evaluate<Measured>(`${MEASURE};measure()`);
  await tab.close();
  return measured;
}

describe('the picture in chromium', () => {
  it.for([
    ['8', OF_8_CPUS, 'light', 'rgb(255, 255, 255)'],
    ['8', OF_8_CPUS, 'dark', 'rgb(13, 17, 23)'],
    ['512', OF_512_CPUS, 'light', 'rgb(255, 255, 255)'],
    ['512', OF_512_CPUS, 'dark', 'rgb(13, 17, 23)'],
  ] as const)('is read, and readable, at %s CPUs (%s, %s)', async ([count, synthetic, scheme, page]) => {
    const topology = await discover({ synthetic });
    const holders = manyHolders(topology);
    const svg = machinePicture(topology, { holdings: holdingsOn(topology, { holders }) });
    const measured = await inBrowser(svg, scheme);
    expect(measured).toMatchObject({ cpus: Number(count), page, outside: [], tight: [], overlapping: [] });
    expect(measured.imageWidth).toBe(Number(/width="(\d+)"/.exec(svg)![1]));
    expect(measured.colors).toBeGreaterThanOrEqual(holders.length);
    expect(measured.contrast).toBeGreaterThan(4.5);
  });
});
