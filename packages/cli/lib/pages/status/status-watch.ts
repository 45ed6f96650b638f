// numalign status --watch: shows what happens on the grants' CPUs until a signal ends it. It only
// reads.
import { openManager } from 'numalign';
import { print } from '../../terminal/output.js';
import { Screen } from '../../terminal/screen.js';
import { abortAtEnd, pause } from '../../terminal/signals.js';
import { stdoutPage } from '../../terminal/terminal.js';
import { jsonLine } from '../../terminal/text.js';
import { type WatchLook, watchText } from './watch-text.js';

export interface WatchOptions {
  readonly stateDir: string;
  readonly seconds: number;
  readonly output: 'text' | 'json';
}

/** Returns when a signal ends the watch (SIGINT, SIGTERM, SIGHUP, SIGQUIT). */
export async function watchStatus({ stateDir, seconds, output }: WatchOptions): Promise<void> {
  const { signal, stop } = abortAtEnd();
  let screen: Screen | undefined;
  let close = () => {};
  try {
    const view = await openManager({ stateDir, readOnly: true });
    close = () => view.close();
    const look = async () => {
      const audits = await view.audits();
      return { stateDir, seconds, time: new Date(), status: view.status(), audits };
    };
    const first = await look();
    if (output === 'text' && Screen.isThere()) screen = new Screen();
    const show = (one: WatchLook) => {
      if (screen) screen.show(() => pageOf(one));
      else if (output === 'json') printJson(one);
      else print(`${pageOf(one)}\n`);
    };
    // Shows the grants at once, before the first interval has passed.
    screen?.show(() => pageOf(first));
    while (await pause(seconds, signal)) {
      show(await look());
    }
  } finally {
    screen?.close();
    close();
    stop();
  }
}

function pageOf(look: WatchLook): string {
  return watchText(look, stdoutPage());
}

// One document on one line.
function printJson({ stateDir, time, status, audits }: WatchLook): void {
  const grants = audits.flatMap((audit) => {
    const grant = status.grants.find(({ uid }) => uid === audit.grant);
    if (!grant) return [];
    const { uid, name, cpus, owner, flags } = grant;
    return [{ uid, name, cpus, owner, flags, audit }];
  });
  print(jsonLine({ time, stateDir, generation: status.exists ? status.generation : null, grants }));
}
