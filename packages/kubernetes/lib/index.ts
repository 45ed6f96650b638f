// What an agent embeds to serve containers.
export type { Message } from './protobuf/schema.js';
