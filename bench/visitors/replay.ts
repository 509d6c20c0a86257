import { noNetwork } from '../../infra/ip/network.ts'
import { createSeededRandom } from '../../services/cli/simulate/generate/random.ts'
import { readFacts } from '../../services/scoring/session/facts.ts'
import { emptyState } from '../../services/scoring/session/state.ts'
import { allKeys, storageKeyOf, visitorKeysOf } from '../../services/scoring/visitors/keys.ts'
import { type KnownVisitor, matchVisitor } from '../../services/scoring/visitors/match.ts'
import { type Profile, profileOf } from '../../services/scoring/visitors/profile.ts'
import {
  firstSeenByStorage,
  type LinkedSession,
  needsSplitCheck,
  sessionsToSplit,
} from '../../services/scoring/visitors/split.ts'
import { evolve, type Habits, habitsOf } from './evolution.ts'
import { createLooks, type Kind, type Look } from './looks.ts'

export interface Browser {
  id: number
  kind: Kind
  look: Look
  habits: Habits
}
export interface Visit {
  browser: number
  look: Look
  at: number
  presented: string | null
  issued: string
  sessionId: string
}

const day = 24 * 60 * 60 * 1000

export function browsersOf(seed: string, kinds: Partial<Record<Kind, number>>): Browser[] {
  const next = createLooks(seed)
  const random = createSeededRandom(seed, 'habits')
  return Object.entries(kinds)
    .flatMap(([kind, count]) => Array.from({ length: count }, () => kind as Kind))
    .map((kind, id) => ({ id, kind, look: next(kind), habits: habitsOf(random) }))
}

export function visitsOf(
  browsers: Browser[],
  { seed, weeks, loss }: { seed: string; weeks: number; loss: number },
): Visit[] {
  const visits: Visit[] = []
  for (const browser of browsers) {
    const random = createSeededRandom(seed, 'visits', browser.id)
    let { look } = browser
    let kept: string | null = null
    let before = 0
    for (let week = 0; week < weeks; week++) {
      const at = (week * 7 + random.next() * 3) * day
      if (week > 0)
        look = evolve(look, {
          habits: browser.habits,
          days: (at - before) / day,
          kind: browser.kind,
          random,
        })
      before = at
      if (random.chance(loss)) kept = null
      const issued: string = kept ?? random.hash(32)
      visits.push({
        browser: browser.id,
        look,
        at,
        presented: kept,
        issued,
        sessionId: `sid_${browser.id}_${week}`,
      })
      kept = issued
    }
  }
  return visits.sort((one, other) => one.at - other.at)
}

interface Linked extends LinkedSession {
  visitor: string
  keys: string[]
  profile: Profile | null
}

/** The visitor of each visit, as production's rules link and split them. */
export const replay = (visits: Visit[]): string[] =>
  replayed(visits).map(({ finally: visitor }) => visitor)

export interface Answered {
  /** The visitor that the visit was of when it was answered, and after all visits. */
  first: string
  finally: string
  /** When it was answered, the oldest session of that visitor was of another browser. */
  wasWrong: boolean
}

export function replayed(visits: Visit[]): Answered[] {
  const memory = createMemory()
  const browsers = new Map(visits.map(({ sessionId, browser }) => [sessionId, browser]))
  const answers = visits.map((visit) => {
    memory.see(visit)
    const first = memory.visitorOf(visit.sessionId)
    return { first, wasWrong: browsers.get(memory.oldestOf(first)) !== visit.browser }
  })
  return visits.map(({ sessionId }, i) => ({
    ...(answers[i] ?? { first: '', wasWrong: false }),
    finally: memory.visitorOf(sessionId),
  }))
}

function createMemory() {
  const visitors = new Map<string, KnownVisitor>()
  const index = new Map<string, Set<string>>()
  const links = new Map<string, Linked>()
  const ofVisitor = new Map<string, Linked[]>()
  // As many as production looks up.
  const byKey = (key: string) =>
    [...(index.get(key) ?? [])]
      .sort()
      .slice(0, 10)
      .flatMap((id) => visitors.get(id) ?? [])

  function put(link: Linked): void {
    links.set(link.session_id, link)
    ofVisitor.set(link.visitor, [...(ofVisitor.get(link.visitor) ?? []), link])
    for (const key of link.keys) index.set(key, (index.get(key) ?? new Set()).add(link.visitor))
  }

  function remake(id: string): void {
    const theirs = [...links.values()].filter((link) => link.visitor === id)
    for (const key of (ofVisitor.get(id) ?? []).flatMap((link) => link.keys))
      index.get(key)?.delete(id)
    ofVisitor.delete(id)
    for (const link of theirs) put(link)
    const began = firstSeenByStorage(theirs)
    const [storage_key] = [...began].sort((one, other) => other[1] - one[1])[0] ?? ['']
    const times = theirs.map(({ linked_at }) => linked_at)
    visitors.set(id, {
      id,
      first_seen_at: Math.min(...times),
      last_seen_at: Math.max(...times),
      sessions: theirs.length,
      profile: theirs.at(-1)?.profile ?? null,
      storage_key,
      apart_from: null,
    })
  }

  return {
    visitorOf: (sessionId: string) => links.get(sessionId)?.visitor ?? '',
    oldestOf: (visitor: string) => ofVisitor.get(visitor)?.[0]?.session_id ?? '',
    see({ look, at, presented, issued, sessionId }: Visit): void {
      const shown = {
        organization_id: 'org',
        environment: 'live' as const,
        presented: presented === null ? [] : [presented],
        issued,
        install: null,
      }
      const profile = profileOfLook(look)
      const keys = visitorKeysOf(shown, profile)
      const match = matchVisitor({ sessionId, openedAt: at, keys, profile, candidates: { byKey } })
      const { id } = match
      let { visitor } = match
      if (visitor && match.basis === 'deterministic' && needsSplitCheck(visitor, keys.presented)) {
        const parted = sessionsToSplit(visitor, keys.presented, ofVisitor.get(id) ?? [])
        const to = `split ${sessionId}`
        for (const moved of parted) {
          const link = links.get(moved)
          if (link) links.set(moved, { ...link, visitor: to })
        }
        if (parted.length > 0) {
          remake(id)
          remake(to)
          visitor = visitors.get(id)
        }
      }
      const storage_key = storageKeyOf(keys) ?? sessionId
      const isNew = !(ofVisitor.get(id) ?? []).some((one) => one.storage_key === storage_key)
      put({
        session_id: sessionId,
        visitor: id,
        storage_key,
        linked_at: at,
        merged_at: null,
        keys: allKeys(keys),
        profile,
      })
      visitors.set(id, {
        id,
        first_seen_at: visitor?.first_seen_at ?? at,
        last_seen_at: at,
        sessions: (visitor?.sessions ?? 0) + 1,
        profile: profile ?? visitor?.profile ?? null,
        storage_key: isNew ? storage_key : (visitor?.storage_key ?? storage_key),
        apart_from: null,
      })
    },
  }
}

const cache = new WeakMap<object, ReturnType<typeof profileOf>>()
export function profileOfLook({ snapshot, ip }: Look) {
  const known = cache.get(snapshot)
  const profile =
    known ??
    profileOf(
      readFacts({
        state: {
          ...emptyState({ session_id: 's', organization_id: 'o', environment: 'live' }, 0),
          snapshot,
          ip_address: ip,
          user_agent: snapshot.navigator.user_agent ?? '',
          batches: 1,
        },
        network: noNetwork.lookup(ip, 0),
      }),
    )
  if (!known) cache.set(snapshot, profile)
  return profile && { ...profile, network: ip.split('.').slice(0, 3).join('.') }
}
