// Pictures of machines and what is granted on them.
export { holdingsOf, holdingsWith } from './picture/holdings.js';
export { machinePicture } from './picture/machine-picture.js';
