// What `npm run lint` holds lib/ to: the order of its rooms, and that accounts and decisions are pure.
import { cruiserOptions, roomRules } from './scripts/room-rules.mjs';

// Decisions and accounts are functions of what they are given: they import nothing that reads the
// machine, the clock or files, nor what starts something.
const PURE = '^lib/(account|decision)/';
// Of Node they use what looks at values only.
const NODE_OF_VALUES = '^(node:)?util$';
const MACHINE_READERS = 'affinity|discovery|hugepages|isolated-cpus|online-cpus|topology-refresh';
const READERS = `^lib/(base/native-(files|threads)|machine/(${MACHINE_READERS}))[.]ts$`;
// Reads what accounts and decisions are given.
const GIVER = '^lib/account/cpus-now[.]ts$';

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    ...roomRules('lib'),
    {
      name: 'pure-uses-values-of-node',
      severity: 'error',
      from: { path: PURE },
      to: { dependencyTypes: ['core'], pathNot: NODE_OF_VALUES },
    },
    {
      name: 'pure-reads-nothing',
      severity: 'error',
      from: { path: PURE, pathNot: GIVER },
      to: { path: READERS },
    },
    {
      name: 'decisions-are-given-cpus',
      severity: 'error',
      from: { path: '^lib/decision/' },
      to: { path: GIVER },
    },
  ],
  options: cruiserOptions('tsconfig.json'),
};
