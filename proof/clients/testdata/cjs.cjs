// Node, by require: a line of JSON comes in, and one goes out.
const { createInterface } = require('node:readline')
const lib = require('@tempo-watchtower/client')
const { Relay } = require('@tempo-watchtower/client/relay')
const { verifyWebhook } = require('@tempo-watchtower/client/webhook')

import('./runner.mjs').then(async ({ performer }) => {
  const perform = performer({ ...lib, Relay, verifyWebhook }, JSON.parse(process.env.SERVICES))
  for await (const line of createInterface({ input: process.stdin })) console.log(await perform(line))
})
