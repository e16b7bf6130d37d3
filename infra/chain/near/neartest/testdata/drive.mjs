// Drives a node as any user of near-api-js would. Arguments: the node's URL, and a JSON object of accounts and
// their secret keys. Prints one line of JSON for each step.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const require = createRequire(process.env.WATCHTOWER_TEST_NEAR + '/')
const { Account, JsonRpcProvider, KeyPair, KeyPairSigner, actions, yoctoToNear } =
  await import(pathToFileURL(require.resolve("near-api-js")).href)

const [url, accounts] = process.argv.slice(2)
const keys = JSON.parse(accounts)
const provider = new JsonRpcProvider({ url })
const of = (name) => new Account(name, provider, KeyPairSigner.fromSecretKey(keys[name]))
const alice = of('alice.near'), bob = of('bob.near')
const say = (step, what) =>
  console.log(JSON.stringify({ step, ...what }, (_, v) => (typeof v === 'bigint' ? v.toString() : v)))
const step = async (name, does) => {
  try {
    say(name, await does())
  } catch (e) {
    say(name, { error: e.name ?? e.constructor.name, message: String(e.message).slice(0, 300) })
  }
}
const ended = (outcome) => ({ status: Object.keys(outcome.status)[0], hash: outcome.transaction.hash, failures: outcome.receipts_outcome.filter((r) => r.outcome.status.Failure).length })

await step('network', async () => ({ network: await provider.getNetworkId() }))
await step('state', async () => ({ balance: yoctoToNear((await alice.getState()).balance.total) }))
await step('keys', async () => ({ keys: (await alice.getAccessKeyList()).keys.length }))
await step('block', async () => ({ height: (await provider.viewBlock({ finality: 'final' })).header.height > 0 }))
await step('transfer', async () => ended(await alice.transfer({ receiverId: 'bob.near', amount: 5n, token: undefined })))
await step('signAndSend', async () => ended(await alice.signAndSendTransaction({ receiverId: 'bob.near', actions: [actions.transfer(7n)] })))
await step('call', async () => ended(await alice.signAndSendTransaction({ receiverId: 'bob.near', actions: [actions.functionCall('works', {}, 30_000_000_000_000n, 0n)], throwOnFailure: false })))
await step('fails', async () => ended(await alice.signAndSendTransaction({ receiverId: 'bob.near', actions: [actions.functionCall('breaks', {}, 30_000_000_000_000n, 0n)], throwOnFailure: false })))
const added = KeyPair.fromRandom('ed25519')
await step('addKey', async () => ended(await alice.addFullAccessKey(added.getPublicKey())))
await step('deleteKey', async () => ended(await alice.deleteKey(added.getPublicKey())))
await step('createAccount', async () => ended(await alice.createSubAccount({ accountOrPrefix: 'new', publicKey: added.getPublicKey(), nearToTransfer: '1' })))
await step('meta', async () => {
  const { signedDelegate } = await bob.createSignedMetaTransaction({ receiverId: 'alice.near', actions: [actions.transfer(3n)] })
  return ended(await alice.relayMetaTransaction(signedDelegate))
})
await step('async', async () => {
  const signed = await alice.createSignedTransaction({ receiverId: 'bob.near', actions: [actions.transfer(1n)] })
  return { sent: true, hash: await provider.sendTransactionAsync(signed) }
})
await step('missingKey', async () => ({ nonce: (await provider.viewAccessKey({ accountId: 'alice.near', publicKey: KeyPair.fromRandom('ed25519').getPublicKey() })).nonce }))
await step('missingAccount', async () => ({ amount: (await provider.viewAccount({ accountId: 'nobody.near' })).amount }))
await step('unknownTransaction', async () => provider.sendJsonRpc('tx', { tx_hash: '11111111111111111111111111111111', sender_account_id: 'alice.near', wait_until: 'NONE' }))
await step('broke', async () => ended(await alice.transfer({ receiverId: 'bob.near', amount: 10n ** 30n })))
