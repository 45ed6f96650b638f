// needs: process
// What the page says of grants of this machine.
import { openManager } from 'numalign';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { makeStateDir } from '../../../test/support/state-dir.js';
import { Looks } from '../lib/look.js';
import { FigureWatch, knownFigures } from '../lib/sections/figures.js';
import { Rejections } from '../lib/sections/rejections.js';

async function openReal() {
  const manager = await openManager({ stateDir: makeStateDir() });
  onTestFinished(() => manager.close());
  return manager;
}

/** Uses the CPU for this long. */
function work(microseconds: number): void {
  const before = process.cpuUsage();
  while (process.cpuUsage(before).user < microseconds);
}

describe('figures', () => {
  it('are what happened since the last look', async () => {
    const manager = await openReal();
    const grant = await manager.acquire({ cpu: 1 });
    grant.pin();
    const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    onTestFinished(() => void clock.mockRestore());
    const watch = new FigureWatch(manager, true);
    const first = watch.look().get(grant.uid)!;
    expect(first).toMatchObject({ elapsedMs: 0, runTimeNs: null, interrupts: null });
    const { offNodeBytes } = manager.audit(grant.uid, { memory: true });
    expect(first.elsewhereBytes).toBe(offNodeBytes);
    // A look at once would be of too short a time.
    expect(watch.look().get(grant.uid)).toBe(first);
    clock.mockRestore();
    const before = performance.now();
    work(300_000);
    while (performance.now() - before < 950) work(10_000);
    const second = watch.look().get(grant.uid)!;
    expect(second.elapsedMs).toBeGreaterThan(900);
    expect(second.runTimeNs).toBeGreaterThan(200e6);
    expect(second.runTimeNs).toBeLessThan(second.elapsedMs * 4e6);
    expect(second.interrupts).toBeGreaterThanOrEqual(0);
    expect(second.involuntarySwitches).toBeGreaterThanOrEqual(0);
    expect(second.elsewhereBytes).toBe(first.elsewhereBytes);
    await grant.release();
  });

  it('are of CPUs only, if no process owns the grant', () => {
    const amounts = { runTimeNs: 1, runDelayNs: 2, involuntarySwitches: 3, interrupts: 4 };
    const figures = { elapsedMs: 1000, ...amounts, foreignTasks: 5, elsewhereBytes: 6 };
    const owner = { pid: null, command: null, cgroup: null };
    expect(knownFigures(figures, { owner: { kind: 'process', ...owner } })).toBe(figures);
    const known = knownFigures(figures, { owner: { kind: 'persistent', ...owner } });
    expect(Object.values(known).filter((value) => value !== null)).toEqual([1000, 4]);
  });
});

describe('a look', () => {
  it('shows requests that wait, and memory elsewhere on request', async () => {
    const manager = await openReal();
    const rejections = new Rejections(manager.id);
    onTestFinished(() => rejections.close());
    const looks = new Looks(manager, rejections, true);
    expect(looks.look().sections.waiting).toBe('<p>None.</p>');
    const grant = await manager.acquire({ cpu: 1, name: 'gateway' });
    const abort = new AbortController();
    const waiting = manager.acquire({
      cpu: manager.topology.cpus.size - 1,
      wait: true,
      signal: abort.signal,
    });
    waiting.catch(() => {});
    await expect.poll(() => looks.look(true).sections.waiting).toContain(`process ${process.pid}`);
    expect(looks.look().sections.grants).toMatch(/Elsewhere/);
    expect(new Looks(manager, rejections, false).look().sections.grants).not.toMatch(/Elsewhere/);
    abort.abort();
    await expect(waiting).rejects.toThrow();
    await grant.release();
  });
});
