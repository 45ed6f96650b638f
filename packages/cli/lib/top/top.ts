// numalign top: shows what happens on the grants' CPUs until it is told to end.
import { openManager } from 'numalign';
import { print } from '../terminal/output.js';
import { Screen } from '../terminal/screen.js';
import { abortAtEnd, pause } from '../terminal/signals.js';
import { stdoutPage } from '../terminal/terminal.js';
import { jsonLine } from '../terminal/text.js';
import { type Order, orderAfter, type Sort } from './figures.js';
import { Looks } from './looks.js';
import { type TopLook, topJson, topText } from './top-text.js';

export interface TopOptions {
  readonly stateDir: string;
  readonly seconds: number;
  readonly sort: Sort;
  readonly output: 'text' | 'json';
  readonly once: boolean;
}

/** Returns after one interval if `once`; else at `q`, or when a signal ends it. */
export async function showTop({ stateDir, seconds, sort, output, once }: TopOptions): Promise<void> {
  const { signal, abort, stop } = abortAtEnd();
  let order: Order = { by: sort, isReversed: false };
  let screen: Screen | undefined;
  const pageOf = (look: TopLook) =>
    topText(look, { seconds, order, hasKeys: screen?.hasKeys ?? false }, stdoutPage());
  let latest: TopLook | undefined;
  const show = (look: TopLook) => {
    latest = look;
    if (screen) screen.show(() => pageOf(look));
    else print(output === 'json' ? jsonLine(topJson(look, order)) : `${pageOf(look)}${once ? '' : '\n'}`);
  };
  const onKey = (key: string) => {
    if (key === 'q') return abort();
    const next = orderAfter(order, key);
    if (!next || !latest) return;
    order = next;
    show(latest);
  };
  let close = () => {};
  try {
    const view = await openManager({ stateDir, readOnly: true });
    close = () => view.close();
    const looks = new Looks(view);
    const first = looks.look();
    if (output === 'text' && !once && Screen.isThere()) {
      screen = new Screen(onKey);
      // The grants are there at once, before the first interval has passed.
      show(first);
    }
    while (await pause(seconds, signal)) {
      show(looks.look());
      if (once) break;
    }
  } finally {
    screen?.close();
    close();
    stop();
  }
}
