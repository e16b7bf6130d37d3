// The Go client has the same cases. The first is a vector of the specification's own
// libraries.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { verifyWebhook, WebhookError } from '../dist/index.js'

const file = process.env.WEBHOOK_CASES ?? new URL('../../go/testdata/webhooks.json', import.meta.url)
const cases = JSON.parse(await readFile(file, 'utf8'))
assert.ok(cases.length > 0)

const headers = (c) => new Headers({ 'webhook-id': c.id, 'webhook-timestamp': c.timestamp, 'webhook-signature': c.signature })

for (const c of cases) {
  test(c.name, async () => {
    for (const body of [c.body, new TextEncoder().encode(c.body)]) {
      const verified = verifyWebhook(headers(c), body, { secrets: c.secrets, now: c.now * 1000 })
      if (c.ok) assert.equal(await verified, c.id)
      else await assert.rejects(verified, WebhookError)
    }
  })
}

test('the time is now, if none is said', async () => {
  await assert.rejects(verifyWebhook(headers(cases[0]), cases[0].body, { secrets: cases[0].secrets }), WebhookError)
})

test('secrets are whsec_ and base64', async () => {
  for (const secrets of [[], [''], ['whsec_'], ['whsec_a'], [cases[0].secrets[0].slice(6)]])
    await assert.rejects(verifyWebhook(headers(cases[0]), cases[0].body, { secrets, now: cases[0].now * 1000 }), TypeError)
})
