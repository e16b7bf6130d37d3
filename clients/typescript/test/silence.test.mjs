// Runs against a test server, which is silent where Watchtower is not.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { once } from 'node:events'
import { mock, test } from 'node:test'
import { Client } from '../dist/index.js'

const event = (position) => `${JSON.stringify({ stream: 'tx-1-0x01', name: 'tx.mined.v1', position })}\n`
const mark = (position) => `${JSON.stringify({ position })}\n`
const turn = () => new Promise((resolve) => setImmediate(resolve))

// The test controls the clock.
test('a stream that is silent for a minute is taken up again', { timeout: 60_000 }, async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  const asked = []
  let first
  const server = createServer((request, response) => {
    asked.push(new URL(request.url, 'http://localhost').searchParams.get('after'))
    response.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
    response.write(event(10 * asked.length))
    if (asked.length === 1) first = response // and then it stays silent
    else response.end(`${JSON.stringify({ position: 21, end: true })}\n`)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })

  let connection
  const fetch = (url, init) => {
    connection = init.signal
    return globalThis.fetch(url, init)
  }
  const following = new Client(`http://127.0.0.1:${server.address().port}`, { fetch }).follow({ after: 5, until: 'head' })
  assert.equal((await following.next()).value.position, 10)
  mock.timers.tick(600_000) // a slow handler of an event does not count as silence
  let next = following.next()
  mock.timers.tick(59_000)
  first.write(mark(14) + event(15)) // a sign of life
  assert.equal((await next).value.position, 15)
  next = following.next()
  mock.timers.tick(59_000)
  assert.equal(connection.aborted, false)
  mock.timers.tick(1_000)
  assert.equal(connection.aborted, true)
  while (asked.length === 1) {
    mock.timers.tick(1_000) // the pause before it requests again
    await turn()
  }
  assert.equal((await next).value.position, 20)
  assert.equal((await following.next()).done, true)
  assert.deepEqual(asked, ['5', '15'])
})
