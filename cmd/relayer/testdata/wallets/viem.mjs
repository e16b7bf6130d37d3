// An application on viem whose account is in the node.
import { createRequire } from 'node:module'
import path from 'node:path'

const require = createRequire(path.join(path.resolve(process.env.WATCHTOWER_TEST_VIEM), 'package.json'))
const { createPublicClient, createWalletClient, http } = require('viem')
const { foundry, tempoModerato } = require('viem/chains')

export function open(url, kind) {
  const chain = kind === 'tempo' ? tempoModerato : foundry
  const client = createPublicClient({ chain, transport: http(url) })
  const wallet = createWalletClient({ chain, transport: http(url) })
  return {
    accounts: () => wallet.requestAddresses(),
    send: ({ from, ...payment }) => wallet.sendTransaction({ account: from, ...payment }),
    async receipt(hash) {
      const receipt = await client.waitForTransactionReceipt({ hash })
      return { hash: receipt.transactionHash, ok: receipt.status === 'success' }
    },
    async calls({ from, ...payment }) {
      const { id } = await wallet.sendCalls({ account: from, calls: [payment] })
      const { status, receipts } = await wallet.waitForCallsStatus({ id })
      return { id, status, hash: receipts[0].transactionHash, ok: receipts[0].status === 'success' }
    },
    capabilities: (account) => wallet.getCapabilities({ account, chainId: chain.id }),
  }
}
