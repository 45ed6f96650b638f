// What a module costs that imports the package.
import './cpu-time.mjs';
import '../../dist/index.js';
