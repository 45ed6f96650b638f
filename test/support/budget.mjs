// How much of a long test a run does: a part by default, all of it in `npm run test:long`.
import { randomInt } from 'node:crypto';

/** Whether this run is `npm run test:long`. */
export const isLong = process.env.NUMALIGN_TEST_LONG === '1';

/** How often a test repeats what it does: `usual` times by default, `all` times in a long run. */
export const budget = ({ all, usual }) => (isLong ? all : usual);

/** The first and another one by default, for the processes that each takes; `all` in a long run. */
export const firstAndAnother = (all) => (isLong ? all : [all[0], all[1 + randomInt(all.length - 1)]]);
