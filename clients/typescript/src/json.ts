// A JSON text's strings, and its numbers.
const tokens = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** Whether a token is an integer that a number cannot hold exactly. */
function isLarge(token: string): boolean {
  return token.length > 15 && /^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token))
}

/** Parses JSON. Integers beyond 2^53 become bigint, which JSON.parse would round. */
export function parse<T>(text: string): T {
  if (!/\d{16}/.test(text)) return JSON.parse(text) as T
  const large = text.match(tokens)?.some(isLarge)
  const value: unknown = JSON.parse(text)
  if (!large) return value as T
  // The large numbers are marked as strings. The mark must occur in no string of the text.
  let mark = '#'
  for (const plain = JSON.stringify(value); plain.includes(mark); ) mark += '#'
  const marked = text.replace(tokens, (token) => (isLarge(token) ? `"${mark}${token}"` : token))
  return JSON.parse(marked, (_, v: unknown) => (typeof v === 'string' && v.startsWith(mark) ? BigInt(v.slice(mark.length)) : v)) as T
}

// Members that are numbers in the contracts. All other amounts are decimal strings.
const numbers = new Set(['chainId', 'deadline', 'expires', 'limit', 'notBefore', 'sequence', 'id'])

/** Writes JSON. A bigint becomes a number where the contract has one, and a decimal string elsewhere. */
export function stringify(value: unknown): string {
  return JSON.stringify(value, (name, v: unknown) => {
    if (typeof v !== 'bigint') return v
    if (!numbers.has(name)) return v.toString()
    if (!Number.isSafeInteger(Number(v))) throw new RangeError(`${name}: ${v} is beyond 2^53`)
    return Number(v)
  })
}
