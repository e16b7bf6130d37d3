// A subscription whose payments share an NKG1 nonce key: two signed by the owner,
// one by an access key that the chain does not know yet. Hands them to the service
// and prints, step by step, what the service says of their group.
//
//   WATCHTOWER_TEST_VIEM=… node groups.mjs SERVICE_URL NODE_URL
import { randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { devKeys, require, urls } from './client.mjs'

const { createPublicClient, createWalletClient, http, keccak256, toHex } = require('viem')
const { tempoModerato } = require('viem/chains')
const { Account } = require('viem/tempo')

const chain = tempoModerato
const { service, node } = urls()
const transport = http(node)
const nodeClient = createPublicClient({ chain, transport })
const owner = Account.fromSecp256k1(devKeys[0])
const accessKey = Account.fromP256(toHex(randomBytes(32)), { access: owner })

// NKG1: kind 2, scope "PAYROLL", group of this run, memo "JAN-2026".
const number = randomBytes(4)
const nonceKey = `0x4e4b4731${'0102'}${'0011'}504159524f4c4c00${number.toString('hex')}4a414e2d3230323600000000`
const groupId = keccak256(nonceKey).slice(0, 34)
const now = Math.floor(Date.now() / 1000)
const payment = (account, nonce, more) =>
  createWalletClient({ account, chain, transport }).signTransaction({
    type: 'tempo', gas: 2_000_000n, maxFeePerGas: 40_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n,
    calls: [{ to: owner.address }], nonceKey: BigInt(nonceKey), nonce, ...more,
  })

async function ask(path, init) {
  const response = await fetch(service + path, init)
  return { status: response.status, ...(await response.json()) }
}
const group = () => ask(`/v1/senders/${owner.address}/groups/${groupId}?chainId=${chain.id}`)
const say = (step, what) => console.log(JSON.stringify({ step, ...what }))
async function until(step, fits) {
  for (const deadline = Date.now() + 60_000; ; await setTimeout(100)) {
    const shown = await group()
    if (fits(shown) || Date.now() > deadline) return say(step, shown)
  }
}

const raws = [
  await payment(owner, 0, { validAfter: now + 4 }),
  await payment(owner, 1, { validAfter: now + 5 }),
  await payment(accessKey, 2, { validAfter: now + 6 }),
]
say('accepted', await ask('/v1/transactions', {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ chainId: chain.id, transactions: raws }),
}))
say('group', await group())
say('claim', await ask(`/v1/transactions/${keccak256(raws[2])}`))

// The owner authorizes the key, by a transaction that the service does not see.
const keyAuthorization = await owner.signKeyAuthorization(accessKey, { chainId: BigInt(chain.id), expiry: now + 3600 })
const hash = await nodeClient.sendRawTransaction({
  serializedTransaction: await payment(owner, 0, { nonceKey: BigInt(toHex(randomBytes(16))), keyAuthorization }),
})
const receipt = await nodeClient.waitForTransactionReceipt({ hash, pollingInterval: 100 })
say('authorized', { status: receipt.status })
await until('joined', (g) => g.members?.length === 3)
await until('paid', (g) => g.members?.every((m) => m.status === 'executed') && g.cancelPlan.alreadyInvalidated)
