import { afterAll, describe, expect, test } from 'vitest'
import { insertDataKeys } from '../../infra/event-store/data-key-table.ts'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import { runPruner } from '../../infra/event-store/prune.ts'
import { webhookEventId } from '../../infra/ids.ts'
import { policiesProjection } from '../../projections/policies/projection.ts'
import { findRetentionCutoffs } from '../../projections/policies/queries.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import { findSession } from '../../projections/sessions/queries.ts'
import { findSelectedSessions } from '../../projections/sessions/selected-sessions.ts'
import { sessionEventTypes } from '../../projections/sessions/tables.ts'
import { webhooksProjection } from '../../projections/webhooks/projection.ts'
import type { OrganizationDataExpired } from '../../schemas/events.ts'
import { visitorErased } from '../support/erased.ts'
import { eventually } from '../support/eventually.ts'
import { openTestLogs } from '../support/logs.ts'
import { silent } from '../support/projections.ts'
import { sessionScored, visitorLink } from '../support/session-scored.ts'
import { openFollowedLog } from './followed-log.ts'
import { attempted, raised, succeeded } from './webhooks/events.ts'
import { id } from './world-events.ts'

const day = 24 * 60 * 60 * 1000
const start = 1_700_000_000_000
const [ending, keeping] = [id('org', 1), id('org', 2)]

interface Story {
  session: string
  organization: string
  environment: 'test' | 'live'
  visitor: string
  /** Time of the newest decision. */
  at: number
  events: DomainEvent[]
}

/** Returns session `n`, of four a day per organization. Its two decisions differ in page and address. */
function story(n: number): Story {
  const at = start + Math.floor((n * day) / 8)
  const organization = n % 2 === 0 ? ending : keeping
  const environment = n % 5 === 0 ? ('test' as const) : ('live' as const)
  const [session, visitor] = [id('sid', n), id('vid', Math.floor(n / 12))]
  const about = { session_id: session, organization_id: organization, environment, created_at: at }
  const decision = (m: number): DomainEvent => {
    const data = sessionScored({
      ...about,
      event_id: id('evt', n * 10 + m),
      evaluated_at: at + m * 1000,
      is_provisional: m === 0,
      visitor: visitorLink({ id: visitor }),
    })
    const request = {
      ...data.request,
      url: `https://shop.example/${n}/${m}`,
      ip_address: `198.51.${m}.${n % 256}`,
    }
    return { type: 'SessionScored', data: { ...data, request } }
  }
  const { created_at: _, ...ids } = about
  const events = [decision(0), decision(1)]
  if (n % 3 === 0) {
    const attached = { client_user_id: `user ${n}`, attached_at: at + 3000 }
    const data = { ...ids, ...attached, event_id: id('evt', n * 10 + 9) }
    events.push({ type: 'ClientUserAttached', data })
  }
  if (n % 4 < 2) {
    const mark = {
      mark_id: id('mrk', n),
      label: 'bot',
      reason: null,
      marked_at: at + 4000,
    } as const
    events.push({
      type: 'SessionMarked',
      data: { ...ids, ...mark, event_id: id('evt', n * 10 + 8) },
    })
  }
  return { session, organization, environment, visitor, at: at + 1000, events }
}

// The data key of this session is new, so retention must keep it.
const fresh = id('sid', 0)

function webhookStory(n: number): DomainEvent[] {
  const { at, organization } = story(n)
  const event = raised(n, [1], { created_at: at, organization_id: organization })
  return [event, attempted([n, 1], 1), succeeded([n, 1], 2)]
}

describe.each(openTestLogs())('expired data, on $name', async (testLog) => {
  const last: Partial<OrganizationDataExpired> = {}
  const pruned = [sessionsProjection, webhooksProjection]

  /** Appends the scheduler's event for one of the two organizations. */
  async function expire(now: number): Promise<void> {
    const data = {
      organization_id: ending,
      sessions_before: now - 10 * day,
      decisions_before: now - 5 * day,
      visitors_before: now - 15 * day,
      webhooks_before: now - 8 * day,
      expired_at: now,
    }
    Object.assign(last, data)
    await world.append(policiesProjection, [{ type: 'OrganizationDataExpired', data }])
  }

  const count = async (text: string) => {
    const { rows } = await world.pool.query<{ n: number }>(
      `select count(*)::integer as n from ${text}`,
    )
    return rows[0]?.n ?? 0
  }
  const counts = async (expected: Record<string, number>) => {
    for (const [text, n] of Object.entries(expected)) expect(await count(text), text).toBe(n)
  }
  const rebuild = (projection: Projection) => world.rebuild(projection, findRetentionCutoffs)
  const unused = `read.search_texts t where organization_id = '${ending}'
    and not exists (select from read.sessions s where t.id in (s.page_text, s.agent_text, s.address_text, s.user_text))
    and not exists (select from read.visitors v where t.id in (v.agent_text, v.address_text))`

  const stories = Array.from({ length: 200 }, (_, n) => story(n))

  const world = await openFollowedLog(testLog, [policiesProjection, ...pruned])
  const { pool } = world
  await insertDataKeys(
    pool,
    stories.map(({ session, at }) => ({
      session_id: session,
      made_at: session === fresh ? Date.now() : at,
      sealed_key: Buffer.from(session),
    })),
  )
  const pruners = pruned.map((projection) =>
    runPruner({
      pool,
      projection,
      findCutoffs: findRetentionCutoffs,
      logger: silent,
      intervalMs: 20,
    }),
  )
  // Expired data is deleted while sessions are added.
  for (let from = 0; from < stories.length; from += 40) {
    const piece = stories.slice(from, from + 40)
    const notified = piece.flatMap((_, i) => webhookStory(from + i))
    await world.append(
      sessionsProjection,
      piece.flatMap(({ events }) => events),
    )
    await world.append(webhooksProjection, notified)
    await expire(piece.at(-1)?.at ?? 0)
  }
  afterAll(async () => {
    await Promise.all(pruners.map((pruner) => pruner.stop()))
    await world.close()
  })

  const stays = (before: number | null | undefined) =>
    stories.filter(({ organization, at }) => organization === keeping || at >= (before ?? 0))

  test('is deleted from every table, and nothing else is', async () => {
    const { sessions_before, decisions_before, visitors_before, webhooks_before } = last
    const kept = { sessions: stays(sessions_before), decisions: stays(decisions_before) }
    const having = (type: DomainEvent['type']) =>
      kept.sessions.filter(({ events }) => events.some((event) => event.type === type)).length
    const visitors = stays(visitors_before).map(
      ({ organization, environment, visitor }) => `${organization} ${environment} ${visitor}`,
    )
    const webhooks = stays(webhooks_before).length
    await eventually(() =>
      counts({
        'read.sessions': kept.sessions.length,
        'read.decisions': 2 * kept.decisions.length,
        'read.client_user_changes': having('ClientUserAttached'),
        'read.session_marks': having('SessionMarked'),
        // Includes sessions whose decisions have expired.
        'read.sessions where mark_id is not null': having('SessionMarked'),
        'read.session_events': 2 * kept.sessions.length,
        'read.visitors': new Set(visitors).size,
        'read.webhook_events': webhooks,
        'read.webhook_deliveries': webhooks,
        'read.webhook_attempts': 2 * webhooks,
        [unused]: 0,
      }),
    )
    expect(kept.sessions.length).toBeLessThan(stories.length)
    expect(kept.decisions.length).toBeLessThan(kept.sessions.length)
  })

  test('includes data keys whose session and visitor have expired', async () => {
    const visitorsStay = stays(last.visitors_before)
    const isKept = (one: Story) =>
      one.session === fresh ||
      stays(last.sessions_before).includes(one) ||
      visitorsStay.some(
        ({ visitor, organization, environment }) =>
          visitor === one.visitor &&
          organization === one.organization &&
          environment === one.environment,
      )
    const kept = stories.filter(isKept)
    expect(kept.length).toBeGreaterThan(stays(last.sessions_before).length)
    expect(kept.length).toBeLessThan(stories.length)
    const { rows } = await world.pool.query<{ session_id: string }>(
      'select session_id from tidegate_keys.session_keys order by 1',
    )
    expect(rows.map(({ session_id }) => session_id)).toEqual(kept.map(({ session }) => session))
    // A later erasure of the visitor includes them.
    const outlived = kept.find(
      (one) => one.session !== fresh && !stays(last.sessions_before).includes(one),
    )
    const { organization, environment, visitor, session } = outlived ?? story(0)
    const scope = { organizationId: organization, environment }
    const found = await findSelectedSessions(world.pool, scope, { visitorId: visitor })
    expect(found.map(({ session_id }) => session_id)).toContain(session)
    expect(await findSession(world.pool, scope, session)).toBeUndefined()
  })

  test('includes a decision that arrived after its expiry, at the next cutoff', async () => {
    const { sessions_before, decisions_before } = last
    const about = stories.find(
      ({ organization, at }) =>
        organization === ending &&
        at >= (sessions_before ?? 0) + day &&
        at < (decisions_before ?? 0),
    )
    if (!about) throw new Error('there is no such session')
    const [first] = about.events
    if (first?.type !== 'SessionScored') throw new Error('no decision')
    const late = { ...first.data, event_id: id('evt', 40_000), evaluated_at: about.at }
    await world.append(sessionsProjection, [{ type: 'SessionScored', data: late }])
    const ofSession = (condition: string) =>
      count(`read.sessions where session_id = '${about.session}' and ${condition}`)
    expect(await ofSession('scoring_version is not null')).toBe(1)
    await expire(start + 26 * day)
    await eventually(async () => expect(await ofSession('scoring_version is null')).toBe(1))
    expect(await count(`read.decisions where session_id = '${about.session}'`)).toBe(0)
  })

  test.each(pruned.map((projection) => [projection.name, projection] as const))(
    'is missing from two rebuilds of %s, too',
    async (_, projection) => {
      await rebuild(projection)
      await rebuild(projection)
    },
    60_000,
  )

  test('includes unreferenced texts that a rebuild restored', async () => {
    await eventually(() => counts({ [unused]: 0 }))
    const texts = await count(`read.search_texts where organization_id = '${keeping}'`)
    const ofKeeping = stories.filter(({ organization }) => organization === keeping)
    expect(texts).toBeGreaterThan(2 * ofKeeping.length)
  })

  test('is not restored by splits of expired sessions, and rebuilds are equal', async () => {
    // The sessions of the visitor, and of the new one, are within two days.
    const moved = stories.filter((_, n) => n % 7 === 0)
    await world.append(
      sessionsProjection,
      moved.map(({ session, organization, environment, visitor }, n) => ({
        type: 'VisitorSplit',
        data: {
          session_id: session,
          organization_id: organization,
          environment,
          confidence: 85,
          event_id: id('evt', 50_000 + n),
          visitor_id: visitor.replace('vid_0', 'vid_9'),
          earlier_visitor_id: visitor,
          cause: 'continuity_returned',
          split_at: start + 26 * day,
        },
      })),
    )
    const known = moved.filter((one) => stays(last.sessions_before).includes(one))
    expect(known.length).toBeLessThan(moved.length)
    expect(await count('read.session_events where visitor is not null')).toBe(known.length)
    await rebuild(sessionsProjection)
    await rebuild(sessionsProjection)
    await expire(start + 28 * day)
    const left = moved.filter((one) => stays(last.sessions_before).includes(one)).length
    await eventually(() => counts({ 'read.session_events where visitor is not null': left }))
    await rebuild(sessionsProjection)
  }, 60_000)

  test('does not prevent the erasure of a session whose decisions have expired', async () => {
    const { sessions_before, decisions_before } = last
    const one = stories.find(
      ({ organization, environment, at }) =>
        organization === ending &&
        environment === 'live' &&
        at >= (sessions_before ?? 0) &&
        at < (decisions_before ?? 0),
    )
    if (!one) throw new Error('there is no such session')
    const events = `read.session_events where event_id = any(array[${sessionEventTypes
      .map((type) => `'${webhookEventId(type, one.session)}'`)
      .join()}])`
    expect(await count(events)).toBe(2)
    const named = { organization_id: ending, changed_visitor_ids: [one.visitor] }
    const data = visitorErased([one.session], { ...named, event_id: id('evt', 60_000) })
    await world.append(sessionsProjection, [{ type: 'VisitorErased', data }])
    expect(await count(events)).toBe(0)
    await rebuild(sessionsProjection)
    stories.splice(stories.indexOf(one), 1)
  }, 60_000)

  test('can expire during a rebuild, which is equal', async () => {
    let asked = 0
    await world.rebuild(sessionsProjection, async (db) => {
      const ended = await findRetentionCutoffs(db)
      asked++
      if (asked > 1) return ended
      await expire(start + 30 * day)
      await eventually(() => counts({ 'read.sessions': stays(last.sessions_before).length }))
      return ended
    })
  }, 60_000)

  test('that is not deleted yet does not make a rebuild differ', async () => {
    await Promise.all(pruners.map((pruner) => pruner.stop()))
    await expire(start + 60 * day)
    const before = await count('read.sessions')
    await rebuild(sessionsProjection)
    expect(await count('read.sessions')).toBeLessThan(before)
    expect(await count('read.sessions')).toBe(stays(last.sessions_before).length)
  }, 60_000)
})
