// How much of a long test a run does: a part by default, all of it in `npm run test:long`.

/** Whether this run is `npm run test:long`. */
export const isLong = process.env.NUMALIGN_TEST_LONG === '1';

/** How often a test repeats what it does: `usual` times by default, `all` times in a long run. */
export const budget = (all, usual) => (isLong ? all : usual);
