// Cancels groups with viem: each kind of key signs typed data (EIP-712) and, for
// another group, the group's id. Prints a JSON line for each attempt.
//
//   WATCHTOWER_TEST_VIEM=… node cancel.mjs SERVICE_URL NODE_URL
import { randomBytes } from 'node:crypto'
import { ask, devKeys, require, urls } from './client.mjs'

const { createWalletClient, hashTypedData, http, keccak256, toHex } = require('viem')
const { tempoModerato } = require('viem/chains')
const { Account } = require('viem/tempo')

const chain = tempoModerato // 42431, as anvil is told to be
const { service, node } = urls()
const transport = http(node)
const { deployment } = await ask(`${service}/health`)

const accounts = {
  secp256k1: Account.fromSecp256k1(devKeys[2]),
  p256: Account.fromP256(toHex(randomBytes(32))),
  webauthn: Account.fromHeadlessWebAuthn(toHex(randomBytes(32)), { rpId: 'localhost', origin: 'http://localhost' }),
}

// A nonce key of the explicit grouping format, and the group that it makes.
let groups = 0
function group() {
  const nonceKey = `0x4e4b473101020000${toHex(randomBytes(8)).slice(2)}${(++groups).toString(16).padStart(8, '0')}${'00'.repeat(12)}`
  return { nonceKey, groupId: keccak256(nonceKey).slice(0, 34) }
}

// submit hands three payments to the service that are due in an hour.
async function submit(account, nonceKey) {
  const client = createWalletClient({ account, chain, transport })
  const transactions = []
  for (let nonce = 0; nonce < 3; nonce++) {
    transactions.push(
      await client.signTransaction({
        type: 'tempo', gas: 2_000_000n, maxFeePerGas: 40_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n,
        calls: [{ to: accounts.secp256k1.address }], nonceKey: BigInt(nonceKey), nonce,
        validAfter: Math.floor(Date.now() / 1000) + 3600,
      }),
    )
  }
  const { results } = await ask(`${service}/v1/transactions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ chainId: chain.id, transactions }),
  })
  if (!results.every((r) => r.ok)) throw new Error(JSON.stringify(results))
}

const typed = (account, groupId, change = {}) => ({
  domain: { name: 'Watchtower', version: '1', chainId: change.chainId ?? chain.id },
  types: {
    CancelGroup: [
      { name: 'deployment', type: 'string' },
      { name: 'sender', type: 'address' },
      { name: 'groupId', type: 'bytes16' },
      { name: 'expires', type: 'uint64' },
    ],
  },
  primaryType: 'CancelGroup',
  message: {
    deployment: change.deployment ?? deployment,
    sender: account.address,
    groupId,
    expires: change.expires ?? BigInt(Math.floor(Date.now() / 1000) + 600),
  },
})

async function cancel(kind, account, groupId, init) {
  const response = await fetch(`${service}/v1/senders/${account.address}/groups/${groupId}/cancel`, { method: 'POST', ...init })
  const { canceled, code } = await response.json()
  console.log(JSON.stringify({ kind, status: response.status, canceled, code }))
}

async function cancelTyped(kind, account, groupId, change) {
  const data = typed(account, groupId, change)
  const body = { expires: Number(data.message.expires), signature: await account.signTypedData(data) }
  await cancel(kind, account, groupId, {
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
}

for (const [kind, account] of Object.entries(accounts)) {
  const first = group()
  await submit(account, first.nonceKey)
  const past = BigInt(Math.floor(Date.now() / 1000) - 1)
  await cancelTyped(`${kind} expired`, account, first.groupId, { expires: past })
  await cancelTyped(`${kind} other chain`, account, first.groupId, { chainId: 4217 })
  await cancelTyped(`${kind} other deployment`, account, first.groupId, { deployment: 'elsewhere' })
  await cancelTyped(`${kind} typed`, account, first.groupId)

  const second = group()
  await submit(account, second.nonceKey)
  const signature = await account.sign({ hash: keccak256(second.groupId) })
  await cancel(`${kind} other group`, account, first.groupId, { headers: { Authorization: `Signature ${signature}` } })
  await cancel(`${kind} id`, account, second.groupId, { headers: { Authorization: `Signature ${signature}` } })
}
