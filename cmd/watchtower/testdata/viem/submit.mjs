// Signs Tempo transactions with viem, one of each kind of signature and more,
// hands them to the service, and ends with status 0 when every one was executed.
//
//   WATCHTOWER_TEST_VIEM=… node submit.mjs SERVICE_URL NODE_URL
import { randomBytes } from 'node:crypto'
import { deliver, devKeys, require, urls } from './client.mjs'

const { createPublicClient, createWalletClient, encodeFunctionData, erc20Abi, http, parseUnits, toHex } = require('viem')
const { tempoModerato } = require('viem/chains')
const { Account } = require('viem/tempo')

const chain = tempoModerato // 42431, as anvil is told to be
const pathUSD = '0x20c0000000000000000000000000000000000000'
const { service, node } = urls()
const transport = http(node)
const nodeClient = createPublicClient({ chain, transport })

const rich = Account.fromSecp256k1(devKeys[0])
const sponsor = Account.fromSecp256k1(devKeys[1])
const p256 = Account.fromP256(toHex(randomBytes(32)))
const webAuthn = Account.fromHeadlessWebAuthn(toHex(randomBytes(32)), {
  rpId: 'localhost',
  origin: 'http://localhost',
})
const penniless = Account.fromP256(toHex(randomBytes(32)))

// What every transaction here has in common. A first use of an account or of a
// nonce key costs far more gas than a transfer does.
const fees = { gas: 2_000_000n, maxFeePerGas: 40_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n }

const transfer = (to, amount) => ({
  to: pathUSD,
  data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, amount] }),
})
const nothing = { to: rich.address }

const sign = (account, transaction) =>
  createWalletClient({ account, chain, transport }).signTransaction({ ...fees, type: 'tempo', ...transaction })

const randomKey = () => BigInt(toHex(randomBytes(16)))
const now = () => Math.floor(Date.now() / 1000)

// The new accounts need money for fees before theirs can be mined: that goes
// straight to the node.
async function fund(accounts) {
  const raw = await sign(rich, {
    calls: accounts.map((a) => transfer(a.address, parseUnits('10', 6))),
    nonceKey: randomKey(),
    nonce: 0,
  })
  const hash = await nodeClient.sendRawTransaction({ serializedTransaction: raw })
  const receipt = await nodeClient.waitForTransactionReceipt({ hash, pollingInterval: 100 })
  if (receipt.status !== 'success') throw new Error(`funding failed: ${hash}`)
}

await fund([p256, webAuthn])
const lane = randomKey()
const signed = [
  {
    kind: 'secp256k1',
    raw: await sign(rich, {
      calls: [transfer(sponsor.address, 1n)],
      nonce: await nodeClient.getTransactionCount({ address: rich.address }),
    }),
  },
  { kind: 'p256', raw: await sign(p256, { calls: [transfer(rich.address, 1n)], nonce: 0 }) },
  { kind: 'webauthn', raw: await sign(webAuthn, { calls: [transfer(rich.address, 1n)], nonce: 0 }) },
  {
    kind: 'sponsored',
    raw: await sign(penniless, { calls: [nothing], nonceKey: randomKey(), nonce: 0, feePayer: sponsor, feeToken: pathUSD }),
  },
  // The second nonce of a key before its first.
  { kind: '2d-nonce-1', raw: await sign(rich, { calls: [transfer(sponsor.address, 2n)], nonceKey: lane, nonce: 1 }) },
  { kind: '2d-nonce-0', raw: await sign(rich, { calls: [transfer(sponsor.address, 1n)], nonceKey: lane, nonce: 0 }) },
  {
    kind: 'scheduled',
    raw: await sign(rich, {
      calls: [transfer(sponsor.address, 3n)],
      nonceKey: randomKey(),
      nonce: 0,
      validAfter: now() + 3,
      validBefore: now() + 600,
    }),
  },
]
process.exitCode = (await deliver({ service, chain, nodeClient, signed })) ? 0 : 1
