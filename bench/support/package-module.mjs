// What a module costs that imports the package.
import '../../dist/index.js';
