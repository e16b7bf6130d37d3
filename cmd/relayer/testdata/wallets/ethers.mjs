// An application on ethers whose account is in the node.
import { createRequire } from 'node:module'
import path from 'node:path'

const require = createRequire(path.join(path.resolve(process.env.WATCHTOWER_TEST_WALLETS), 'package.json'))
const { JsonRpcProvider } = require('ethers')

export function open(url) {
  const provider = new JsonRpcProvider(url)
  return {
    async accounts() {
      return (await provider.listAccounts()).map((signer) => signer.address)
    },
    async send({ from, ...payment }) {
      const signer = await provider.getSigner(from)
      return (await signer.sendTransaction(payment)).hash
    },
    async receipt(hash) {
      // ethers stops polling for good when the answer to a poll is lost: without a timeout it waits for ever.
      const receipt = await provider.waitForTransaction(hash, 1, 15_000)
      return { hash: receipt.hash, ok: receipt.status === 1 }
    },
    close: () => provider.destroy(),
  }
}
