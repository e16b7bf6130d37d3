// Elements that pages are made of.
import { html, useEffect, useLayoutEffect, useRef, useState } from './vendor/htm-preact.js'
import { heads, now, session, tell, times, use } from './state.js'
import { href } from './route.js'
import { absolute, ago, say, seconds, short, tone } from './words.js'

export const State = ({ of, title }) => html`<span class=${'state ' + tone(of)} title=${title || ''}>${say(of)}</span>`

export function Time({ at, chain }) {
  const at_ = use(now), how = use(times), tips = use(heads)
  if (!at) return html`<span class="dim">–</span>`
  const tip = tips[chain]
  const text = how === 'absolute' ? absolute(at) : how === 'block' && tip ? 'block ≈ ' + Math.round(tip.number + (seconds(at) - tip.time) / (tip.every || 1)) : ago(at, at_)
  return html`<time datetime=${new Date(seconds(at) * 1000).toISOString()} title=${absolute(at)}>${text}</time>`
}

export function Copied({ text, label = 'copy', title }) {
  const copy = async () => {
    try { await navigator.clipboard.writeText(text); tell('copied') } catch { tell('the browser does not let pages copy here', true) }
  }
  return html`<button type="button" class="small" title=${title || 'copy ' + text} onClick=${copy}>${label}</button>`
}

export const Hash = ({ of, to }) => html`<span class="hash">${to ? html`<a href=${href(to)} title=${of}>${short(of)}</a>` : html`<span title=${of}>${short(of)}</span>`}<${Copied} text=${of} label="copy" /></span>`

// Ways shows how to do the same from a terminal.
export const Ways = ({ part, path, cli, method = 'GET', body }) => {
  const variable = part === 'relay' ? 'RELAYER_URL' : part === 'operate' ? 'METRICS_URL' : 'WATCHTOWER_URL'
  const curl = `curl -sS ${method === 'GET' ? '' : '-X ' + method + ' '}-H "Authorization: Bearer $WATCHTOWER_KEY" ${body ? `-H 'Content-Type: application/json' -d '${JSON.stringify(body)}' ` : ''}"$${variable}${path}"`
  return html`<span class="ways"><${Copied} text=${curl} label="as curl" />${cli && html`<${Copied} text=${cli} label="as CLI" />`}</span>`
}

export const Empty = ({ children }) => html`<div class="empty">${children}</div>`

export const Trouble = ({ of, again }) => of && html`<div class="trouble" role="alert">
  <strong>${of.code ? say(of.code.replaceAll('-', '_')) : 'It did not work'}</strong> ${of.message}
  ${of.requestId && html`<span class="dim"> request ${of.requestId}</span>`}
  ${again && html` <button type="button" onClick=${again}>try again</button>`}
</div>`

export const Facts = ({ of }) => html`<dl class="facts">${of.filter((f) => f && f[1] !== undefined && f[1] !== null && f[1] !== '').map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`

// useRead reads something now and then, and again when the reasons change.
export function useRead(read, reasons, every = 0) {
  const [state, set] = useState({ loading: true })
  const alive = useRef(0)
  const load = async () => {
    const mine = ++alive.current
    try {
      const value = await read()
      if (mine === alive.current) set({ value })
    } catch (trouble) {
      if (mine === alive.current) set((s) => ({ value: s.value, trouble }))
    }
  }
  useEffect(() => {
    load()
    const timer = every && setInterval(() => document.hidden || load(), every)
    return () => { alive.current++; clearInterval(timer) }
  }, reasons)
  return { ...state, again: load }
}

// Table shows rows; only those in view are in the page. A row has the height of the style sheet.
const rowHeight = 34
export function Table({ columns, rows, onOpen, chosen, label, more, keyOf = (r, i) => i }) {
  const box = useRef()
  const [view, setView] = useState({ top: 0, height: 600 })
  useLayoutEffect(() => {
    const e = box.current
    const look = () => setView({ top: e.scrollTop, height: e.clientHeight })
    look()
    e.addEventListener('scroll', look, { passive: true })
    const watch = new ResizeObserver(look)
    watch.observe(e)
    return () => { e.removeEventListener('scroll', look); watch.disconnect() }
  }, [])
  useEffect(() => {
    if (more && view.top + view.height > rows.length * rowHeight - 400) more()
  }, [view, rows.length])
  useEffect(() => {
    const e = box.current, at = chosen * rowHeight
    if (chosen >= 0 && (at < e.scrollTop || at + 2 * rowHeight > e.scrollTop + e.clientHeight)) e.scrollTop = at - e.clientHeight / 2
  }, [chosen])
  const first = Math.max(0, Math.floor(view.top / rowHeight) - 8)
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / rowHeight) + 8)
  return html`<div class="table" ref=${box} tabindex="0" role="region" aria-label=${label}>
    <table><thead><tr>${columns.map((c) => html`<th scope="col" class=${c.class || ''}>${c.name}</th>`)}</tr></thead>
    <tbody>
      ${first > 0 && html`<tr aria-hidden="true" class="gap"><td colspan=${columns.length} style=${{ height: first * rowHeight + 'px' }}></td></tr>`}
      ${rows.slice(first, last).map((r, i) => html`<tr key=${keyOf(r, first + i)} class=${first + i === chosen ? 'chosen' : ''} onDblClick=${() => onOpen?.(r)}>
        ${columns.map((c) => html`<td class=${c.class || ''}>${c.show(r)}</td>`)}</tr>`)}
      ${last < rows.length && html`<tr aria-hidden="true" class="gap"><td colspan=${columns.length} style=${{ height: (rows.length - last) * rowHeight + 'px' }}></td></tr>`}
    </tbody></table></div>`
}

// Order is a button for a command: it asks for a reason, and says what will happen.
export function Order({ label, what, does, danger, reason = true, children }) {
  const [open, setOpen] = useState(false)
  const [why, setWhy] = useState('')
  const [busy, setBusy] = useState(false)
  const [trouble, setTrouble] = useState(null)
  const dialog = useRef()
  useEffect(() => { if (open && !dialog.current.open) dialog.current.showModal() }, [open])
  if (!use(session)?.acts) return null
  const close = () => { setOpen(false); setTrouble(null) }
  const submit = async (e) => {
    e.preventDefault()
    setBusy(true)
    try { await does(why.trim()); close() } catch (problem) { setTrouble(problem) }
    setBusy(false)
  }
  return html`<button type="button" class=${danger ? 'danger' : ''} onClick=${() => setOpen(true)}>${label}</button>
    ${open && html`<dialog ref=${dialog} onClose=${close} aria-label=${what}>
      <form onSubmit=${submit}>
        <h2>${what}</h2>
        ${children}
        ${reason && html`<label>Reason, for the log<input required maxlength="200" value=${why} onInput=${(e) => setWhy(e.target.value)} autofocus /></label>`}
        <${Trouble} of=${trouble} />
        <div class="buttons"><button type="button" onClick=${close}>leave it</button><button class=${danger ? 'danger' : 'main'} disabled=${busy}>${label}</button></div>
      </form></dialog>`}`
}
