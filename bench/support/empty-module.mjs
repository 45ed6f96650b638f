// The cost of an empty module: Node's own start.
import './cpu-time.mjs';
