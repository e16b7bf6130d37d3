// What all pages share: the session, the clock, and what the person chose.
import { useEffect, useState } from './vendor/htm-preact.js'
import { effect, signal } from './vendor/signals-core.js'

// use makes a component render again when a signal changes.
export function use(s) {
  const [, again] = useState(0)
  useEffect(() => effect(() => { s.value; again((n) => n + 1) }), [s])
  return s.value
}

const kept = (name, value) => {
  try { return JSON.parse(localStorage.getItem('watchtower.' + name)) ?? value } catch { return value }
}
export const keep = (name, value) => {
  try { localStorage.setItem('watchtower.' + name, JSON.stringify(value)) } catch { /* a browser that keeps nothing */ }
}

export const session = signal(null) // what GET session answers
export const now = signal(Date.now() / 1000) // by the service's clock, in seconds
export const theme = signal(kept('theme', 'auto')) // auto, light, dark
export const times = signal(kept('times', 'relative')) // relative, absolute, block
export const filters = signal(kept('filters', [])) // saved filters: name and address
export const notices = signal([]) // short messages about what was done
export const halted = signal([]) // kill switches that are on
export const heads = signal({}) // chain id to its head, for times in blocks

let ahead = 0 // the service's clock minus ours, in seconds
export function clockFrom(seconds) {
  ahead = seconds - Date.now() / 1000
  now.value = seconds
}
setInterval(() => { now.value = Date.now() / 1000 + ahead }, 1000)

effect(() => {
  keep('theme', theme.value)
  document.documentElement.dataset.theme = theme.value
})
effect(() => keep('times', times.value))
effect(() => keep('filters', filters.value))

let number = 0
export function tell(text, bad = false) {
  const id = ++number
  notices.value = [...notices.value, { id, text, bad }]
  setTimeout(() => { notices.value = notices.value.filter((n) => n.id !== id) }, bad ? 12000 : 5000)
}
