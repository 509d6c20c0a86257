import { json } from '../http.ts'
import { visit } from '../visit.ts'
import type { World } from '../world.ts'
import type { Visits } from './collect.ts'
import { type Endpoints, newestEvent } from './webhooks.ts'

interface Left {
  visits: Visits
  endpoints: Endpoints
}

/** Reads what became of the visits: sessions, visitors and the events about them. */
export async function readback(world: World, { visits, endpoints }: Left): Promise<void> {
  await scored(world, visits)
  await sessions(world, visits)
  await clientUsers(world, visits)
  await counts(world)
  await visitors(world, visits)
  await marks(world, visits)
  await events(world, endpoints)
}

interface Listed {
  id: string
  latest_decision: { is_provisional: boolean }
}

const isFinal = ({ body }: { body: Buffer }) => body.includes('"decision_status":"final"')

/** Waits until every decision of the visits can be read. */
async function scored(
  { until, live, test }: World,
  { robin, bot, test: sam }: Visits,
): Promise<void> {
  await until(`GET /v1/sessions/${robin.opened.sessionId}`, live, isFinal)
  await until(`GET /v1/sessions/${bot.opened.sessionId}`, live, isFinal)
  await until(`GET /v1/sessions/${sam.opened.sessionId}`, test, isFinal)
  await until('GET /v1/sessions', live, (answer) => {
    const { data } = json<Listed[]>(answer)
    return data.length >= 5 && data.every(({ latest_decision }) => !latest_decision.is_provisional)
  })
}

async function sessions(
  { record, live, test }: World,
  { robin, bot, test: sam }: Visits,
): Promise<void> {
  const list = (what: string, query: string, headers = live) =>
    record(`list sessions: ${what}`, `GET /v1/sessions${query}`, headers)
  await list('all', '')
  const first = await list('two', '?limit=2')
  const { next_cursor: cursor } = json(first).pagination
  await list('the next two', `?limit=2&cursor=${cursor}`)
  await list('a cursor with another filter', `?limit=2&verdict=bot&cursor=${cursor}`)
  await list('a cursor of the other environment', `?limit=2&cursor=${cursor}`, test)
  for (const verdict of ['bot', 'human', 'inconclusive', 'cat', ''])
    await list(`verdict ${verdict}`, `?verdict=${verdict}`)
  await list('of which the filters say what they are not', '?verdict[not]=bot&without[not]=browser')
  await list('without what every one has', '?without=verdict')
  await list('of the other environment', '', test)
  await list('all, with how each was tied to its visitor', '?include=resolution')
  await list('by id', `?search=${robin.opened.sessionId}`)
  await list('by a part of an id', '?search=sid_')
  await list('by nothing', '?search=')
  await list('by what nobody has', '?search=nobody')
  await list('by a sign of patterns', '?search=%25')
  await list('limit of 0', '?limit=0')
  await list('offset', '?offset=1')
  const get = (what: string, id: string, headers = live) =>
    record(`session: ${what}`, `GET /v1/sessions/${id}`, headers)
  await get('of a person', robin.opened.sessionId)
  await get('of a bot', bot.opened.sessionId)
  await get('of a bot, with the steps of its score', `${bot.opened.sessionId}?include=score`)
  await get('of a bot, with its timeline', `${bot.opened.sessionId}?include=timeline`)
  await get('of a bot, with related ones', `${bot.opened.sessionId}?include=related`)
  await get('of the test environment', sam.opened.sessionId, test)
  await get('of the other environment', sam.opened.sessionId)
  await get('unknown', `sid_${'0'.repeat(26)}`)
  await get('of the earlier form', 'a'.repeat(32))
  await get('malformed', 'nonsense')
}

async function counts({ record, live }: World): Promise<void> {
  const count = (what: string, query: string) =>
    record(`count sessions: ${what}`, `GET /v1/sessions/aggregates${query}`, live)
  await count('all', '')
  await count('by verdict', '?group_by=verdict')
  await count('by browser, of bots', '?group_by=browser&verdict=bot')
  await count('by what cannot be', '?group_by=name')
  await record('anomalies', 'GET /v1/sessions/anomalies', live)
}

async function marks(world: World, { robin, bot }: Visits): Promise<void> {
  const { record, recordEach, read, live, test } = world
  const session_ids = [bot.opened.sessionId]
  const ofBot = { label: 'bot', reason: 'chargeback', session_ids }
  await recordEach('mark', 'POST /v1/marks', live, {
    'nothing in it': {},
    'no session': { label: 'bot' },
    'unknown session': { label: 'bot', session_ids: [`sid_${'0'.repeat(26)}`] },
    'unknown label': { ...ofBot, label: 'cat' },
    'a sentence for a reason': { ...ofBot, reason: 'She told me.' },
    'two ways of naming': { ...ofBot, client_user_id: 'bot' },
  })
  await record('mark: by a key of the other environment', 'POST /v1/marks', test, ofBot)
  const { id } = await read('mark: a bot', 'POST /v1/marks', live, ofBot)
  const ofPerson = { label: 'human', session_ids: [robin.opened.sessionId] }
  await record('mark: a person', 'POST /v1/marks', live, ofPerson)
  await record('session: marked', `GET /v1/sessions/${bot.opened.sessionId}`, live)
  const remove = (what: string, headers = live) =>
    record(`delete mark: ${what}`, `DELETE /v1/marks/${id}`, headers)
  await remove('of the other environment', test)
  await remove('of the bot')
  await remove('again')
}

async function clientUsers(world: World, { robin, bot }: Visits): Promise<void> {
  const { record, recordEach, recordMalformed, live, test } = world
  const update = `PATCH /v1/sessions/${robin.opened.sessionId}`
  await recordMalformed('update session', update, () => live)
  await recordEach('update session', update, live, {
    'nothing in it': {},
    'empty user': { client_user_id: '' },
    'long user': { client_user_id: 'x'.repeat(257) },
    'user of another type': { client_user_id: 7 },
    'unknown member': { client_user_id: 'user_1', name: 'Robin' },
    'a user': { client_user_id: 'user_1' },
    'the same user': { client_user_id: 'user_1' },
    'another user': { client_user_id: 'user 2 ü' },
    'no user': { client_user_id: null },
    'the user again': { client_user_id: 'user_1' },
  })
  const body = { client_user_id: 'x' }
  await record('update session by a test key', update, test, body)
  await record('update unknown session', `PATCH /v1/sessions/sid_${'0'.repeat(26)}`, live, body)
  const ofBot = `PATCH /v1/sessions/${bot.opened.sessionId}`
  await record('update session of a bot', ofBot, live, { client_user_id: 'bot' })
  await record('list sessions: by user', 'GET /v1/sessions?search=user_1', live)
}

async function visitors(world: World, { robin }: Visits): Promise<void> {
  const { record, live, test, credentials, until } = world
  const again = await visit(world, {
    name: 'robin again',
    person: 'robin',
    publishableKey: credentials.live.publishable_key,
    address: '8.8.8.8',
    continuity: robin.continuity,
  })
  await again.finish()
  const session = `GET /v1/sessions/${again.opened.sessionId}`
  await until(session, live, isFinal)
  const answer = await record('session: of a visitor who came back', session, live)
  const visitorId = /vid_[0-9a-z]{26}/.exec(answer.body.toString('utf8'))?.[0] ?? ''
  const list = (what: string, query: string, headers = live) =>
    record(`list visitors: ${what}`, `GET /v1/fingerprints${query}`, headers)
  await list('all', '')
  await list('by how often they were seen', '?sort=seen_count&limit=1')
  await list('with their newest sessions', '?include=latest_session')
  await list('by when they came', '?sort=first_seen')
  await list('unknown order', '?sort=name')
  const first = await list('one', '?limit=1&sort=first_seen')
  const { next_cursor: cursor } = json(first).pagination
  await list('the next one', `?limit=1&sort=first_seen&cursor=${cursor}`)
  await list('a cursor of another order', `?limit=1&sort=seen_count&cursor=${cursor}`)
  await list('by id', `?search=${visitorId}`)
  await list('by what nobody has', '?search=nobody')
  await list('of the other environment', '', test)
  await list('limit of 0', '?limit=0')
  const get = (what: string, id: string, headers = live) =>
    record(`visitor: ${what}`, `GET /v1/fingerprints/${id}`, headers)
  await get('who came back', visitorId)
  await get('of the other environment', visitorId, test)
  await get('unknown', `vid_${'0'.repeat(26)}`)
  await get('malformed', 'nonsense')
}

/** Reads one type at a time: several events of one moment are in no order that could be compared. */
async function events(world: World, { accepting }: Endpoints): Promise<void> {
  const { record, ask, own, live } = world
  const listed = json<Listed[]>(await ask('GET /v1/sessions', live)).data
  const ids = listed.map(({ id }) => id)
  for (const type of ['session.result.persisted', 'session.fingerprint.calculated']) {
    const newest = await newestEvent(world, type, ids)
    const list = `GET ${own}/events?type=${type}`
    await record(`list events: ${type}`, `${list}&limit=2`, live)
    const ofEndpoint = `${list}&endpoint_id=${accepting}&limit=1`
    await record(`list events: ${type} at an endpoint`, ofEndpoint, live)
    await record(`event: ${type}`, `GET ${own}/events/${newest}`, live)
  }
}
