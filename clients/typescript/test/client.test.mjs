// Runs against the service at WATCHTOWER_URL, which serves plain anvil (31337) among other
// chains. It uses the built package.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { concat, createPublicClient, createWalletClient, keccak256, pad, toHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { foundry, tempoModerato } from 'viem/chains'
import { Account } from 'viem/tempo'
import { cancelMessage, Client, WatchtowerError } from '../dist/index.js'
import { watchtower } from '../dist/viem.js'

const url = process.env.WATCHTOWER_URL
const account = privateKeyToAccount('0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6') // anvil's fourth
const client = new Client(`${url}/`)
const wallet = createWalletClient({ account, chain: foundry, transport: watchtower(`${url}/rpc/31337`) })
const chain = createPublicClient({ chain: foundry, transport: watchtower(url) })
const payment = { to: '0x00000000000000000000000000000000000077bb', value: 1n }
const next = () => chain.getTransactionCount({ address: account.address, blockTag: 'pending' })
const sign = (nonce) =>
  account.signTransaction({
    ...payment, chainId: foundry.id, nonce, type: 'eip1559', gas: 21_000n, maxFeePerGas: 40_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n,
  })

test('the transport sends, and the client tells what became of it', async () => {
  const hash = await wallet.sendTransaction(payment)
  const found = await client.wait(hash, { timeout: 30_000 })
  assert.deepEqual([found.txHash, found.status, found.waited.reached, found.receipt.status], [hash, 'executed', true, 1])
  assert.equal(found.sender, account.address.toLowerCase())
  const names = []
  for await (const e of client.events(hash)) names.push(e.name)
  assert.equal(names[0], 'tx.accepted.v1')
  assert.ok(names.includes('tx.mined.v1'), names.join())
})

test('the transport waits as long as the service does', async () => {
  const receipt = await wallet.sendTransactionSync({ ...payment, timeout: 20_000 })
  assert.equal(receipt.status, 'success')
})

test('the transport adds the chain to the URL of the service', async () => {
  assert.equal(await chain.getChainId(), foundry.id)
  assert.equal(watchtower(url)({ chain: foundry }).value.url, `${url}/rpc/31337`)
  assert.equal(watchtower(`${url}/`)({}).value.url, `${url}/rpc`)
  assert.equal(watchtower(`${url}/rpc/5/`)({ chain: foundry }).value.url, `${url}/rpc/5`)
})

test('the key goes along', async () => {
  let seen
  const fetch = async (input, init) => {
    seen = new Headers(init.headers)
    return globalThis.fetch(input, init)
  }
  // The service does not know this key, so it refuses the request.
  const page = new Client(url, { apiKey: 'wt_test', headers: { 'X-Request-Id': 'of-the-test' }, fetch }).page()
  await assert.rejects(page, (e) => e.problem.code === 'unauthorized' && e.problem.requestId === 'of-the-test')
  assert.deepEqual([seen.get('X-API-Key'), seen.get('X-Request-Id')], ['wt_test', 'of-the-test'])
  seen = undefined
  const keyed = createPublicClient({ transport: watchtower(`${url}/rpc/31337`, { apiKey: 'wt_test', fetchFn: fetch, retryCount: 0 }) })
  await assert.rejects(keyed.getChainId(), { status: 401 })
  assert.equal(seen.get('X-API-Key'), 'wt_test')
})

test('submits, item by item', async () => {
  const raw = await sign(await next())
  const [looked] = await client.validate(foundry.id, [raw])
  assert.deepEqual([looked.ok, looked.validateOnly, looked.alreadyKnown], [true, true, false])
  const [taken, refused, again] = await client.submit(foundry.id, [raw, '0x02c0', raw], { wait: 'executed', timeout: 30_000 })
  assert.deepEqual([taken.ok, taken.txHash, taken.alreadyKnown, taken.waited.reached], [true, keccak256(raw), false, true])
  assert.deepEqual([refused.ok, refused.problem.code], [false, 'invalid-transaction'])
  assert.deepEqual([again.ok, again.alreadyKnown], [true, true])
})

test('waits in vain, and no longer than it was told', async () => {
  const nonce = (await next()) + 1
  const [taken] = await client.submit(foundry.id, [await sign(nonce)])
  const began = Date.now()
  const waiting = await client.wait(taken.txHash, { timeout: 1_200 })
  assert.deepEqual([waiting.waited.reached, waiting.waited.because], [false, 'timeout'])
  assert.ok(Date.now() - began < 5_000)
  const aborted = client.wait(taken.txHash, { signal: AbortSignal.timeout(300) })
  await assert.rejects(aborted, { name: 'TimeoutError' })
  await client.submit(foundry.id, [await sign(nonce - 1)])
  assert.equal((await client.wait(taken.txHash, { for: 'final', timeout: 40_000 })).finalized, true)
})

test('waits trouble out', async () => {
  const hash = await wallet.sendTransaction(payment)
  let calls = 0
  const fetch = async (...args) => {
    calls++
    if (calls === 1) throw new TypeError('fetch failed')
    if (calls === 2) return new Response('bad gateway', { status: 502 })
    if (calls === 3) throw new Error('Network connection lost.') // as workerd says it
    return globalThis.fetch(...args)
  }
  assert.equal((await new Client(url, { fetch }).wait(hash, { timeout: 30_000 })).status, 'executed')
  assert.ok(calls >= 4)
})

test('leaves the service alone for as long as it asks', async () => {
  const hash = await wallet.sendTransaction(payment)
  const busy = { type: 'about:blank', title: 'not now', status: 503, code: 'unavailable', retryable: true }
  const headers = { 'Content-Type': 'application/problem+json', 'Retry-After': '3' }
  const timed = () => {
    const asked = []
    const fetch = async (...args) => {
      asked.push(performance.now())
      return asked.length === 1 ? new Response(JSON.stringify(busy), { status: 503, headers }) : globalThis.fetch(...args)
    }
    return { asked, client: new Client(url, { fetch }) }
  }
  const waiting = timed()
  await waiting.client.wait(hash, { timeout: 30_000 })
  const following = timed()
  for await (const e of following.client.follow({ after: 0 })) if (e.position > 0) break
  for (const { asked } of [waiting, following]) assert.ok(asked[1] - asked[0] >= 2_990, `${asked}`)
  const once = new Client(url, { fetch: async () => new Response(JSON.stringify(busy), { status: 503, headers }), tries: 1 })
  await assert.rejects(once.get(hash), (e) => e.problem.code === 'unavailable' && e.retryAfterMs === 3_000 && e.outcome === 'unknown')
})

test('follows events, and goes on where it broke off', async () => {
  const stop = new AbortController()
  let streams = 0
  let hash
  const fetch = async (...args) => {
    const response = await globalThis.fetch(...args)
    if (++streams > 1) return response
    // The first stream breaks off in the middle of its second event.
    let events = 0
    const cut = new TransformStream({
      transform(chunk, controller) {
        const text = new TextDecoder().decode(chunk)
        if (text.includes('"stream"') && ++events === 1) controller.enqueue(chunk)
        else if (events > 0) controller.error(new TypeError('terminated'))
        else controller.enqueue(chunk)
      },
    })
    return new Response(response.body.pipeThrough(cut), response)
  }
  const seen = []
  const following = (async () => {
    const options = { after: 0, chainId: foundry.id, sender: account.address, name: ['tx.accepted', 'tx.mined'], signal: stop.signal }
    for await (const e of new Client(url, { fetch }).follow(options)) {
      seen.push(e)
      if (e.txHash === hash && e.name === 'tx.mined.v1') stop.abort()
    }
  })()
  hash = await wallet.sendTransaction(payment)
  await following
  const positions = seen.map((e) => e.position)
  assert.deepEqual(positions, [...new Set(positions)].sort((a, b) => a - b))
  assert.ok(streams > 1, `${streams} streams`)
  const all = []
  for await (const t of client.list({ chainId: foundry.id, sender: account.address })) all.push(t.txHash)
  assert.deepEqual(new Set(seen.filter((e) => e.name === 'tx.accepted.v1').map((e) => e.txHash)), new Set(all))
})

test('lists page by page', async () => {
  await client.wait((await client.page({ limit: 1 })).transactions[0].txHash)
  const all = []
  for await (const t of client.list({ chainId: foundry.id, sender: account.address, status: ['executed', 'queued'], limit: 2 })) all.push(t)
  assert.ok(all.length >= 4)
  assert.equal(new Set(all.map((t) => t.txHash)).size, all.length)
  assert.ok(all.every((t) => t.sender === account.address.toLowerCase()))
})

// Members of two groups wait for next year. Their owner cancels the groups with the two
// kinds of authorization.
test('stops groups', async () => {
  const key = generatePrivateKey()
  const owner = Account.fromSecp256k1(key)
  const signer = createWalletClient({ account: owner, chain: tempoModerato, transport: watchtower(`${url}/rpc/42431`) })
  const nextYear = Math.floor(Date.now() / 1000) + 365 * 24 * 3600
  const group = async (number) => {
    // An explicit grouping key: magic, version, kind, flags, scope, group, memo.
    const nonceKey = BigInt(concat(['0x4e4b4731', '0x01', '0x02', '0x0000', pad('0x01', { size: 8 }), toHex(number, { size: 4 }), pad('0x00', { size: 12 })]))
    const fees = { gas: 2_000_000n, maxFeePerGas: 40_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n }
    const raw = (nonce) => signer.signTransaction({ ...fees, type: 'tempo', calls: [{ to: owner.address }], nonceKey, nonce, validAfter: nextYear })
    const taken = await client.submit(42431, [await raw(0), await raw(1)])
    assert.deepEqual(taken.map((t) => t.ok), [true, true])
    return taken
  }
  const canceled = async ([first], answer) => {
    assert.deepEqual([answer.groupId, answer.canceled, answer.members.length], [first.groupId, 2, 2])
    assert.equal((await client.get(first.txHash)).status, 'canceled_locally')
  }

  const one = await group(1)
  const { deployment } = await client.health()
  const expires = BigInt(Math.floor(Date.now() / 1000) + 600)
  const message = cancelMessage({ chainId: 42431, deployment, sender: owner.address, groupId: one[0].groupId, expires })
  const typed = await privateKeyToAccount(key).signTypedData(message)
  await canceled(one, await client.cancelGroup(owner.address, one[0].groupId, { signature: typed, expires }))

  const two = await group(2)
  const wrong = client.cancelGroup(owner.address, two[0].groupId, { signature: typed })
  await assert.rejects(wrong, (e) => e instanceof WatchtowerError && e.problem.status >= 400 && e.problem.status < 500)
  const signature = await privateKeyToAccount(key).sign({ hash: keccak256(two[0].groupId) })
  await canceled(two, await client.cancelGroup(owner.address, two[0].groupId, { signature }, { chainId: 42431 }))
})

test('problems are errors', async () => {
  const unknown = client.get(`0x${'11'.repeat(32)}`)
  await assert.rejects(unknown, (e) => e instanceof WatchtowerError && e.problem.code === 'unknown-transaction' && e.problem.status === 404)
  await assert.rejects(client.page({ limit: 0 }), (e) => e.problem.code === 'invalid-limit')
  await assert.rejects(new Client(`${url}/nothing`).health(), (e) => e.problem.code === 'not-found')
})

test('health', async () => {
  const health = await client.health()
  assert.ok(health.version && health.startedAt)
})
