// Does with viem what applications do with it, where nothing but the transport's URL
// is the service's: sends, waits, reads, batches. Prints a JSON line for each thing
// done, and ends with status 0 when all went as it does with a node.
//
//   WATCHTOWER_TEST_VIEM=… node rpc.mjs RPC_URL tempo|ethereum
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { devKeys, require } from './client.mjs'

const viem = require('viem')
const { privateKeyToAccount } = require('viem/accounts')
const { foundry, tempoModerato } = require('viem/chains')
const { createPublicClient, createWalletClient, http, parseAbi } = viem

const [, , url, kind] = process.argv
const tempo = kind === 'tempo'
const chain = tempo ? tempoModerato : foundry
const transport = http(url)
const account = privateKeyToAccount(devKeys[tempo ? 0 : 1])
const client = createPublicClient({ chain, transport, pollingInterval: 200 })
const wallet = createWalletClient({ account, chain, transport })

const pathUSD = '0x20c0000000000000000000000000000000000000'
const token = parseAbi(['function balanceOf(address) view returns (uint256)', 'function transfer(address, uint256) returns (bool)'])
const to = '0x00000000000000000000000000000000000077aa'

// One unit of what the chain moves. On Tempo no transaction may carry value.
const payment = () =>
  tempo
    ? { to: pathUSD, data: viem.encodeFunctionData({ abi: token, functionName: 'transfer', args: [to, 1n] }) }
    : { to, value: 1n }
const fees = { gas: tempo ? 2_000_000n : 21_000n, maxFeePerGas: 40_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n }
const sign = (more) => wallet.signTransaction({ ...payment(), ...fees, type: 'eip1559', ...more })
const next = () => client.getTransactionCount({ address: account.address, blockTag: 'pending' })
const isSuccess = (receipt) => assert.equal(receipt.status, 'success')

async function refusal(promise) {
  try {
    await promise
  } catch (error) {
    return error.walk ? error.walk((e) => typeof e.code === 'number') ?? error : error
  }
  assert.fail('it was not refused')
}

const steps = {
  async 'the chain'() {
    assert.equal(await client.getChainId(), chain.id)
    assert.equal(await client.request({ method: 'net_version' }), String(chain.id))
    assert.match(await client.request({ method: 'web3_clientVersion' }), /^Watchtower\//)
    assert.deepEqual(await wallet.getAddresses(), [account.address])
  },
  async sendTransaction() {
    const hash = await wallet.sendTransaction(payment())
    isSuccess(await client.waitForTransactionReceipt({ hash }))
    const mined = await client.getTransaction({ hash })
    assert.equal(mined.from.toLowerCase(), account.address.toLowerCase())
    assert.ok(mined.blockNumber > 0n)
  },
  async 'ahead of the chain'() {
    const first = await next()
    const hashes = []
    for (let i = 0; i < 3; i++) hashes.push(await wallet.sendTransaction(payment()))
    const all = await Promise.all(hashes.map((hash) => client.waitForTransactionReceipt({ hash })))
    all.forEach(isSuccess)
    assert.equal(await next(), first + 3)
  },
  async 'the same again'() {
    const raw = await sign({ nonce: await next() })
    const hash = await wallet.sendRawTransaction({ serializedTransaction: raw })
    assert.equal(hash, viem.keccak256(raw))
    assert.equal(await wallet.sendRawTransaction({ serializedTransaction: raw }), hash)
    isSuccess(await client.waitForTransactionReceipt({ hash }))
  },
  async sendTransactionSync() {
    isSuccess(await wallet.sendTransactionSync({ ...payment(), timeout: 9_000 }))
  },
  async sendRawTransactionSync() {
    const serializedTransaction = await sign({ nonce: await next() })
    const receipt = await wallet.sendRawTransactionSync({ serializedTransaction })
    isSuccess(receipt)
    assert.equal(receipt.transactionHash, viem.keccak256(serializedTransaction))
  },
  // A gap before the nonce: it is kept, looks pending, and is mined when the gap closes.
  async 'a nonce too high'() {
    const nonce = await next()
    const later = await sign({ nonce: nonce + 1 })
    const hash = viem.keccak256(later)
    const error = await refusal(wallet.sendRawTransactionSync({ serializedTransaction: later, timeout: 300 }))
    assert.equal(error.code ?? error.cause?.code, 4)
    assert.equal(error.data ?? error.cause?.data, hash)
    const held = await client.getTransaction({ hash })
    assert.deepEqual([held.blockNumber, held.nonce, held.hash], [null, nonce + 1, hash])
    assert.equal(held.from.toLowerCase(), account.address.toLowerCase())
    assert.equal(await next(), nonce)
    const before = await wallet.sendRawTransaction({ serializedTransaction: await sign({ nonce }) })
    assert.equal(await next(), nonce + 2)
    for (const h of [before, hash]) isSuccess(await client.waitForTransactionReceipt({ hash: h }))
  },
  async refusals() {
    const own = await refusal(client.request({ method: 'eth_sign', params: [account.address, '0x00'] }))
    assert.equal(own.code, -32601)
    const bytes = await refusal(wallet.sendRawTransaction({ serializedTransaction: '0x02c0' }))
    assert.equal(bytes.code, -32000)
    const elsewhere = await account.signTransaction({ ...payment(), ...fees, type: 'eip1559', nonce: 0, chainId: 1 })
    const wrong = await refusal(wallet.sendRawTransaction({ serializedTransaction: elsewhere }))
    assert.match(wrong.details, /^invalid chain id for signer/)
  },
  async 'a contract'() {
    if (tempo) {
      const held = await client.readContract({ address: pathUSD, abi: token, functionName: 'balanceOf', args: [to] })
      assert.ok(held > 0n)
      const hash = await wallet.writeContract({ address: pathUSD, abi: token, functionName: 'transfer', args: [to, 1n] })
      isSuccess(await client.waitForTransactionReceipt({ hash }))
      return
    }
    // answer() returns 42; everything else reverts with Error("no").
    const abi = parseAbi(['function answer() view returns (uint256)', 'function other() view returns (uint256)'])
    const hash = await wallet.deployContract({ abi, bytecode: contract() })
    const { contractAddress: address } = await client.waitForTransactionReceipt({ hash })
    assert.equal(await client.readContract({ address, abi, functionName: 'answer' }), 42n)
    const error = await client.readContract({ address, abi, functionName: 'other' }).catch((e) => e)
    assert.match(error.shortMessage, /reverted with the following reason:\nno/)
  },
  // Tempo's own type, from a key of its own kind: sent now, and kept until its window opens.
  async 'the type tempo'() {
    if (!tempo) return
    const { Account } = require('viem/tempo')
    const p256 = Account.fromP256(viem.toHex(randomBytes(32)))
    const rich = createWalletClient({ account: Account.fromSecp256k1(devKeys[2]), chain, transport })
    const fund = { to: pathUSD, data: viem.encodeFunctionData({ abi: token, functionName: 'transfer', args: [p256.address, 10_000_000n] }) }
    const now = Math.floor(Date.now() / 1000)
    const key = () => BigInt(viem.toHex(randomBytes(16)))
    isSuccess(await rich.sendTransactionSync({ ...fees, calls: [fund], nonceKey: key(), nonce: 0, timeout: 9_000 }))
    for (const owner of [rich, createWalletClient({ account: p256, chain, transport })]) {
      const serializedTransaction = await owner.signTransaction({
        ...fees, type: 'tempo', calls: [payment()], nonceKey: key(), nonce: 0, validAfter: now + 4, validBefore: now + 600,
      })
      const hash = await owner.sendRawTransaction({ serializedTransaction })
      const held = await client.getTransaction({ hash })
      assert.deepEqual([held.hash, held.type, held.blockNumber, held.validAfter], [hash, 'tempo', null, now + 4])
      assert.deepEqual([held.calls.length, held.calls[0].to], [1, pathUSD])
      isSuccess(await client.waitForTransactionReceipt({ hash }))
    }
  },
  async 'a batch'() {
    const batching = createPublicClient({ chain, transport: http(url, { batch: true }) })
    const [id, block, balance, count, fee] = await Promise.all([
      batching.getChainId(),
      batching.getBlock(),
      batching.getBalance({ address: to }),
      batching.getTransactionCount({ address: account.address }),
      batching.estimateMaxPriorityFeePerGas(),
    ])
    assert.equal(id, chain.id)
    assert.ok(block.number > 0n && count > 0 && balance >= 0n && fee >= 0n)
    const logs = await batching.getLogs({ fromBlock: 0n })
    assert.ok(Array.isArray(logs))
  },
}

// The bytes that deploy a contract: answer() returns 42, all else reverts with "no".
function contract() {
  const byte = (n) => n.toString(16).padStart(2, '0')
  const selector = viem.toFunctionSelector('answer()').slice(2)
  const reason = viem.encodeErrorResult({ abi: parseAbi(['error Error(string)']), errorName: 'Error', args: ['no'] }).slice(2)
  const size = byte(reason.length / 2)
  const code = (found, data) =>
    `5f3560e01c63${selector}1460${byte(found)}57` + // if the selector is ours, jump
    `60${size}60${byte(data)}5f3960${size}5ffd` + // else revert with the reason
    '5b602a5f5260205ff3' // return 42
  const blank = code(0, 0)
  const runtime = code(blank.indexOf('5b602a') / 2, blank.length / 2) + reason
  return `0x60${byte(runtime.length / 2)}8060095f395ff3${runtime}`
}

let failed = false
for (const [name, step] of Object.entries(steps)) {
  try {
    await step()
    console.log(JSON.stringify({ kind: name, status: 'ok' }))
  } catch (error) {
    failed = true
    console.log(JSON.stringify({ kind: name, status: 'failed', error: String(error.stack ?? error).slice(0, 2000) }))
  }
}
process.exitCode = failed ? 1 : 0
