import { describe, expect, it } from 'vitest';
import { Rounds } from '../../lib/base/rounds.js';

function withResolvers() {
  let resolve = () => {};
  const promise = new Promise<void>((found) => {
    resolve = found;
  });
  return { promise, resolve: () => resolve() };
}

describe('Rounds', () => {
  it('run once more if requested during one, however often', async () => {
    let [begun, atOnce, most] = [0, 0, 0];
    const gate = withResolvers();
    const rounds = new Rounds(async () => {
      begun++;
      most = Math.max(most, ++atOnce);
      await gate.promise;
      atOnce--;
    });
    const first = rounds.ask();
    await expect.poll(() => begun).toBe(1);
    const others = [rounds.ask(), rounds.ask(), rounds.ask()];
    gate.resolve();
    await Promise.all([first, ...others]);
    expect(begun).toBe(2);
    expect(most).toBe(1);
  });

  it('begin again when requested after the last', async () => {
    let begun = 0;
    const rounds = new Rounds(async () => {
      begun++;
    });
    await rounds.ask();
    await rounds.ask();
    expect(begun).toBe(2);
  });

  it('are over once they are ended: the current one is awaited, and none begins', async () => {
    let [begun, ended] = [0, 0];
    const gate = withResolvers();
    const rounds = new Rounds(async () => {
      begun++;
      await gate.promise;
      ended++;
    });
    void rounds.ask();
    await expect.poll(() => begun).toBe(1);
    void rounds.ask();
    const end = rounds.end();
    gate.resolve();
    await end;
    expect(ended).toBe(1);
    await rounds.ask();
    expect(begun).toBe(1);
  });
});
