import { facts, formatTime, html, labelText, panel, plainText, trueNames } from '/assets/dom.js'

const verdicts = {
  automated: { title: 'This looks automated', tone: 'bad' },
  human: { title: 'This looks like a person', tone: 'good' },
  uncertain: { title: 'Not sure yet', tone: 'warn' },
}
const effects = {
  increases_risk: { tone: 'bad', text: 'Raises the risk' },
  reduces_risk: { tone: 'good', text: 'Lowers the risk' },
  context: { tone: 'plain', text: 'Context' },
}
const levels = { clean: 'good', notice: 'plain', elevated: 'warn', high_risk: 'bad' }

export function renderResult({ verification, session, raw_url }) {
  const { data } = session
  return html`
    ${verdictCard(verification, data)}
    ${highlightsCard(data.highlights ?? [])}
    ${signalsCard(data.signals_fired ?? [])}
    <div class="cards">${visitorCard(data)}${networkCard(data)}${browserCard(data)}${deviceCard(data)}</div>
    ${integrityCard(data.runtime_integrity ?? {}, data.evidence?.unchecked ?? [])}
    ${telemetryCard(data.client_telemetry ?? {})}
    <p class="panel raw">
      <span class="mono">${data.id}</span><a href="${raw_url}" id="raw">Raw JSON of this session</a>
    </p>`
}

export function renderFailure(message) {
  return html`<div class="panel tone-bad" role="alert"><h2>No decision</h2><p class="sub">${message}</p></div>`
}

function verdictCard(verification, { decision, attribution }) {
  const { title, tone } = verdicts[decision.automation_status] ?? verdicts.uncertain
  const labels = (attribution?.labels ?? []).map(
    ({ kind, label, confidence }) =>
      html`<li class="chip tone-bad" title="${confidence} % confident">${labelText(kind)}: ${label}</li>`,
  )
  return html`
    <section class="panel verdict tone-${tone}" data-verdict="${verification.decision?.verdict}">
      ${gauge(decision.risk_score)}
      <div>
        <h2>${title}</h2>
        <p class="sub">
          ${labelText(decision.decision_status)} decision, ${decision.evaluation_phase} phase, ${formatTime(decision.evaluated_at)}
        </p>
        ${labels.length > 0 ? html`<ul class="chips">${labels}</ul>` : null}
      </div>
      ${sealedLine(verification, decision)}
    </section>`
}

function gauge(score) {
  const radius = 54
  const length = 2 * Math.PI * radius
  return html`
    <div class="gauge">
      <svg viewBox="0 0 128 128" aria-hidden="true">
        <circle cx="64" cy="64" r="${radius}" />
        <circle cx="64" cy="64" r="${radius}" class="value"
          stroke-dasharray="${(length * Math.max(score, 1)) / 100} ${length}" />
      </svg>
      <p>${score}<small>risk score</small></p>
    </div>`
}

function sealedLine(verification, decision) {
  const isCurrent = verification.decision?.event_id === decision.event_id
  const text = isCurrent
    ? 'Sealed token verified: it contains this decision.'
    : 'Sealed token verified. The session has a newer decision than the token.'
  return html`<p class="sealed tone-${isCurrent ? 'good' : 'warn'}">${text}</p>`
}

function highlightsCard(highlights) {
  if (highlights.length === 0) return null
  const items = highlights.map(({ effect, summary, importance, evidence = [] }) => {
    const { tone, text } = effects[effect] ?? effects.context
    const names = evidence.map(({ name }) => name).join(', ')
    const detail = `${text}, ${importance} importance${names ? `: ${names}` : ''}`
    return html`<li class="tone-${tone}"><strong>${summary}</strong><small>${detail}</small></li>`
  })
  return panel('Why', html`<ul class="highlights">${items}</ul>`)
}

function signalsCard(signals) {
  if (signals.length === 0) return panel('Signals', html`<p class="note">No signal fired.</p>`)
  const head = ['Signal', 'Category', 'Strength', 'Score'].map(
    (text) => html`<th scope="col">${text}</th>`,
  )
  const rows = signals.map(
    ({ signal, role, category, strength, signal_score }) => html`
      <tr class="tone-${role === 'risk' ? 'bad' : 'good'}">
        <td>${labelText(signal)}</td><td>${labelText(category)}</td><td>${labelText(strength)}</td>
        <td class="number">${bar(signal_score)}${signal_score}</td>
      </tr>`,
  )
  const table = html`<table><thead><tr>${head}</tr></thead><tbody>${rows}</tbody></table>`
  return panel(`Signals (${signals.length})`, html`<div class="table">${table}</div>`)
}

// SVG, because the content security policy forbids inline styles.
function bar(score) {
  const width = Math.min(100, Math.abs(score))
  return html`<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none"><rect width="${width}" height="10" /></svg>`
}

function visitorCard({ visitor_fingerprint: visitor }) {
  if (!visitor) return panel('Visitor', html`<p class="note">Not identified.</p>`)
  const { lifecycle = {}, resolution = {} } = visitor
  return panel(
    'Visitor',
    facts([
      ['Id', visitor.id],
      ['Confidence', visitor.confidence === null ? null : `${visitor.confidence} %`],
      [
        'Matched by',
        [resolution.method, resolution.basis].filter(Boolean).map(labelText).join(', '),
      ],
      ['Sessions seen', lifecycle.seen_count],
      ['First seen', formatTime(lifecycle.first_seen_at)],
      ['Last seen', formatTime(lifecycle.last_seen_at)],
    ]),
  )
}

function networkCard({ network = {} }) {
  const { location, routing = {}, anonymity = {} } = network
  const place = [location?.city, location?.region, location?.country].filter(Boolean).join(', ')
  return panel(
    'Network',
    facts([
      ['Address', network.ip_address],
      ['Version', network.ip_version === 'ipv6' ? 'IPv6' : network.ip_version && 'IPv4'],
      ['Status', network.status && labelText(network.status)],
      ['Summary', network.summary],
      ['Location', place],
      ['Provider', [routing.asn, routing.organization].filter(Boolean).join(' ')],
      ['Anonymity', trueNames(anonymity) || (network.status === 'ready' ? '' : 'not checked')],
      // Attribution that the data's license requires.
      ['Source', place && html`<a href="https://db-ip.com">IP Geolocation by DB-IP</a>`],
    ]),
  )
}

function browserCard({ browser = {}, request = {}, device = {} }) {
  const { locale = {} } = device
  return panel(
    'Browser',
    facts([
      ['Name', [browser.name, browser.version].filter(Boolean).join(' ')],
      ['Engine', browser.engine && labelText(browser.engine)],
      ['Languages', plainText(locale.languages ?? [])],
      ['Time zone', locale.timezone],
      ['Page', request.url],
      ['User agent', request.user_agent],
    ]),
  )
}

function deviceCard({ device = {} }) {
  const { operating_system: system = {}, screen = {}, capabilities = {} } = device
  return panel(
    'Device',
    facts([
      ['Form', device.form_factor && labelText(device.form_factor)],
      ['System', [system.name, system.version].filter(Boolean).join(' ')],
      ['Architecture', device.architecture],
      [
        'Screen',
        screen.size && `${screen.size}, ${screen.color_depth} bit, ${screen.pixel_ratio}x`,
      ],
      ['Touch', plainText(capabilities.touch?.available)],
      ['WebGPU', plainText(capabilities.webgpu?.available)],
      ['Storage', trueNames(capabilities.storage)],
    ]),
  )
}

function integrityCard(integrity, unchecked) {
  const chips = Object.entries(integrity).map(([name, result]) => {
    const level = unchecked.includes(name) ? 'not checked' : result
    return html`<li class="chip tone-${levels[level] ?? 'plain'}">${labelText(name)}: ${labelText(level)}</li>`
  })
  return chips.length > 0 ? panel('Runtime integrity', html`<ul class="chips">${chips}</ul>`) : null
}

function telemetryCard(telemetry) {
  const groups = Object.entries(telemetry).flatMap(([name, group]) =>
    name === 'graphics' ? Object.entries(group) : [[name, group]],
  )
  const parts = groups.map(([name, group]) => {
    const entries = Object.entries(group).map(([key, value]) => [labelText(key), plainText(value)])
    return html`<div><h3>${labelText(name)}</h3>${facts(entries)}</div>`
  })
  return html`
    <details class="panel">
      <summary>Client telemetry</summary>
      <div class="cards telemetry">${parts}</div>
    </details>`
}
