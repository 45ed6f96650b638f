// Expected errors: what an agent may be refused, by operation.

/** Refusals that change nothing. */
export const REFUSALS = new Set([
  'ERR_INSUFFICIENT_CPUS',
  'ERR_INSUFFICIENT_MEMORY',
  'ERR_INSUFFICIENT_DEVICES',
  'ERR_SHARED_POOL_FULL',
  'ERR_TOPOLOGY_AFFINITY',
  'ERR_GRANT_BUSY',
  // An agent in its own pid namespace that is stopped, or has no CPU, for longer than others wait.
  'ERR_MEMBER_UNMOVABLE',
]);
/** A grant is not there, or belongs to another. */
export const GONE = new Set(['ERR_UNKNOWN_GRANT', 'ERR_GRANT_RELEASED', 'ERR_OWNER_ALIVE']);
const ALWAYS = new Set(['ERR_LOCK_TIMEOUT']);
// The folder is removed in the middle of a transaction, or a stopped owner would have to write its
// file again.
const DISTURBANCES = new Set(['ERR_STATE_FOLDER', 'ERR_STATE_CORRUPT', 'ERR_SYSCALL']);
const FAILURES = new Set(['ERR_STATE_FOLDER', 'ERR_SYSCALL']);
// By operation, besides those above.
const OF_OPERATIONS = {
  // The grant may have been resized meanwhile.
  move: /^ERR_(NOT_MOVED|NOT_MOVABLE|GRANT_BUSY|INVALID_ARGUMENT)$/,
  adopt: /^ERR_ADOPTION$/,
  kubelet: /^ERR_OWNER_ALIVE$/,
  // A grant that moves cannot be handed on.
  transfer: /^ERR_(TRANSFER|UNKNOWN_TRANSFER|INVALID_TOKEN|GRANT_BUSY)/,
  outlive: /^ERR_GRANT_BUSY$/,
  // An agent that waits in vain for a successor, or comes too late, learns so.
  takeOver: /^ERR_(TRANSFER|UNKNOWN_TRANSFER|INVALID_TOKEN)/,
};
const MAY_TIME_OUT = ['wait', 'acquire', 'move', 'defragment'];
const MAY_BE_REFUSED = ['acquire', 'admit', 'persist', 'resize', 'wait'];

/** `setup`: the agent's; `subject`: the grant of the operation, if it has one. */
export function isExpected(operation, error, setup, subject) {
  const { code = '' } = error;
  if (ALWAYS.has(code) || (setup.isDisturbed && DISTURBANCES.has(code))) return true;
  if (setup.hasErrors && FAILURES.has(code)) return true;
  if (MAY_BE_REFUSED.includes(operation) && REFUSALS.has(code)) return true;
  if (OF_OPERATIONS[operation]?.test(code)) return true;
  if (MAY_TIME_OUT.includes(operation) && error.name === 'TimeoutError') return true;
  // Any agent may have released a persistent grant meanwhile, and an offered one ends with its
  // offerer. An agent's own grant never ends by itself.
  if (!GONE.has(code)) return false;
  return subject ? subject.isPersistent : ['releaseById', 'takeOver', 'move'].includes(operation);
}
