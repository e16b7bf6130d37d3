// The log as it grows: all events that the key may see.
import { html, useEffect, useRef, useState } from '../vendor/htm-preact.js'
import { follow, query } from '../api.js'
import { Empty, Hash, Table, Time, Ways } from '../elements.js'
import { session, use } from '../state.js'
import { route, setQuery } from '../route.js'
import { Filter } from './live.js'

const most = 5000 // rows that are kept

export function Stream() {
  const { query: q } = use(route)
  const relay = use(session).parts.includes('relay')
  const half = q.get('half') === 'relay' && relay ? 'relay' : 'delivery'
  const [rows, setRows] = useState([])
  const [paused, setPaused] = useState(false)
  const [open, setOpen] = useState(null)
  const waiting = useRef([])
  const kind = q.get('type') || '', after = q.get('after')
  useEffect(() => {
    setRows([])
    if (paused) return
    // Events come faster than a page should be drawn: they are shown a few times a second.
    const flush = setInterval(() => {
      if (!waiting.current.length) return
      const fresh = waiting.current.splice(0).reverse()
      setRows((old) => [...fresh, ...old].slice(0, most))
    }, 250)
    const stop = follow(half, '/v1/events' + query({ after }), (e) => {
      if (!kind || (e.name || e.type || '').includes(kind)) waiting.current.push(e)
      if (waiting.current.length > most) waiting.current.splice(0, waiting.current.length - most)
    })
    return () => { stop(); clearInterval(flush); waiting.current = [] }
  }, [half, kind, after, paused])
  const nameOf = (e) => (e.name || e.type || '').replace(/\.v\d+$/, '')
  return html`<h1>Events</h1>
    <div class="bar">${relay && html`<label>of<select onChange=${(e) => setQuery({ half: e.target.value })}><option value="delivery">delivery</option><option value="relay" selected=${half === 'relay'}>the relay</option></select></label>`}
      <${Filter} name="type" label="type contains" /><${Filter} name="after" label="from position" type="number" />
      <button type="button" onClick=${() => setPaused((p) => !p)}>${paused ? 'go live' : 'pause'}</button><${Ways} part=${half} path="/v1/events" cli=${half === 'relay' ? 'relayer events follow' : 'watchtower tail'} /></div>
    ${rows.length === 0 ? html`<${Empty}>${paused ? 'Paused.' : 'Waiting for the next event. To see older ones, give a position: 0 is the beginning.'}<//>` : html`<${Table} rows=${rows} label="Events, newest first" keyOf=${(e) => e.id || e.intent + e.sequence} onOpen=${setOpen} columns=${[
      { name: 'position', class: 'num', show: (e) => e.position ?? '' }, { name: 'event', show: (e) => html`<button type="button" class="small" onClick=${() => setOpen(e)}>${nameOf(e)}</button>` },
      { name: 'of', show: (e) => (e.txHash ? html`<${Hash} of=${e.txHash} to=${`/transactions/${e.chainId}/${e.txHash}`} />` : e.intent ? html`<${Hash} of=${e.intent} to=${'/intents/' + e.intent} />` : e.stream || '') },
      { name: 'at', show: (e) => html`<${Time} at=${e.at} />` }, { name: 'by', show: (e) => e.meta?.actor || '' },
    ]} />`}
    ${open && html`<div class="panel"><h2>${nameOf(open)} <button type="button" class="small" onClick=${() => setOpen(null)}>close</button></h2><pre>${JSON.stringify(open, null, 2)}</pre></div>`}`
}
