// A server that listens on one address, for programs that serve the page.
export { addressText, end, type ListenAddress, listen, parseAddress } from './serving/listening.js';
