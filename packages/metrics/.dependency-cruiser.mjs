// What `npm run lint` holds @numalign/metrics to.
import { packageRules } from '../../scripts/room-rules.mjs';

export default packageRules('metrics');
