// Other processes that use a state folder.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const PEER = fileURLToPath(new URL('peer.mjs', import.meta.url));

/**
 * Starts a process with a manager in this folder (unless `isOpen: false`) that has `grants` grants,
 * and with `owners` further owners of one grant each; `isWatch`: with a bare watch of the file that
 * commits change. Returns `call(what, given)`, which sends a call (see peer.mjs), `pid`, and
 * `close()`.
 */
export async function startPeer({
  stateDir,
  machine,
  isOpen = true,
  grants = 0,
  owners = 0,
  isListener = false,
  isWatch = false,
  options = {},
}) {
  const order = { stateDir, machine, isOpen, grants, owners, isListener, isWatch, options };
  const child = fork(PEER, [JSON.stringify(order)]);
  const ended = once(child, 'exit');
  async function answer() {
    const [first] = await Promise.race([once(child, 'message'), ended]);
    if (typeof first !== 'object' || first === null) throw new Error(`another process ended with ${first}`);
    if (first.failure !== undefined) throw new Error(first.failure);
    return first.answer;
  }
  async function call(what, given) {
    const answered = answer();
    child.send({ what, given });
    return answered;
  }
  const pid = await answer();
  return {
    pid,
    call,
    async close() {
      if (child.connected) await call('close');
      await ended;
    },
  };
}
