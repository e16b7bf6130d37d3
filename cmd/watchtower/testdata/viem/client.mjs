// What both scripts share: viem, and the service's API as a client sees it.
import { createRequire } from 'node:module'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'

// viem is not ours to carry: WATCHTOWER_TEST_VIEM names a folder whose
// node_modules holds it.
const folder = process.env.WATCHTOWER_TEST_VIEM
if (!folder) throw new Error('WATCHTOWER_TEST_VIEM is not set')
export const require = createRequire(path.join(path.resolve(folder), 'package.json'))

const { keccak256 } = require('viem')

const patienceMs = 60_000
const pollMs = 100

// The well-known accounts of "test test … junk" that anvil gives money.
export const devKeys = [
  '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80',
  '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d',
  '0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a',
]

// Two URLs, of the service and of a node, as arguments or in the environment.
export function urls() {
  const service = process.argv[2] ?? process.env.WATCHTOWER_URL
  const node = process.argv[3] ?? process.env.WATCHTOWER_NODE_URL
  if (!service || !node) throw new Error(`usage: node ${path.basename(process.argv[1])} SERVICE_URL NODE_URL`)
  return { service: service.replace(/\/$/, ''), node }
}

// deliver posts signed transactions, [{kind, raw}], waits until the service says
// that each was executed and the node has a receipt of its success, and prints a
// JSON line for each. It returns whether all went well.
export async function deliver({ service, chain, nodeClient, signed }) {
  const answer = await ask(`${service}/v1/transactions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ chainId: chain.id, transactions: signed.map((s) => s.raw) }),
  })
  const outcomes = await Promise.all(
    signed.map(async ({ kind, raw }, i) => {
      const { ok, txHash, ...rest } = answer.results[i]
      if (!ok || txHash !== keccak256(raw)) return { kind, hash: txHash, status: 'refused', answer: rest }
      return { kind, hash: txHash, ...(await executed(service, chain, nodeClient, txHash)) }
    }),
  )
  for (const outcome of outcomes) console.log(JSON.stringify(outcome))
  return outcomes.every((o) => o.status === 'executed' && o.receipt === 'success')
}

// executed polls the service until the transaction was executed, then asks the node.
async function executed(service, chain, nodeClient, hash) {
  const deadline = Date.now() + patienceMs
  for (;;) {
    const { status } = await ask(`${service}/v1/transactions/${hash}?chainId=${chain.id}`)
    if (status === 'executed') {
      const receipt = await nodeClient.getTransactionReceipt({ hash })
      return { status, receipt: receipt.status, block: Number(receipt.blockNumber) }
    }
    if (Date.now() > deadline) return { status, receipt: 'none' }
    await setTimeout(pollMs)
  }
}

export async function ask(url, init) {
  const response = await fetch(url, init)
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`)
  return response.json()
}
