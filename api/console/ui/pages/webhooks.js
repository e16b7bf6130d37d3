// Webhooks: endpoints of clients, and deliveries that were given up.
import { html } from '../vendor/htm-preact.js'
import { act, get, query } from '../api.js'
import { Empty, Facts, Hash, Order, State, Table, Time, Trouble, Ways, useRead } from '../elements.js'
import { go } from '../route.js'

const stateOf = (w) => (w.disabled ? 'disabled' : w.pausedUntil ? 'paused' : w.failures ? 'lagging' : 'ok')

export function Webhooks() {
  const list = useRead(() => get('relay', '/v1/webhooks?limit=200'), [], 5000)
  const rows = list.value?.webhooks || []
  return html`<h1>Webhooks</h1><p><${Ways} part="relay" path="/v1/webhooks" cli="relayer webhooks list" /></p><${Trouble} of=${list.trouble} again=${list.again} />
    ${list.value && rows.length === 0 ? html`<${Empty}>No webhook has had a delivery. An intent names its webhooks: <code>--webhook https://…</code><//>` : html`<${Table} rows=${rows} label="Webhooks" onOpen=${(w) => go('/webhooks/' + w.id)} keyOf=${(w) => w.id} columns=${[
      { name: 'id', show: (w) => html`<${Hash} of=${w.id} to=${'/webhooks/' + w.id} />` }, { name: 'origin', show: (w) => w.origin }, { name: 'state', show: (w) => html`<${State} of=${stateOf(w)} title=${w.disabled} />` },
      { name: 'failures', class: 'num', show: (w) => w.failures }, { name: 'failing since', show: (w) => html`<${Time} at=${w.failingSince} />` }, { name: 'paused until', show: (w) => html`<${Time} at=${w.pausedUntil} />` }, { name: 'disabled', show: (w) => w.disabled || '' },
    ]} />`}`
}

export function Webhook({ of: [id] }) {
  const path = '/v1/webhooks/' + id
  const shown = useRead(() => get('relay', path), [id], 5000)
  const dead = useRead(() => get('relay', path + '/dead' + query({ limit: 200 })), [id], 5000)
  const w = shown.value
  if (!w) return html`<${Trouble} of=${shown.trouble} again=${shown.again} />`
  const again = () => { shown.again(); dead.again() }
  const rows = dead.value?.notices || []
  const retry = (notices) => act('Send again', 'POST', 'relay', path + '/redeliver', notices ? { notices } : {}).then(again)
  return html`<h1>Webhook ${w.origin}</h1><p><${State} of=${stateOf(w)} /> ${w.disabled ? html`<${Order} label="enable" what="Enable this webhook" reason=${false} does=${() => act('Enable', 'POST', 'relay', path + '/enable').then(again)} />` : html`<${Order} danger label="disable" what="Disable this webhook" reason=${false} does=${() => act('Disable', 'POST', 'relay', path + '/disable').then(again)}><p>What is queued for it is given up.</p><//>`}
    ${rows.length > 0 && html`<${Order} label="send all again" what="Send all given-up deliveries again" reason=${false} does=${() => retry()}><p>They go out under their old ids, in order.</p><//>`} <${Ways} part="relay" path=${path} cli=${'relayer webhooks get ' + id} /></p>
    <div class="panel"><${Facts} of=${[['id', w.id], ['failures since the last success', w.failures], ['failing since', w.failingSince && html`<${Time} at=${w.failingSince} />`], ['paused until', w.pausedUntil && html`<${Time} at=${w.pausedUntil} />`], ['disabled', w.disabled], ['disabled at', w.disabledAt && html`<${Time} at=${w.disabledAt} />`]]} /></div>
    <div class="panel"><h2>Given up</h2><${Trouble} of=${dead.trouble} />
      ${rows.length === 0 ? html`<p class="dim">No delivery was given up.</p>` : html`<${Table} rows=${rows} label="Given up" keyOf=${(n) => n.intent + n.sequence} columns=${[
        { name: 'intent', show: (n) => html`<${Hash} of=${n.intent} to=${'/intents/' + n.intent} />` }, { name: 'event', show: (n) => n.event.type }, { name: 'no.', class: 'num', show: (n) => n.sequence }, { name: 'attempts', class: 'num', show: (n) => n.attempts },
        { name: 'cause', show: (n) => n.cause + (n.status ? ' ' + n.status : '') }, { name: 'last', show: (n) => html`<${Time} at=${n.lastAt} />` },
        { name: 'orders', show: (n) => html`<${Order} label="send again" what=${'Send ' + n.event.type + ' again'} reason=${false} does=${() => retry([{ intent: n.intent, sequence: n.sequence }])} />` },
      ]} />`}</div>`
}
