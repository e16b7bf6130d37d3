// Readers of the log: read models, feeds and queues, and how far each is.
import { html } from '../vendor/htm-preact.js'
import { get } from '../api.js'
import { Empty, State, Table, Trouble, Ways, useRead } from '../elements.js'
import { amount } from '../words.js'
import { of, read } from '../metrics.js'

export function Readers() {
  const health = useRead(() => get('delivery', '/health'), [], 3000)
  const feeds = useRead(read, [], 5000)
  const rows = health.value?.readers || []
  const parked = of(feeds.value || {}, 'feed_parked_streams').filter((s) => s.value > 0)
  return html`<h1>Read models</h1><p><${Ways} part="delivery" path="/health" cli="watchtower projections" /></p><${Trouble} of=${health.trouble} again=${health.again} />
    ${parked.length > 0 && html`<div class="why">${parked.map((s) => html`<p>${amount(s.value)} streams are parked for the consumers ${Object.values(s.labels).join(' ')}: their handler failed. <code>watchtower consumers parked</code> shows why; retry or skip each with a reason.</p>`)}</div>`}
    ${health.value && rows.length === 0 ? html`<${Empty}>This process runs no reader now: another replica holds them.<//>` : html`<${Table} rows=${rows} label="Readers" keyOf=${(r) => r.name} columns=${[
      { name: 'reader', show: (r) => r.name }, { name: 'state', show: (r) => html`<${State} of=${r.problem ? 'failed' : r.lag > 1000 ? 'lagging' : 'ok'} />` },
      { name: 'progress', show: (r) => html`<progress max=${r.head || 1} value=${r.position} aria-label=${r.name}></progress>` }, { name: 'position', class: 'num', show: (r) => amount(r.position) }, { name: 'events behind', class: 'num', show: (r) => amount(r.lag) }, { name: 'problem', show: (r) => r.problem || '' },
    ]} />`}
    <p class="dim">To make a read model anew from the log: <code>watchtower projections rebuild NAME</code>. It is built beside the old one, checked, and put in its place.</p>`
}
