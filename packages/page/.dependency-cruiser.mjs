// What `npm run lint` holds @numalign/page to.
import { packageRules } from '../../scripts/room-rules.mjs';

export default packageRules('page');
