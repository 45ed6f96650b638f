// Pictures of machines and what is granted on them, for commands that are asked for one.
export { holdingsOf, holdingsWith } from './holdings.js';
export { machinePicture } from './machine-picture.js';
