// Three subscriptions of twelve monthly payments, each under a nonce key of the
// explicit grouping format (NKG1), on a chain whose time this script moves:
//
//   - one is paid to its end, in order, each payment within a block of its validAfter;
//   - one is stopped half-way by its owner's signature over the group's id;
//   - one is invalidated on chain, nonce by nonce, by its owner.
//
// The node must not mine by itself. Prints a JSON line for each payment and ends with
// status 0 when all went as told.
//
//   WATCHTOWER_TEST_VIEM=… node subscription.mjs SERVICE_URL NODE_URL
import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import { ask, devKeys, require, urls } from './client.mjs'

const { createClient, createWalletClient, encodeFunctionData, erc20Abi, http, keccak256, numberToHex, slice } = require('viem')
const { privateKeyToAccount } = require('viem/accounts')
const { tempoModerato: chain } = require('viem/chains')
const { Account } = require('viem/tempo')

const { service, node } = urls()
const transport = http(node)
const rpc = (method, ...params) => createClient({ chain, transport }).request({ method, params })

const months = 12
const month = 30 * 24 * 60 * 60
const patienceMs = 20_000
const pathUSD = '0x20c0000000000000000000000000000000000000'
const payee = '0x00000000000000000000000000000000000077bb'

const owner = Account.fromSecp256k1(devKeys[0])
const wallet = createWalletClient({ account: owner, chain, transport })
const sign = (transaction) =>
  wallet.signTransaction({ gas: 2_000_000n, maxFeePerGas: 40_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n, type: 'tempo', ...transaction })

// NKG1, version 1, kind 2; scope and memo are text (flags 0x0011), the group is a number.
function nonceKey(group) {
  const text = (s, n) => Buffer.from(s).toString('hex').padEnd(2 * n, '0')
  return BigInt('0x4e4b4731' + '01' + '02' + '0011' + text('PAYROLL', 8) + group.toString(16).padStart(8, '0') + text('JAN-2026', 12))
}

const head = () => rpc('eth_getBlockByNumber', 'latest', false)

// mine makes a block with this time and returns its number.
async function mine(time) {
  await rpc('evm_setNextBlockTimestamp', time)
  await rpc('evm_mine')
  const block = await head()
  assert.equal(Number(block.timestamp), time)
  return Number(block.number)
}

const get = (hash) => ask(`${service}/v1/transactions/${hash}`)

async function until(what, look, want) {
  for (const deadline = Date.now() + patienceMs; ; await setTimeout(25)) {
    const got = await look()
    if (want(got)) return got
    if (Date.now() > deadline) throw new Error(`${what}: it is ${JSON.stringify(got)}`)
  }
}
const status = (hash, wanted) => until(wanted, () => get(hash), (t) => t.status === wanted)

// subscribe signs the payments and hands them in, all at once and out of order.
async function subscribe(group) {
  const key = nonceKey(group)
  const start = Number((await head()).timestamp) + 3600
  const payments = []
  for (let i = 0; i < months; i++) {
    const validAfter = start + i * month
    const raw = await sign({
      calls: [{ to: pathUSD, data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [payee, 1n] }) }],
      nonceKey: key, nonce: i, validAfter, validBefore: validAfter + 10 * 24 * 60 * 60,
    })
    payments.push({ i, raw, validAfter, hash: keccak256(raw) })
  }
  const { results } = await ask(`${service}/v1/transactions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ chainId: chain.id, transactions: payments.toReversed().map((p) => p.raw) }),
  })
  const groupId = slice(keccak256(numberToHex(key, { size: 32 })), 0, 16)
  for (const [i, result] of results.entries()) {
    assert.ok(result.ok, JSON.stringify(result))
    const p = payments[months - 1 - i]
    assert.deepEqual([result.txHash, result.groupId, result.nonce, result.eligibleAt], [p.hash, groupId, p.i, p.validAfter])
  }
  return { key, groupId, payments }
}

const sender = owner.address.toLowerCase()
const group = ({ groupId }) => ask(`${service}/v1/senders/${sender}/groups/${groupId}`)
const groups = (query = '') => ask(`${service}/v1/senders/${sender}/groups?chainId=${chain.id}${query}`)

// due makes the block in whose time a payment becomes valid, having checked that
// nothing of it was known to the node in the block before.
async function due(p) {
  await mine(p.validAfter - 1)
  assert.equal(await rpc('eth_getTransactionByHash', p.hash), null, 'sent before its time')
  return mine(p.validAfter)
}

async function pay(p) {
  const first = await due(p)
  await status(p.hash, 'broadcasting')
  await mine(p.validAfter + 1)
  const { receipt } = await status(p.hash, 'executed')
  assert.equal(receipt.status, 1)
  assert.ok(receipt.blockNumber - first <= 1, `${receipt.blockNumber - first} blocks after its validAfter`)
  return receipt.blockNumber
}

const tell = (kind, p, more) => console.log(JSON.stringify({ kind, nonce: p.i, hash: p.hash, ...more }))

async function paidToTheEnd() {
  const s = await subscribe(1)
  const listed = (await groups('&active=true')).find((g) => g.groupId === s.groupId)
  assert.deepEqual(
    [listed.startAt, listed.endAt, listed.nextPaymentAt],
    [s.payments[0].validAfter, s.payments[months - 1].validAfter, s.payments[0].validAfter],
  )
  let last = 0
  for (const p of s.payments) {
    const block = await pay(p)
    assert.ok(block > last, 'out of order')
    last = block
    tell('paid', p, { block })
  }
  const { members, display } = await until('all executed', () => group(s), (g) => g.members.every((m) => m.status === 'executed'))
  assert.deepEqual(members.map((m) => m.nonce).sort((a, b) => a - b), s.payments.map((p) => p.i))
  assert.deepEqual(display, { kind: '0x02', scope: 'PAYROLL', group: '1', memo: 'JAN-2026' })
}

async function stoppedHalfWay() {
  const s = await subscribe(2)
  const half = months / 2
  for (const p of s.payments.slice(0, half)) tell('paid', p, { block: await pay(p) })

  const cancel = async (key) => {
    const signature = await privateKeyToAccount(key).sign({ hash: keccak256(s.groupId) })
    return fetch(`${service}/v1/senders/${sender}/groups/${s.groupId}/cancel`, { method: 'POST', headers: { Authorization: `Signature ${signature}` } })
  }
  assert.equal((await cancel(devKeys[1])).status, 403, "a stranger's signature")
  const answer = await cancel(devKeys[0])
  assert.equal(answer.status, 200, await answer.text())
  assert.equal((await cancel(devKeys[0])).status, 200, 'again')

  for (const p of s.payments.slice(half)) {
    await status(p.hash, 'canceled_locally')
    await due(p)
    await mine(p.validAfter + 1)
    assert.equal(await rpc('eth_getTransactionByHash', p.hash), null, 'sent although it was canceled')
    const { events } = await ask(`${service}/v1/transactions/${p.hash}/events`)
    assert.deepEqual(events.map((e) => e.name.replace(/\.v\d+$/, '')), ['tx.accepted', 'tx.canceled_locally', 'tx.payload_erased'])
    tell('stopped', p)
  }
  for (const p of s.payments.slice(0, half)) assert.equal((await get(p.hash)).status, 'executed')
  // The chain would still take the rest, should somebody else have the bytes.
  const { cancelPlan } = await group(s)
  assert.deepEqual([cancelPlan.nonces, cancelPlan.alreadyInvalidated], [s.payments.map((p) => p.i), false])
}

async function invalidatedOnChain() {
  const s = await subscribe(3)
  const { cancelPlan } = await group(s)
  assert.deepEqual([BigInt(cancelPlan.nonceKey), cancelPlan.nonces, cancelPlan.alreadyInvalidated], [s.key, s.payments.map((p) => p.i), false])
  for (const p of s.payments) {
    const nothing = await sign({ calls: [{ to: payee }], nonceKey: s.key, nonce: p.i })
    await rpc('eth_sendRawTransaction', nothing)
    await mine(Number((await head()).timestamp) + 1)
    const receipt = await rpc('eth_getTransactionReceipt', keccak256(nothing))
    assert.equal(receipt?.status, '0x1', 'the nonce was not used up')
    await status(p.hash, 'stale_by_nonce')
    tell('stale', p)
  }
  const after = (await group(s)).cancelPlan
  assert.deepEqual([after.nonces, after.alreadyInvalidated], [s.payments.map((p) => p.i), true])
}

await paidToTheEnd()
await stoppedHalfWay()
await invalidatedOnChain()
