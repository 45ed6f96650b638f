// What `npm run lint` holds @numalign/kubernetes to: the order of its rooms, and that it uses numalign
// as anybody does.
import { cruiserOptions, roomRules } from '../../scripts/room-rules.mjs';

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    ...roomRules('packages/kubernetes/lib'),
    // numalign as its users have it.
    {
      name: 'numalign-by-its-exports',
      severity: 'error',
      from: {},
      to: {
        path: '^(lib|native|dist)/',
        pathNot: '^dist/(index|entries/[^/]+|metrics/index)[.](c?js|d[.]ts)$',
      },
    },
  ],
  options: cruiserOptions('packages/kubernetes/tsconfig.json', 'node_modules|^dist|^lib'),
};
