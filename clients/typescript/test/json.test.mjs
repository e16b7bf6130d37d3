import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse, stringify } from '../dist/json.js'

test('integers beyond 2^53 are exact', () => {
  assert.deepEqual(parse('{"nonce":18446744073709551615,"gas":9007199254740991,"list":[-9007199254740993,1]}'), {
    nonce: 18446744073709551615n, gas: 9007199254740991, list: [-9007199254740993n, 1],
  })
  assert.equal(parse('9007199254740993'), 9007199254740993n)
})

test('texts stay texts, whatever is in them', () => {
  for (const text of ['123456789012345678901', '#123456789012345678901', '##1', 'a "quoted" 12345678901234567890', '\\', '\u0023\u0000', '0x' + '1'.repeat(64)]) {
    const value = { [text]: text, large: [1n << 64n, text] }
    const written = JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? 'LARGE' : v)).replace('"LARGE"', String(1n << 64n))
    assert.deepEqual(parse(written), value)
    // The mark may also be written with an escape.
    assert.deepEqual(parse(written.replaceAll('#', '\\u0023')), value)
  }
})

test('other numbers are as JSON.parse has them', () => {
  const text = '[1.5,1e300,1234567890123456.75,12345678901234567890e3,0,-0,1234567890123456]'
  assert.deepEqual(parse(text), JSON.parse(text))
})

// Random documents, compared with what was written.
test('what is written is read', () => {
  let seed = 7n
  const random = (n) => Number((seed = (seed * 6364136223846793005n + 1442695040888963407n) % (1n << 64n)) >> 33n) % n
  const some = (depth) => {
    switch (random(depth > 3 ? 4 : 6)) {
      case 0: return BigInt(random(1 << 30)) ** BigInt(1 + random(3)) * (random(2) ? 1n : -1n)
      case 1: return random(1 << 30) / (1 + random(7))
      case 2: return ['#', '"', '\\', '12345678901234567', '😀', '\n'].slice(random(6)).join('')
      case 3: return random(2) === 0
      case 4: return Array.from({ length: random(4) }, () => some(depth + 1))
      default: return Object.fromEntries(Array.from({ length: random(4) }, (_, i) => [`k${i}${random(2) ? '"1234567890123456789' : ''}`, some(depth + 1)]))
    }
  }
  const write = (v) => {
    if (typeof v === 'bigint') return String(v)
    if (Array.isArray(v)) return `[${v.map(write)}]`
    if (typeof v === 'object') return `{${Object.entries(v).map(([k, w]) => `${JSON.stringify(k)}:${write(w)}`)}}`
    return JSON.stringify(v)
  }
  const plain = (v) => {
    if (typeof v === 'bigint') return Number.isSafeInteger(Number(v)) ? Number(v) : v
    if (Array.isArray(v)) return v.map(plain)
    return typeof v === 'object' ? Object.fromEntries(Object.entries(v).map(([k, w]) => [k, plain(w)])) : v
  }
  for (let i = 0; i < 2_000; i++) {
    const value = some(0)
    assert.deepEqual(parse(write(value)), plain(value))
  }
})

test('a bigint is written as the contracts have it', () => {
  assert.equal(stringify({ chainId: 42431n, value: 10n ** 20n, gas: { limit: 21_000n, maxFeePerGas: 5n } }), '{"chainId":42431,"value":"100000000000000000000","gas":{"limit":21000,"maxFeePerGas":"5"}}')
  assert.throws(() => stringify({ chainId: 1n << 60n }), RangeError)
})
