// Signs Ethereum transactions of type 2 with viem, two in a row, hands them to the
// service, and ends with status 0 when both were executed.
//
//   WATCHTOWER_TEST_VIEM=… node submit-ethereum.mjs SERVICE_URL NODE_URL
import { deliver, devKeys, require, urls } from './client.mjs'

const { createPublicClient, createWalletClient, http } = require('viem')
const { privateKeyToAccount } = require('viem/accounts')
const { foundry } = require('viem/chains')

const { service, node } = urls()
const transport = http(node)
const nodeClient = createPublicClient({ transport })
const chain = { ...foundry, id: await nodeClient.getChainId() }

const account = privateKeyToAccount(devKeys[2])
const wallet = createWalletClient({ account, chain, transport })
const first = await nodeClient.getTransactionCount({ address: account.address })

const sign = (nonce) =>
  wallet.signTransaction({
    type: 'eip1559',
    to: account.address,
    value: 1n,
    gas: 21_000n,
    maxFeePerGas: 40_000_000_000n,
    maxPriorityFeePerGas: 1_000_000_000n,
    nonce,
  })

const signed = [
  { kind: 'eip1559-next', raw: await sign(first + 1) },
  { kind: 'eip1559', raw: await sign(first) },
]
process.exitCode = (await deliver({ service, chain, nodeClient, signed })) ? 0 : 1
