// Runs against a test server, which fails in every way that a service, a proxy or a network can.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { Client, NoAnswerError, Relay, WatchtowerError } from '../dist/index.js'

const problem = (status, members) => [status, { 'Content-Type': 'application/problem+json' }, JSON.stringify({ type: 'about:blank', title: 't', status, code: 'c', ...members })]

// Answers requests with the given answers in turn, the last for ever. Each is [status, headers,
// body], or a function of the response that answers otherwise.
async function serve(t, ...answers) {
  const asked = []
  const server = createServer(async (request, response) => {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    asked.push({ method: request.method, url: request.url, headers: request.headers, body: Buffer.concat(chunks).toString() })
    const answer = answers[Math.min(asked.length, answers.length) - 1]
    if (typeof answer === 'function') return answer(response)
    response.writeHead(answer[0], { 'Content-Type': 'application/json', ...answer[1] }).end(answer[2])
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { asked, url: `http://127.0.0.1:${server.address().port}` }
}

const cut = (response) => response.socket.destroy()
const half = (response) => {
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '1000' }).write('{"id":')
  setImmediate(() => response.socket.destroy())
}
const page = [200, { 'Content-Type': 'text/html' }, '<html>sign in</html>']
const intent = [200, {}, JSON.stringify({ id: '0x01', status: 'waiting' })]
const request = { chainId: 1, key: 'payout:1', pool: 'hot', to: '0x00000000000000000000000000000000000077bb', value: 1n }

test('the same request is sent again until it is answered', async (t) => {
  const { asked, url } = await serve(t, cut, half, page, problem(503, { retryable: true }), [502, { 'Content-Type': 'text/html' }, 'bad gateway'], intent)
  assert.equal((await new Relay(url, { apiKey: 'wt_k' }).create(request)).id, '0x01')
  assert.equal(asked.length, 6)
  assert.equal(new Set(asked.map((a) => a.body)).size, 1)
  assert.deepEqual(JSON.parse(asked[0].body), { ...request, value: '1' })
  assert.ok(asked.every((a) => a.headers['x-api-key'] === 'wt_k'))
})

test('the idempotency key goes along each time', async (t) => {
  const { asked, url } = await serve(t, cut, problem(409, { code: 'idempotency-in-progress', retryable: true }), [200, {}, '{"results":[]}'])
  await new Client(url).submit(1, ['0x02'], { idempotencyKey: 'payout:17' })
  assert.deepEqual(asked.map((a) => a.headers['idempotency-key']), ['payout:17', 'payout:17', 'payout:17'])
})

test('without an answer the outcome is unknown', async (t) => {
  const { asked, url } = await serve(t, cut)
  await assert.rejects(new Relay(url, { tries: 2 }).create(request), (e) => e instanceof NoAnswerError && e.outcome === 'unknown' && e.tries === 2 && e.cause instanceof Error)
  assert.equal(asked.length, 2)
  const hanging = await serve(t, () => {})
  await assert.rejects(new Relay(hanging.url, { tries: 1, timeout: 50 }).create(request), NoAnswerError)
  // workerd's errors are plain ones.
  const fetch = async () => {
    throw new Error('Network connection lost.')
  }
  await assert.rejects(new Relay(url, { tries: 1, fetch }).create(request), NoAnswerError)
})

test('a refusal after a lost answer may hide a success', async (t) => {
  const first = await serve(t, problem(422, { code: 'budget-spent' }))
  await assert.rejects(new Relay(first.url).create(request), (e) => e instanceof WatchtowerError && e.outcome === 'refused')
  const second = await serve(t, cut, problem(422, { code: 'budget-spent' }))
  await assert.rejects(new Relay(second.url).create(request), (e) => e instanceof WatchtowerError && e.outcome === 'unknown' && e.problem.code === 'budget-spent')
  const failing = await serve(t, problem(500))
  await assert.rejects(new Relay(failing.url).create(request), (e) => e.problem.status === 500 && e.outcome === 'unknown')
  assert.equal(failing.asked.length, 1)
})

test('a long pause is left to the caller', async (t) => {
  const [status, headers, body] = problem(429, { retryable: true })
  const { asked, url } = await serve(t, [status, { ...headers, 'Retry-After': '3600' }, body])
  await assert.rejects(new Relay(url).create(request), (e) => e.retryAfterMs === 3_600_000)
  assert.equal(asked.length, 1)
})

test('no redirect is followed', async (t) => {
  const other = await serve(t, intent)
  const { url } = await serve(t, [307, { Location: other.url }, ''])
  await assert.rejects(new Relay(url, { apiKey: 'wt_k' }).create(request), (e) => e.problem.code === 'redirect' && e.outcome === 'refused')
  assert.equal(other.asked.length, 0)
})

test('the caller can stop it at any time', async (t) => {
  const { asked, url } = await serve(t, problem(503, { retryable: true }))
  const stop = new AbortController()
  const reason = new Error('enough')
  const creating = new Relay(url).create(request, { signal: stop.signal })
  setImmediate(() => stop.abort(reason))
  await assert.rejects(creating, (e) => e === reason)
  assert.ok(asked.length <= 1)
  await assert.rejects(new Relay(url).create(request, { signal: AbortSignal.abort(reason) }), (e) => e === reason)
})

test('only the items that were refused for a while are sent again', async (t) => {
  const taken = (id) => ({ ok: true, intent: { id } })
  const refused = (code, retryable) => ({ ok: false, problem: { status: 503, code, title: '', type: '', retryable } })
  const { asked, url } = await serve(t, [202, {}, JSON.stringify({ results: [taken('a'), refused('busy', true), refused('invalid-intent', false)] })], cut, [202, {}, JSON.stringify({ results: [taken('b')] })])
  const results = await new Relay(url).createAll(['1', '2', '3'].map((key) => ({ ...request, key })))
  assert.deepEqual(results.map((r) => r.intent?.id ?? r.problem.code), ['a', 'b', 'invalid-intent'])
  assert.deepEqual(asked.map((a) => JSON.parse(a.body).map((i) => i.key)), [['1', '2', '3'], ['2'], ['2']])
})

test('a wait outlives every trouble, and ends in time', async (t) => {
  const waiting = [202, {}, JSON.stringify({ status: 'submitted', waited: { for: 'mined', reached: false, because: 'stopping' } })]
  const done = [200, {}, JSON.stringify({ status: 'mined', waited: { for: 'mined', reached: true } })]
  const { asked, url } = await serve(t, cut, half, page, [502, {}, ''], waiting, cut, cut, cut, done)
  assert.equal((await new Relay(url, { tries: 1 }).wait('0x01', { for: 'mined' })).status, 'mined')
  assert.equal(asked.length, 9)
  assert.match(asked[0].url, /wait=mined&timeout=50000ms$/)
  const refusing = await serve(t, problem(404, { code: 'unknown-intent' }))
  await assert.rejects(new Relay(refusing.url).wait('0x01'), (e) => e.problem.code === 'unknown-intent')
  const dead = await serve(t, cut)
  await assert.rejects(new Relay(dead.url).wait('0x01', { timeout: 300 }), NoAnswerError)
})

test('a URL must be one', () => {
  assert.throws(() => new Relay('relay.example'), TypeError)
})
