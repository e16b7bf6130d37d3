// Pays with an application of this folder. Nothing but the URL says whether a node or the relay answers.
//
//   node pay.mjs LIBRARY URL tempo|ethereum FROM send|dear|calls|capabilities MARK [MARK]...
//
// Each payment has a mark, 32 bytes of hex digits, so that no two are the same. Prints a JSON line for
// each hash, and one for each receipt. A call that fails is repeated, as long as it takes: what a call
// did is not known then.
const [, , library, url, kind, from, how, ...marks] = process.argv
const { open } = await import(`./${library}.mjs`)
const application = open(url, kind)
const print = (line) => console.log(JSON.stringify(line, (_, value) => (typeof value === 'bigint' ? String(value) : value)))

const to = '0x7700000000000000000000000000000000000009'
const pathUSD = '0x20c0000000000000000000000000000000000000'
const word = (hex) => hex.replace(/^0x/, '').padStart(64, '0')

// One unit of what the chain moves. On Tempo no transaction may carry value.
// 95777d59 is the selector of transferWithMemo(address,uint256,bytes32).
const plain = (mark) =>
  kind === 'tempo' ? { from, to: pathUSD, data: `0x95777d59${word(to)}${word('1')}${word(mark)}` } : { from, to, value: 1n, data: `0x${word(mark)}` }

// By dear, the fee may rise by far: some libraries name limits just above the market.
const payment = (mark) => (how === 'dear' ? { ...plain(mark), maxFeePerGas: 400_000_000_000n, maxPriorityFeePerGas: 300_000_000_000n } : plain(mark))

async function again(what, call) {
  for (let failures = 0; ; failures++) {
    try {
      return { ...(await call()), failures }
    } catch (error) {
      print({ failed: what, why: String(error.shortMessage ?? error.message ?? error), code: error.code, details: String(error.details ?? error.cause?.message ?? '') })
      if (failures >= Number(process.env.WATCHTOWER_TEST_FAILURES ?? 0)) throw error
    }
  }
}

async function pay(mark) {
  if (how === 'calls') return print({ mark, receipt: await application.calls(payment(mark)) })
  const { hash, failures } = await again('send', async () => ({ hash: await application.send(payment(mark)) }))
  print({ mark, hash, failures })
  print({ mark, receipt: await again('receipt', () => application.receipt(hash)) })
}

// ethers polls in the background, and nobody waits there for its errors.
process.on('unhandledRejection', (error) => print({ failed: 'a poll', why: String(error.message ?? error), code: error.code }))

print({ accounts: (await again('accounts', async () => ({ all: await application.accounts() }))).all })
if (how === 'capabilities') print({ capabilities: await application.capabilities(from) })
else await Promise.all(marks.map(pay))
application.close?.()
// web3.js goes on looking for receipts for minutes, also after its promise was rejected.
process.stdout.write('', () => process.exit())
