// Compiled, never run: code of applications must compile with these types.
import { createPublicClient, createWalletClient } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { foundry } from 'viem/chains'
import { cancelMessage, Client, type Intent, type IntentRequest, NoAnswerError, Relay, type Status, verifyWebhook, WatchtowerError } from '../src/index.js'
import { Relay as SmallRelay } from '../src/relay.js'
import { watchtower } from '../src/viem.js'
import { verifyWebhook as verify } from '../src/webhook.js'

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

export async function relayed(relay: Relay): Promise<void> {
  void (new SmallRelay('http://127.0.0.1:8430') satisfies Pick<Relay, 'create' | 'wait'>)
  void verify
  const request: IntentRequest = { chainId: foundry.id, key: 'payout:1', pool: 'hot', to: account.address, value: 10n ** 18n, gas: { maxFeePerGas: 1n } }
  const intent: Intent = await relay.create(request, { wait: 'mined', timeout: 5_000 })
  // @ts-expect-error a call has no gas
  await relay.create({ ...request, calls: [{ gas: 1 }] })
  // @ts-expect-error it has no such status
  await relay.wait(intent.id, { for: 'executed' })
  const nonce: number | bigint | undefined = (await relay.wait(intent.id, { for: 'completed' })).place?.nonce
  void nonce
  for (const result of await relay.createAll([request])) {
    const text: string = result.ok ? result.intent.id : result.problem.code
    void text
  }
  for await (const one of relay.list({ status: ['waiting', 'mined'], chainId: 'near:mainnet' })) void one.outcome?.reason
  for await (const event of relay.follow({ after: 0, until: 'head' })) void (event.position + event.sequence)
  for await (const event of relay.events(intent.id)) void event.type
  const found: Intent | undefined = await relay.find('payout:1', { chainId: 1, pool: 'hot' })
  await relay.cancel(found?.id ?? intent.id, { reason: 'why' })
  await relay.speedUp(intent.id, 5_000_000_000n)
  for await (const hook of relay.webhooks.list()) for await (const dead of relay.webhooks.dead(hook.id)) await relay.webhooks.redeliver(hook.id, [dead])
  try {
    await relay.get(intent.id)
  } catch (error) {
    if (error instanceof NoAnswerError) void error.tries
    if (error instanceof WatchtowerError && error.outcome === 'refused') void error.problem.code
  }
}
