// The process's own figures, read from its metrics page (Prometheus text format).
import { text } from './api.js'

// samples parses a page to {name: [{labels, value}]}.
export function samples(page) {
  const all = {}
  for (const line of page.split('\n')) {
    if (!line || line[0] === '#') continue
    const open = line.indexOf('{')
    const space = line.lastIndexOf(' ')
    const name = line.slice(0, open >= 0 ? open : space)
    const labels = {}
    if (open >= 0) for (const [, k, v] of line.slice(open + 1, line.lastIndexOf('}')).matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)) labels[k] = v.replace(/\\(["\\n])/g, (_, c) => (c === 'n' ? '\n' : c))
    ;(all[name] ||= []).push({ labels, value: Number(line.slice(space + 1)) })
  }
  return all
}

export const read = async () => samples(await text('operate', '/metrics'))

export const of = (all, name) => all['watchtower_' + name] || []
export const sum = (all, name, where = {}) => of(all, name).filter((s) => Object.entries(where).every(([k, v]) => s.labels[k] === v)).reduce((n, s) => n + s.value, 0)
export const highest = (all, name) => of(all, name).reduce((n, s) => Math.max(n, s.value), 0)

// by sums a metric by one label.
export function by(all, name, label) {
  const sums = {}
  for (const s of of(all, name)) sums[s.labels[label]] = (sums[s.labels[label]] || 0) + s.value
  return sums
}

// quantile of a histogram, in its unit; undefined without observations. With an earlier page it is that of the
// time between the two.
export function quantile(all, name, q, where = {}, earlier) {
  const at = (page) => {
    const buckets = new Map()
    for (const s of (page || {})['watchtower_' + name + '_bucket'] || []) {
      if (Object.entries(where).every(([k, v]) => s.labels[k] === v)) buckets.set(Number(s.labels.le.replace('+Inf', 'Infinity')), (buckets.get(Number(s.labels.le.replace('+Inf', 'Infinity'))) || 0) + s.value)
    }
    return buckets
  }
  const late = at(all), early = at(earlier)
  const counts = [...late].map(([le, n]) => [le, n - (early.get(le) || 0)]).sort((a, b) => a[0] - b[0])
  const total = counts.at(-1)?.[1]
  if (!total) return undefined
  let under = 0, least = 0
  for (const [le, n] of counts) {
    if (n >= q * total) return le === Infinity ? least : least + ((le - least) * (q * total - under)) / Math.max(n - under, 1)
    ;[under, least] = [n, le]
  }
}
