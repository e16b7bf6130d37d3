// The address: a path and filters behind the #, so that any path in front of the console works.
import { signal } from './vendor/signals-core.js'

const read = () => {
  const [path, q] = location.hash.replace(/^#/, '').split('?')
  return { path: path || '/', query: new URLSearchParams(q) }
}
export const route = signal(read())
addEventListener('hashchange', () => { route.value = read() })

export const go = (address) => { location.hash = '#' + address }
export const href = (address) => '#' + address

// setQuery changes filters in the address without a new entry in the history.
export function setQuery(changes) {
  const q = new URLSearchParams(route.value.query)
  for (const [name, value] of Object.entries(changes)) {
    q.delete(name)
    for (const one of Array.isArray(value) ? value : [value]) if (one) q.append(name, one)
  }
  history.replaceState(null, '', '#' + route.value.path + (q.size ? '?' + q : ''))
  route.value = read()
}
