// What `npm run lint` holds @numalign/kubernetes to.
import { packageRules } from '../../scripts/room-rules.mjs';

export default packageRules('kubernetes');
