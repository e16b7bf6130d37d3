// Texts and forms of values.
export const short = (hash) => (hash && hash.length > 14 ? hash.slice(0, 8) + '…' + hash.slice(-6) : hash || '')

const units = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]]
export function span(seconds) {
  const whole = Math.abs(Math.round(seconds))
  for (const [i, [name, size]] of units.entries()) {
    if (whole >= size || size === 1) {
      const next = units[i + 1]
      const rest = next ? Math.floor((whole % size) / next[1]) : 0
      return Math.floor(whole / size) + ' ' + name + (rest ? ' ' + rest + ' ' + next[0] : '')
    }
  }
}

export const seconds = (t) => (typeof t === 'string' ? Date.parse(t) / 1000 : t)
export const absolute = (t) => new Date(seconds(t) * 1000).toISOString().replace('T', ' ').replace(/(\.\d+)?Z$/, ' UTC')
export const ago = (t, now) => {
  const d = now - seconds(t)
  return Math.abs(d) < 1 ? 'now' : d < 0 ? 'in ' + span(d) : span(d) + ' ago'
}

// amount shows a decimal number with thin spaces between thousands.
export const amount = (n) => String(n ?? '').replace(/\B(?=(\d{3})+(?!\d))/g, ' ')

// tones of states: good, bad, busy, idle.
const tones = {
  executed: 'good', completed: 'good', confirmed: 'good', final: 'good', healthy: 'good', active: 'good', serving: 'good', taken: 'good', known: 'good', ok: 'good', delivered: 'good',
  invalid: 'bad', failed: 'bad', expired: 'bad', dead: 'bad', violated: 'bad', tripped: 'bad', distrusted: 'bad', foreign: 'bad', disabled: 'bad',
  refused: 'bad', stale_by_nonce: 'idle', canceled: 'idle', canceled_locally: 'idle', paused: 'idle', lagging: 'idle', limited: 'idle', unverified: 'idle',
}
export const tone = (state) => tones[state] || 'busy'

// states in words.
const said = { stale_by_nonce: 'stale: the nonce was used otherwise', canceled_locally: 'canceled', retry_scheduled: 'will be sent again' }
export const say = (state) => said[state] || String(state).replaceAll('_', ' ')
