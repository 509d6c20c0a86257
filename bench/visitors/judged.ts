import { component, components } from '../../services/scoring/visitors/profile.ts'
import { journeysOf, type Loss } from './journeys.ts'
import { type Device, populationOf } from './population.ts'
import { type Answered, profileOfLook, replayed, type Visit } from './replay.ts'

export interface Judgement {
  devices: number
  visits: number
  /** Share of visits that were matched to another device's visitor. */
  wrong: number
  /** Share of visitors with more than one device at the end. */
  mixed: number
  idsPerBrowser: number
  /** The same, of a matcher that knows which looks only one device ever has. */
  bound: number
}

export interface JudgedRun {
  name: string
  /** `judged` or `fitted`. */
  half: string
  group: string
  judgement: Judgement
}

const runs: { name: string; loss: Loss; isStaggered?: boolean }[] = [
  { name: 'as people lose it', loss: 'realistic' },
  { name: 'never', loss: 'never' },
  { name: '10 of 100', loss: 0.1 },
  { name: 'always', loss: 'always' },
  {
    name: 'as people lose it, devices begin one after another',
    loss: 'realistic',
    isStaggered: true,
  },
]

const groups: [string, (device: Device) => boolean][] = [
  ['all', () => true],
  ['phones', ({ kind }) => kind === 'phone'],
  ['phones in homes of one model', ({ kind, hasTwins }) => kind === 'phone' && hasTwins],
  ['desktops', ({ kind }) => kind === 'desktop'],
  ['office machines', ({ kind }) => kind === 'office'],
]

export function* judgedRuns(seed: string): Generator<JudgedRun> {
  const devices = populationOf(seed)
  for (const { name, ...journey } of runs) {
    const visits = journeysOf(devices, seed, journey)
    const answers = replayed(visits)
    for (const half of ['judged', 'fitted'] as const)
      for (const [group, isIn] of groups) {
        if (half === 'fitted' && group !== 'all') continue
        const some = devices.filter((one) => one.isJudged === (half === 'judged') && isIn(one))
        yield { name, half, group, judgement: judge(some, { visits, answers }) }
      }
  }
}

interface Replayed {
  visits: Visit[]
  answers: Answered[]
}

export function judge(devices: Device[], { visits, answers }: Replayed): Judgement {
  const bound = boundOf(visits)
  const ids = new Set(devices.map(({ id }) => id))
  const ofVisitor = new Map<string, Set<number>>()
  visits.forEach(({ browser }, i) => {
    const { finally: visitor = '' } = answers[i] ?? {}
    ofVisitor.set(visitor, (ofVisitor.get(visitor) ?? new Set()).add(browser))
  })
  const theirs = visits.flatMap(({ browser }, i) =>
    ids.has(browser) && answers[i] ? [{ browser, ...answers[i] }] : [],
  )
  const visitors = new Set(theirs.map((one) => one.finally))
  const pairs = new Set(theirs.map((one) => `${one.browser} ${one.finally}`))
  const seen = new Set(theirs.map(({ browser }) => browser))
  const share = (count: number, of: number) => (of === 0 ? 0 : count / of)
  return {
    devices: seen.size,
    visits: theirs.length,
    wrong: share(theirs.filter(({ wasWrong }) => wasWrong).length, theirs.length),
    mixed: share(
      [...visitors].filter((id) => (ofVisitor.get(id)?.size ?? 0) > 1).length,
      visitors.size,
    ),
    idsPerBrowser: share(pairs.size, seen.size),
    bound: share(
      [...seen].reduce((sum, id) => sum + (bound.get(id) ?? 0), 0),
      seen.size,
    ),
  }
}

/** Returns the number of ids of each browser if every look that only one browser has is matched. */
function boundOf(visits: Visit[]): Map<number, number> {
  const looks = visits.map(({ look }) => nameOf(look))
  const owners = new Map<string, Set<number>>()
  visits.forEach(({ browser }, i) => {
    const name = looks[i] ?? ''
    owners.set(name, (owners.get(name) ?? new Set()).add(browser))
  })
  const found = new Map<number, { ids: number; isKnown: boolean }>()
  visits.forEach(({ browser, presented }, i) => {
    const { ids, isKnown } = found.get(browser) ?? { ids: 0, isKnown: false }
    const isOwn = owners.get(looks[i] ?? '')?.size === 1
    const isNew = presented === null && !(isOwn && isKnown)
    found.set(browser, { ids: ids + (isNew ? 1 : 0), isKnown: isKnown || isOwn })
  })
  return new Map([...found].map(([browser, { ids }]) => [browser, ids]))
}

function nameOf(look: Visit['look']): string {
  const profile = profileOfLook(look)
  return profile
    ? [...components.map((name) => component(profile, name)), profile.network].join()
    : ''
}
