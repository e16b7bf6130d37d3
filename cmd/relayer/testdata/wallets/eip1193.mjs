// A provider as EIP-1193 describes it, in ten lines, and an application on it.
export const provider = (url) => ({
  async request({ method, params = [] }) {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const response = await fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })
    const { result, error } = await response.json()
    if (error) throw Object.assign(new Error(error.message), error)
    return result
  },
})

const hexadecimal = (members) =>
  Object.fromEntries(Object.entries(members).map(([name, value]) => [name, typeof value === 'bigint' ? `0x${value.toString(16)}` : value]))

export function open(url) {
  const wallet = provider(url)
  return {
    accounts: () => wallet.request({ method: 'eth_requestAccounts' }),
    send: (payment) => wallet.request({ method: 'eth_sendTransaction', params: [hexadecimal(payment)] }),
    async receipt(hash) {
      for (;;) {
        const receipt = await wallet.request({ method: 'eth_getTransactionReceipt', params: [hash] })
        if (receipt) return { hash: receipt.transactionHash, ok: receipt.status === '0x1' }
        await new Promise((resolve) => setTimeout(resolve, 200))
      }
    },
  }
}
