import { facts, formatTime, html, labelText, panel, plainText, trueNames } from '/assets/dom.js'

const verdicts = {
  automated: { title: 'This looks automated', tone: 'bot' },
  human: { title: 'This looks like a person', tone: 'human' },
  uncertain: { title: 'Not sure yet', tone: 'inconclusive' },
}
const levels = { clean: 'good', notice: '', elevated: 'warn', high_risk: 'bad' }

export function renderResult({ verification, session, raw_url }) {
  const { data } = session
  const isHuman = data.decision.automation_status === 'human'
  const reasonsCards = [reasonsCard(data, 'risk'), reasonsCard(data, 'trust')]
  return html`
    ${verdictCard(verification, data)}
    <div class="cards">
      ${isHuman ? reasonsCards.reverse() : reasonsCards}
      ${visitorCard(data)}${networkCard(data)}${browserCard(data)}${deviceCard(data)}
    </div>
    ${integrityCard(data.runtime_integrity ?? {}, data.evidence?.unchecked ?? [])}
    ${telemetryCard(data.client_telemetry ?? {})}
    <p class="panel raw">
      <span class="mono">${data.id}</span><a href="${raw_url}" id="raw">Raw JSON of this session</a>
    </p>`
}

export function renderFailure(message) {
  return html`<div class="note bad" role="alert"><h2>No decision</h2><p>${message}</p></div>`
}

function verdictCard(verification, { decision, attribution }) {
  const { title, tone } = verdicts[decision.automation_status] ?? verdicts.uncertain
  const labels = (attribution?.labels ?? []).map(
    ({ kind, label, confidence }) =>
      html`<li class="badge bad" title="${confidence} % confident">${labelText(kind)}: ${label}</li>`,
  )
  return html`
    <section class="panel decision tone-${tone}" data-verdict="${verification.decision?.verdict}">
      ${gauge(decision.risk_score)}
      <div>
        <h2>${title}</h2>
        <p class="hint">
          ${labelText(decision.decision_status)} decision, ${decision.evaluation_phase} phase, ${formatTime(decision.evaluated_at)}
        </p>
      </div>
      ${labels.length > 0 ? html`<ul class="badges">${labels}</ul>` : null}
      <p>${sealedBadge(verification, decision)}</p>
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
      <p>${score}<small>of 100</small></p>
    </div>`
}

function sealedBadge(verification, decision) {
  const isCurrent = verification.decision?.event_id === decision.event_id
  return isCurrent
    ? html`<span class="badge good">Token verified: it contains this decision</span>`
    : html`<span class="badge warn">Token verified: the session has a newer decision</span>`
}

const maxReasons = 5

/** Lists the signals of a role, strongest first, with what was measured and their points. */
function reasonsCard({ signals_fired = [], score, highlights = [] }, role) {
  const names = new Map((score?.signals ?? []).map((entry) => [entry.signal, entry]))
  const measured = new Map(
    highlights.flatMap(({ evidence = [] }) => evidence.map(({ signal, name }) => [signal, name])),
  )
  const sign = role === 'risk' ? '+' : '−'
  const items = signals_fired
    .filter((signal) => signal.role === role)
    .sort((a, b) => b.signal_score - a.signal_score)
    .map(({ signal, signal_score }) => {
      const { name = labelText(signal), looks_at = '' } = names.get(signal) ?? {}
      return html`
        <li>
          <b>${measured.get(signal) ?? name}</b><span class="points">${sign}${signal_score}</span>
          <small>${looks_at.replaceAll('`', '')}</small>
        </li>`
    })
  const others = items.splice(maxReasons)
  return html`
    <section class="panel tone-${role === 'risk' ? 'bot' : 'human'}">
      <h2>${role === 'risk' ? 'Reasons for bot' : 'Reasons for human'}</h2>
      ${items.length > 0 ? html`<ul class="reasons">${items}</ul>` : html`<p class="hint">None found.</p>`}
      ${others.length > 0 ? html`<details><summary>${others.length} more</summary><ul class="reasons">${others}</ul></details>` : null}
    </section>`
}

function visitorCard({ visitor_fingerprint: visitor }) {
  if (!visitor) return panel('Visitor', html`<p class="hint">Not identified.</p>`)
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
  const badges = Object.entries(integrity).map(([name, result]) => {
    const level = unchecked.includes(name) ? 'not checked' : result
    return html`<li class="badge ${levels[level] ?? ''}">${labelText(name)}: ${labelText(level)}</li>`
  })
  return badges.length > 0
    ? panel('Runtime integrity', html`<ul class="badges">${badges}</ul>`)
    : null
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
