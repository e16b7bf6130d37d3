// Compiled, never run: code of applications must compile with these types.
import { createPublicClient, createWalletClient } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { foundry } from 'viem/chains'
import { cancelMessage, Client, type Status, verifyWebhook, watchtower, WatchtowerError } from '../src/index.js'

const transport = watchtower('http://127.0.0.1:8420/rpc/31337', { apiKey: 'wt_key', batch: true })
const account = privateKeyToAccount('0x01')
const wallet = createWalletClient({ account, chain: foundry, transport })
createPublicClient({ chain: foundry, transport })

export async function everything(client: Client): Promise<void> {
  const id: string = await verifyWebhook(new Headers(), new Uint8Array(), { secrets: ['whsec_'] })
  void id
  const hash: `0x${string}` = await wallet.sendTransaction({ to: account.address, value: 1n })
  const [result] = await client.submit(foundry.id, ['0x02'], { wait: 'executed', timeout: 5_000 })
  if (result?.ok) {
    const status: Status = result.status
    void status
  } else if (result) {
    const code: string = result.problem.code
    void code
  }
  const found = await client.wait(hash, { for: 'final' })
  const block: number | undefined = found.receipt?.blockNumber
  void block
  for await (const t of client.list({ sender: account.address, status: ['queued', 'executed'] })) {
    for await (const e of client.events(t.txHash)) void e.name
  }
  for await (const e of client.follow({ after: 0, name: ['tx.mined'] })) void e.txHash?.length
  const expires = 1n
  const message = cancelMessage({ chainId: 1, deployment: 'here', sender: account.address, groupId: '0x00', expires })
  const { members } = await client.cancelGroup(account.address, '0x00', { signature: await account.signTypedData(message), expires })
  const canceled: boolean | undefined = members[0]?.canceled
  void canceled
  // @ts-expect-error: not a status
  client.page({ status: 'mined' })
  // @ts-expect-error: not a hash
  await client.get('hash')
  try {
    await client.health()
  } catch (error) {
    if (error instanceof WatchtowerError) void error.problem.retryable
  }
}
