import { el, facts, panel, plain, svg, time, trueNames, words } from '/assets/dom.js'

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
  return [
    verdictCard(verification, data),
    highlightsCard(data.highlights ?? []),
    signalsCard(data.signals_fired ?? []),
    el(
      'div',
      { className: 'cards' },
      visitorCard(data),
      networkCard(data),
      browserCard(data),
      deviceCard(data),
    ),
    integrityCard(data.runtime_integrity ?? {}, data.evidence?.unchecked ?? []),
    telemetryCard(data.client_telemetry ?? {}),
    rawCard(data.id, raw_url),
  ].filter(Boolean)
}

export function renderFailure(message) {
  return [
    el(
      'div',
      { className: 'panel tone-bad', role: 'alert' },
      el('h2', {}, 'There is no decision'),
      el('p', { className: 'sub' }, message),
    ),
  ]
}

function verdictCard(verification, data) {
  const { decision, attribution } = data
  const { title, tone } = verdicts[decision.automation_status] ?? verdicts.uncertain
  const labels = (attribution?.labels ?? []).map(({ kind, label, confidence }) =>
    el('li', { className: 'chip tone-bad', title: `${confidence} % confident` }, `${words(kind)}: ${label}`),
  )
  return el(
    'section',
    { className: `panel verdict tone-${tone}`, data: { verdict: verification.decision?.verdict ?? '' } },
    gauge(decision.risk_score),
    el(
      'div',
      {},
      el('h2', {}, title),
      el(
        'p',
        { className: 'sub' },
        `${words(decision.decision_status)} decision, ${decision.evaluation_phase} phase, ${time(decision.evaluated_at)}`,
      ),
      labels.length > 0 ? el('ul', { className: 'chips' }, ...labels) : null,
    ),
    sealedLine(verification, decision),
  )
}

function gauge(score) {
  const radius = 54
  const length = 2 * Math.PI * radius
  const circle = { cx: 64, cy: 64, r: radius }
  return el(
    'div',
    { className: 'gauge' },
    svg(
      'svg',
      { viewBox: '0 0 128 128', 'aria-hidden': 'true' },
      svg('circle', circle),
      svg('circle', {
        ...circle,
        class: 'value',
        'stroke-dasharray': `${(length * Math.max(score, 1)) / 100} ${length}`,
      }),
    ),
    el('p', {}, String(score), el('small', {}, 'risk score')),
  )
}

function sealedLine(verification, decision) {
  const same = verification.decision?.event_id === decision.event_id
  const text = same
    ? 'Sealed token verified: it opens to this very decision.'
    : 'Sealed token verified. The session has a newer decision than the token.'
  return el('p', { className: `sealed tone-${same ? 'good' : 'warn'}` }, text)
}

function highlightsCard(highlights) {
  if (highlights.length === 0) return null
  const items = highlights.map(({ effect, summary, importance, evidence = [] }) => {
    const { tone, text } = effects[effect] ?? effects.context
    const because = evidence.map(({ name }) => name).join(', ')
    const detail = `${text}, ${importance} importance${because ? `: ${because}` : ''}`
    return el('li', { className: `tone-${tone}` }, el('strong', {}, summary), el('small', {}, detail))
  })
  return panel('Why', el('ul', { className: 'highlights' }, ...items))
}

function signalsCard(signals) {
  if (signals.length === 0) return panel('Signals', el('p', { className: 'note' }, 'No signal fired.'))
  const rows = signals.map(({ signal, role, category, strength, signal_score }) =>
    el(
      'tr',
      { className: `tone-${role === 'risk' ? 'bad' : 'good'}` },
      el('td', {}, words(signal)),
      el('td', {}, words(category)),
      el('td', {}, words(strength)),
      el('td', { className: 'number' }, bar(signal_score), String(signal_score)),
    ),
  )
  const head = ['Signal', 'Category', 'Strength', 'Score'].map((text) => el('th', { scope: 'col' }, text))
  const table = el('table', {}, el('thead', {}, el('tr', {}, ...head)), el('tbody', {}, ...rows))
  return panel(`Signals (${signals.length})`, el('div', { className: 'table' }, table))
}

function bar(score) {
  const width = `${Math.min(100, Math.abs(score))}%`
  return el('span', { className: 'bar' }, el('span', { style: { width } }))
}

function visitorCard({ visitor_fingerprint: visitor }) {
  if (!visitor) return panel('Visitor', el('p', { className: 'note' }, 'Not identified.'))
  const { lifecycle = {}, resolution = {} } = visitor
  return panel(
    'Visitor',
    facts([
      ['Id', visitor.id],
      ['Confidence', visitor.confidence === null ? null : `${visitor.confidence} %`],
      ['Linked by', [resolution.method, resolution.basis].filter(Boolean).map(words).join(', ')],
      ['Sessions seen', lifecycle.seen_count],
      ['First seen', time(lifecycle.first_seen_at)],
      ['Last seen', time(lifecycle.last_seen_at)],
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
      ['Status', network.status && words(network.status)],
      ['Summary', network.summary],
      ['Location', place],
      ['Provider', [routing.asn, routing.organization].filter(Boolean).join(' ')],
      ['Anonymity', trueNames(anonymity) || (network.status === 'ready' ? '' : 'not checked')],
    ]),
  )
}

function browserCard({ browser = {}, request = {}, device = {} }) {
  const { locale = {} } = device
  return panel(
    'Browser',
    facts([
      ['Name', [browser.name, browser.version].filter(Boolean).join(' ')],
      ['Engine', browser.engine && words(browser.engine)],
      ['Languages', plain(locale.languages ?? [])],
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
      ['Form', device.form_factor && words(device.form_factor)],
      ['System', [system.name, system.version].filter(Boolean).join(' ')],
      ['Architecture', device.architecture],
      ['Screen', screen.size && `${screen.size}, ${screen.color_depth} bit, ${screen.pixel_ratio}x`],
      ['Touch', plain(capabilities.touch?.available)],
      ['WebGPU', plain(capabilities.webgpu?.available)],
      ['Storage', trueNames(capabilities.storage)],
    ]),
  )
}

function integrityCard(integrity, unchecked) {
  const chips = Object.entries(integrity).map(([name, found]) => {
    const level = unchecked.includes(name) ? 'not checked' : found
    return el('li', { className: `chip tone-${levels[level] ?? 'plain'}` }, `${words(name)}: ${words(level)}`)
  })
  return chips.length > 0 ? panel('Runtime integrity', el('ul', { className: 'chips' }, ...chips)) : null
}

function telemetryCard(telemetry) {
  const groups = Object.entries(telemetry).flatMap(([name, group]) =>
    name === 'graphics' ? Object.entries(group) : [[name, group]],
  )
  const parts = groups.map(([name, group]) =>
    el(
      'div',
      {},
      el('h3', {}, words(name)),
      facts(Object.entries(group).map(([key, value]) => [words(key), plain(value)])),
    ),
  )
  const summary = el('summary', {}, 'Client telemetry')
  return el('details', { className: 'panel' }, summary, el('div', { className: 'cards telemetry' }, ...parts))
}

function rawCard(id, url) {
  return el(
    'p',
    { className: 'panel raw' },
    el('span', { className: 'mono' }, id),
    el('a', { href: url, id: 'raw' }, 'Raw JSON of this session'),
  )
}
