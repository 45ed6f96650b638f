// A server that listens on one address, for programs that serve the page.
export { type Answer, type Answers, handlerOf, PLAIN_TEXT, type Served } from './serving/answers.js';
export { addressText, end, type ListenAddress, listen, parseAddress } from './serving/listening.js';
