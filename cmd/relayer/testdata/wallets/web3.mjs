// An application on web3.js whose account is in the node.
import { createRequire } from 'node:module'
import path from 'node:path'

const require = createRequire(path.join(path.resolve(process.env.WATCHTOWER_TEST_WALLETS), 'package.json'))
const { Web3 } = require('web3')

export function open(url) {
  const web3 = new Web3(url)
  return {
    accounts: () => web3.eth.requestAccounts(),
    send: (payment) =>
      new Promise((resolve, reject) => {
        const sending = web3.eth.sendTransaction(payment)
        sending.once('transactionHash', resolve)
        sending.catch(reject)
      }),
    async receipt(hash) {
      for (;;) {
        // web3.js throws while there is no receipt.
        const receipt = await web3.eth.getTransactionReceipt(hash).catch((error) => {
          if (error.constructor.name !== 'TransactionNotFound') throw error
        })
        if (receipt) return { hash: receipt.transactionHash, ok: receipt.status === 1n }
        await new Promise((resolve) => setTimeout(resolve, 200))
      }
    },
  }
}
