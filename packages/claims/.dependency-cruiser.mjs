// What `npm run lint` holds @numalign/claims to.
import { packageRules } from '../../scripts/room-rules.mjs';

export default packageRules('claims');
