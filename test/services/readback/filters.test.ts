import { expect, test } from 'vitest'
import type { SessionAgent } from '../../../schemas/events.ts'
import { nowhere } from '../../projections/world-events.ts'
import { sessionScored, visitorLink } from '../../support/session-scored.ts'
import { expectRefused, id, numbersIn, useReadback } from './support.ts'

const start = 1_760_000_000_000
const plain = sessionScored()

const anAgent: SessionAgent = {
  status: 'verified',
  provider: 'openai',
  product: 'GPTBot',
  purpose: 'ai_training',
  method: 'published_ranges',
  evidence: null,
}

const readback = await useReadback()
await readback.score(
  {
    session_id: id('sid', 1),
    event_id: id('evt', 1),
    evaluated_at: start,
    risk_score: 12,
    agent: { ...anAgent, status: 'none', provider: null, product: null },
    visitor: visitorLink({ id: id('vid', 1) }),
    network: {
      ...plain.network,
      status: 'ready',
      location: { ...nowhere, country_code: 'DE' },
      routing: { asn: '64500', organization: 'Example' },
    },
  },
  {
    session_id: id('sid', 2),
    event_id: id('evt', 2),
    evaluated_at: start + 60_000,
    verdict: 'bot',
    risk_score: 95,
    reason: 'hand_off',
    agent: anAgent,
    key_id: id('key', 2),
    visitor: null,
    request: {
      ...plain.request,
      url: 'https://xn--bcher-kva.example/a?b=c',
      ip_address: '2001:db8::7',
    },
    browser: { ...plain.browser, name: 'Samsung Internet' },
    device: { ...plain.device, operating_system: { name: 'Android', version: '15' } },
    attribution: {
      labels: [{ kind: 'tool', value: 'playwright', label: 'Playwright', confidence: 98 }],
      behaviors: [],
    },
    signals_fired: plain.signals_fired.map((signal) => ({
      ...signal,
      signal: 'webdriver_detected',
    })),
  },
)

const get = (query: string) => readback.send({ url: `/v1/sessions?${query}` })

const found = async (query: string) => numbersIn(await get(query))

test.each([
  ['since=2025-10-09T08:53:20Z', [2, 1]],
  ['since=2025-10-09T08:53:20.001Z', [2]],
  ['until=2025-10-09T08:54:20Z', [1]],
  ['since=2025-10-09T10:54:20%2B02:00', [2]],
  ['since=2026-01-01T00:00:00Z&since=2025-10-09T08:54:20Z', [2]],
  ['verdict=bot', [2]],
  ['agent_status=none', [1]],
  ['agent_status=verified&agent_status=spoofed', [2]],
  ['agent_provider=OpenAI', [2]],
  ['agent_provider=openai&agent_status=none', []],
  ['verdict=bot&verdict=human', [2, 1]],
  ['score_min=13', [2]],
  ['score_max=12', [1]],
  ['score_min=12&score_max=95', [2, 1]],
  ['signal=webdriver_detected', [2]],
  ['signal=webdriver_detected&signal=ua_consistent', [2, 1]],
  ['attribution=playwright', [2]],
  ['attribution=tool:playwright', [2]],
  ['attribution=evasion:playwright', []],
  ['country=de', [1]],
  ['country=FR&country=DE', [1]],
  ['asn=64500', [1]],
  ['asn=as64500', [1]],
  ['network=other', [1]],
  ['network=unknown&network=other', [2, 1]],
  ['ip=203.0.113.9', [1]],
  ['ip=203.0.113.0/24', [1]],
  ['ip=%3A%3Affff:203.0.113.9', [1]],
  ['ip=2001:db8::/32&ip=10.0.0.0/8', [2]],
  ['page_host=EXAMPLE.com', [1]],
  ['page_host=bücher.example', [2]],
  ['page_path=/a', [2]],
  ['page_path[not]=/a', [1]],
  ['page_path=/b%C3%BCcher', []],
  [`visitor_id=${id('vid', 1).toUpperCase()}`, [1]],
  [`key_id=${id('key', 2)}`, [2]],
  ['browser=samsung%20internet', [2]],
  ['os=ANDROID&os=linux', [2, 1]],
  ['handed_off=true', [2]],
  ['handed_off=false', [1]],
  ['handed_off=false&handed_off=true', [2, 1]],
  ['mark=none', [2, 1]],
  ['mark=bot', []],
  ['country=DE&verdict=bot', []],
  ['verdict=bot&search=b%C3%BCcher', [2]],
  ['verdict=human&search=b%C3%BCcher', []],
  ['browser=chrome&search=example', [1]],
  ['verdict[not]=human', [2]],
  ['verdict=human&verdict=bot&verdict[not]=bot', [1]],
  ['country[not]=de', [2]],
  ['country[not]=FR&country[not]=DE', [2]],
  ['asn%5Bnot%5D=AS64500', [2]],
  ['network[not]=unknown', [1]],
  ['ip[not]=203.0.113.0/24', [2]],
  ['signal[not]=webdriver_detected', [1]],
  ['attribution[not]=tool:playwright&browser[not]=firefox', [1]],
  ['agent_provider[not]=openai', [1]],
  ['mark[not]=none', []],
  [`visitor_id[not]=${id('vid', 1)}`, [2]],
  ['without=country', [2]],
  ['without=country&without=attribution', []],
  ['country=DE&without=country', [2, 1]],
  ['country=DE&without=visitor_id', []],
  [`visitor_id=${id('vid', 1)}&without=visitor_id`, [2, 1]],
  ['without[not]=visitor_id', [1]],
  ['without=country&country[not]=DE', [2]],
])('%s', async (query, expected) => {
  expect(await found(query)).toEqual(expected)
})

test('sessions are filtered by exact client user id', async () => {
  await readback.send({
    url: `/v1/sessions/${id('sid', 1)}`,
    method: 'PATCH',
    body: { client_user_id: 'User 1' },
  })
  expect(await found('client_user_id=User%201')).toEqual([1])
  expect(await found('client_user_id=user%201')).toEqual([])
  expect(await found('client_user_id[not]=User%201')).toEqual([2])
  expect(await found('without=client_user_id')).toEqual([2])
})

test.each([
  'since=yesterday',
  'since=2026-11-26',
  'until=2026-11-26T08:00:00',
  'verdict=robot',
  'agent_status=known',
  'agent_provider=',
  'verdict=bot&verdict=robot',
  'score_min=101',
  'score_max=-1',
  'signal=',
  'signal=Webdriver',
  'attribution=color:red',
  'attribution=%00',
  'country=DEU',
  'asn=AS',
  'asn=4294967296',
  'network=cable',
  'ip=1.2.3',
  'ip=fe80::1%25eth0',
  'ip=10.0.0.0/33',
  'page_host=a/b',
  'page_host=',
  'page_path=a',
  'page_path=',
  'visitor_id=vid_1',
  'client_user_id=',
  'key_id=pk_live_1',
  'browser=%00',
  'os=',
  'handed_off=yes',
  'mark=good',
  'country[not]=DEU',
  'asn[not]=AS',
  'without=contry',
  'without=verdict',
  'without[not]=mark',
  'since[not]=2026-11-26T08:00:00Z',
  'score_min[not]=3',
  'contry[not]=FR',
  'search[not]=x',
  'since=2026-11-27T00:00:00Z&until=2026-11-26T00:00:00Z',
  'score_min=9&score_max=8',
  'client_user_id=..',
])('%s is rejected, naming the parameter', async (query) => {
  expectRefused(await get(query), query)
})

test.each(['since=2025-10-09T08:55:00Z&until=2025-10-09T08:55:00Z', 'score_min=7&score_max=7'])(
  '%s is a valid range',
  async (query) => {
    expect((await get(query)).status).toBe(200)
  },
)

test('the response names the applied filters, and unknown ones are ignored', async () => {
  const { headers } = await get(
    'country=DE&contry=FR&verdict=human&limit=5&since=2025-01-01T00:00:00Z&search=',
  )
  expect(headers['x-filters-applied']).toBe('country, since, verdict')
  const { headers: negated } = await get('without[not]=country&country[not]=FR')
  expect(negated['x-filters-applied']).toBe('country[not], without[not]')
  expect((await get('contry=FR')).headers['x-filters-applied']).toBe('')
})

test('a list whose pages read only some of the sessions returns the range that was read', async () => {
  const { body } = await get('country=DE')
  expect(body.meta).toMatchObject({ read_to: null, read_from: expect.stringMatching(/^20/) })
  const first = await get('network=other&network=unknown&limit=1&until=2025-10-10T00:00:00Z')
  expect(first.body.meta).toMatchObject({
    read_from: '2025-10-10T00:00:00.000Z',
    read_to: '2025-10-09T08:54:20.000Z',
  })
  expect((await get('verdict=bot')).body.meta).not.toHaveProperty('read_to')
})

test('a cursor is valid only with the same filters, and keeps the time when reading began', async () => {
  const filters = 'network=other&network=unknown&limit=1'
  const first = await get(filters)
  const cursor = first.body.pagination.next_cursor
  const second = await get(`${filters}&cursor=${cursor}`)
  expect(second.body.data).toHaveLength(1)
  expect(second.body.meta.read_from).toBe(first.body.meta.read_from)
  expect((await get(`network=other&limit=1&cursor=${cursor}`)).status).toBe(422)
})
