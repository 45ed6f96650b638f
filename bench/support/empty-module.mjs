// What an empty module costs: Node's own start.
export {};
