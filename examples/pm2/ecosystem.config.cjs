// Each instance of an app has its own CPU, under PM2:
//   pm2 start examples/pm2/ecosystem.config.cjs
//   curl http://127.0.0.1:8080/                   says which CPU has answered
const { INSTANCES = '2', EXEC_MODE = 'cluster' } = process.env;

module.exports = {
  apps: [
    {
      name: 'api',
      script: 'server.mjs',
      cwd: __dirname,
      exec_mode: EXEC_MODE,
      instances: Number(INSTANCES),
      // A path, because a worker of the cluster mode starts in the folder of PM2's daemon.
      node_args: ['--import', require.resolve('numalign/preload')],
      env: {
        // PM2 numbers the instances. With its name, each gets the same CPU again after a restart.
        // With "wait" it starts once there is room; `pm2 reload` needs that on a full machine.
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the preload replaces it
        NUMALIGN_ACQUIRE: '{"cpu": 1, "name": "api-${NODE_APP_INSTANCE}", "wait": true}',
      },
    },
  ],
};
