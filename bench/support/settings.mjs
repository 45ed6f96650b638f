// Settings of Node and of its libraries in the environment. Some cost time at each start of Node, such
// as certificates to read, which would make everything that is compared look alike.
const SETTINGS = /^(NODE_|UV_|OPENSSL_CONF$)/;

/** Takes them out of an environment, which the programs that this process starts then lack too. */
export function leaveSettingsOut(env = process.env) {
  for (const name of Object.keys(env)) if (SETTINGS.test(name)) delete env[name];
}
