// CheckNode: what numalign-node can do on this node, and what to change. Only looks.
import type { Finding } from 'numalign/diagnostics';
import type { CheckOptions } from './check-options.js';
import { judge } from './judge.js';
import { readNodeFacts } from './read-facts.js';

/**
 * One finding per check, in the form of `numalign doctor`: `ok`, `warning`, `problem` (it does not
 * work here) or `unknown` (it cannot be seen from here), with what to change. Makes and changes
 * nothing.
 */
export async function checkNode(options: CheckOptions = {}): Promise<Finding[]> {
  return judge(await readNodeFacts(options));
}
