// What an empty module costs: Node's own start.
import './cpu-time.mjs';
