// What `npm run lint` holds @numalign/cli to.
import { packageRules } from '../../scripts/room-rules.mjs';

export default packageRules('cli');
