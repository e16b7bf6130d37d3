// Against a running service: WATCHTOWER_URL is its own, and it serves plain anvil
// (31337) among others. The package is taken as it was built.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPublicClient, createWalletClient, keccak256 } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { foundry } from 'viem/chains'
import { Client, watchtower, WatchtowerError } from '../dist/index.js'

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
  // It is no key of this service, which therefore says no.
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
    return globalThis.fetch(...args)
  }
  assert.equal((await new Client(url, { fetch }).wait(hash, { timeout: 30_000 })).status, 'executed')
  assert.ok(calls >= 3)
})

test('lists page by page', async () => {
  await client.wait((await client.page({ limit: 1 })).transactions[0].txHash)
  const all = []
  for await (const t of client.list({ chainId: foundry.id, sender: account.address, status: ['executed', 'queued'], limit: 2 })) all.push(t)
  assert.ok(all.length >= 4)
  assert.equal(new Set(all.map((t) => t.txHash)).size, all.length)
  assert.ok(all.every((t) => t.sender === account.address.toLowerCase()))
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
