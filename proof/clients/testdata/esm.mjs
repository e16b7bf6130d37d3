// Node, by import: a line of JSON comes in, and one goes out.
import { createInterface } from 'node:readline'
import * as lib from '@tempo-watchtower/client'
import { Relay } from '@tempo-watchtower/client/relay'
import { verifyWebhook } from '@tempo-watchtower/client/webhook'
import { performer } from './runner.mjs'

const perform = performer({ ...lib, Relay, verifyWebhook }, JSON.parse(process.env.SERVICES))
for await (const line of createInterface({ input: process.stdin })) console.log(await perform(line))
