// A list that a person can filter, walk through by keys, and let run live.
import { html, useEffect, useRef, useState } from '../vendor/htm-preact.js'
import { follow, get, query } from '../api.js'
import { Empty, Table, Trouble } from '../elements.js'
import { filters, use } from '../state.js'
import { go, route, setQuery } from '../route.js'

// useList reads a list page by page, as the table asks for more.
export function useList({ part, path, member, asked }) {
  const [state, set] = useState({ rows: [], loading: true })
  const turn = useRef(0)
  const address = path + query(asked)
  const load = async (cursor, rows) => {
    const mine = turn.current
    set((s) => ({ ...s, loading: true }))
    try {
      const page = await get(part, path + query({ ...asked, ...(cursor ? { cursor } : {}) }))
      if (mine !== turn.current) return
      set({ rows: [...rows, ...page[member]], next: page.hasMore ? page.nextCursor : undefined, loading: false })
    } catch (trouble) {
      if (mine === turn.current) set((s) => ({ ...s, trouble, loading: false }))
    }
  }
  const again = () => { turn.current++; load(undefined, []) }
  useEffect(() => { again(); return () => { turn.current++ } }, [address])
  return { ...state, again, more: () => state.next && !state.loading && load(state.next, state.rows) }
}

// useNews counts what has happened since the list was read.
export function useNews(part, path, reset) {
  const [count, setCount] = useState(0)
  const [paused, setPaused] = useState(false)
  useEffect(() => {
    setCount(0)
    if (paused) return
    return follow(part, path, () => setCount((n) => n + 1))
  }, [path, paused, reset])
  return { count, paused, setPaused }
}

// useRows lets keys walk through the rows.
export function useRows(rows, open, togglePause) {
  const [chosen, show] = useState(-1)
  const at = useRef(-1) // as chosen, without waiting for the next drawing
  const choose = (n) => show((at.current = Math.max(Math.min(n, rows.length - 1), 0)))
  useEffect(() => {
    const press = (e) => {
      if (e.target.matches('input, select, textarea') || e.ctrlKey || e.metaKey || document.querySelector('dialog[open]')) return
      if (e.key === 'j') choose(at.current + 1)
      else if (e.key === 'k') choose(at.current - 1)
      else if (e.key === 'Enter' && rows[at.current] && !e.target.matches('a, button')) open(rows[at.current])
      else if (e.key === 'p') togglePause?.()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [rows])
  return chosen
}

// Filter is one field of the address's query.
export function Filter({ name, label, options, type = 'search' }) {
  const { query: q } = use(route)
  const value = q.get(name) || ''
  if (options) return html`<label>${label}<select onChange=${(e) => setQuery({ [name]: e.target.value })}><option value="" selected=${!value}>any</option>${options.map((o) => html`<option selected=${o === value}>${o}</option>`)}</select></label>`
  return html`<label>${label}<input type=${type} size="18" value=${value} onChange=${(e) => setQuery({ [name]: e.target.value.trim() })} /></label>`
}

// Saved are filters that the person has given a name.
export function Saved() {
  const { path, query: q } = use(route)
  const saved = use(filters).filter((f) => f.path === path)
  const save = () => {
    const name = prompt('Name of this filter')
    if (name) filters.value = [...filters.value.filter((f) => f.path !== path || f.name !== name), { name, path, query: q.toString() }]
  }
  return html`<label>saved<select onChange=${(e) => e.target.value && go(path + '?' + e.target.value)}><option value="">–</option>${saved.map((f) => html`<option value=${f.query}>${f.name}</option>`)}</select></label>
    <button type="button" onClick=${save}>save</button>`
}

export function List({ list, news, columns, label, open, keyOf, empty, children }) {
  const chosen = useRows(list.rows, open, () => news?.setPaused((p) => !p))
  return html`<div class="bar">${children}<${Saved} />
      ${news && html`<button type="button" onClick=${() => news.setPaused((p) => !p)}>${news.paused ? 'go live' : 'pause'}</button>`}
      <button type="button" onClick=${list.again}>${news?.count ? `show ${news.count} new` : 'read again'}</button></div>
    <${Trouble} of=${list.trouble} again=${list.again} />
    ${list.rows.length === 0 && !list.loading && !list.trouble ? html`<${Empty}>${empty}<//>` : html`<${Table} columns=${columns} rows=${list.rows} chosen=${chosen} onOpen=${open} more=${list.more} label=${label} keyOf=${keyOf} />`}
    <p class="dim" role="status">${list.rows.length} shown${list.next ? ', more below' : ''}${list.loading ? ', reading …' : ''}</p>`
}

// download gives rows as a file.
export function download(name, rows, columns) {
  const cell = (v) => { const t = v === undefined || v === null ? '' : typeof v === 'object' ? JSON.stringify(v) : String(v); return /[",\n]/.test(t) ? '"' + t.replaceAll('"', '""') + '"' : t }
  const body = columns ? [columns.join(','), ...rows.map((r) => columns.map((c) => cell(r[c])).join(','))].join('\n') : rows.map((r) => JSON.stringify(r)).join('\n')
  const a = document.createElement('a')
  a.href = URL.createObjectURL(new Blob([body + '\n'], { type: columns ? 'text/csv' : 'application/x-ndjson' }))
  a.download = name
  a.click()
  URL.revokeObjectURL(a.href)
}

export const Export = ({ name, rows, columns }) => html`<button type="button" onClick=${() => download(name + '.csv', rows, columns)}>CSV</button><button type="button" onClick=${() => download(name + '.jsonl', rows)}>JSONL</button>`
