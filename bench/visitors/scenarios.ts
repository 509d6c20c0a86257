import { createSeededRandom } from '../../services/cli/simulate/generate/random.ts'
import { address, type Kind } from './looks.ts'
import { browsersOf, type Visit, visitsOf } from './replay.ts'

export interface Scenario {
  name: string
  /** Probability, 0 to 1, that a browser has lost its storage before a visit. */
  loss: number
  browsers: number
  visits: Visit[]
}

interface Population {
  name: string
  kinds: Partial<Record<Kind, number>>
  weeks?: number
  /** All in one network, as behind one address. */
  isOneNetwork?: boolean
}

const mixed = (size: number) => ({
  desktop: size * 0.65,
  phone: size * 0.32,
  hardened: size * 0.03,
})

const populations: Population[] = [
  { name: 'desktops', kinds: { desktop: 211 } },
  { name: 'desktops, one network', kinds: { desktop: 211 }, isOneNetwork: true },
  { name: 'phones', kinds: { phone: 50 } },
  { name: 'browsers that resist fingerprinting', kinds: { hardened: 50 } },
  { name: 'mixed', kinds: mixed(200) },
  { name: 'mixed', kinds: mixed(2000) },
  { name: 'mixed, six weeks', kinds: mixed(20_000), weeks: 6 },
]

export function* scenarios(seed: string): Generator<Scenario> {
  for (const { name, kinds, weeks = 12, isOneNetwork = false } of populations) {
    const all = browsersOf(seed, kinds)
    for (const loss of [1, 0.1]) {
      const visits = visitsOf(all, { seed, weeks, loss })
      const placed = isOneNetwork ? visits.map((visit) => at(visit, '192.0.2.1')) : visits
      yield { name, loss, browsers: all.length, visits: placed }
    }
  }
}

const at = (visit: Visit, ip: string): Visit => ({ ...visit, look: { ...visit.look, ip } })

export interface Twins {
  count: number
  place: 'one network' | 'networks of their own'
  /** Between the first visits. */
  apart: 'minutes' | 'hours'
  firsts: Visit[]
  returns: Visit[]
}

const minute = 60_000

/** Machines of one kind: each comes, and then each comes back with what it kept. */
export function twinsOf(seed: string): Twins[] {
  const look = browsersOf(seed, { desktop: 30 }).map((browser) => browser.look)[7]
  if (!look) throw new Error('no browser')
  const places = ['one network', 'networks of their own'] as const
  const gaps = ['minutes', 'hours'] as const
  return [2, 10, 50].flatMap((count) =>
    places.flatMap((place) =>
      gaps.map((apart): Twins => {
        const random = createSeededRandom(seed, 'twins', count, place)
        const gap = apart === 'minutes' ? 3 * minute : 180 * minute
        const firsts = Array.from({ length: count }, (_, browser): Visit => {
          const ip = place === 'one network' ? look.ip : address(random)
          const sessionId = `sid_${browser}_first`
          return {
            browser,
            look: { ...look, ip },
            at: browser * gap,
            presented: null,
            issued: random.hash(32),
            sessionId,
          }
        })
        const returns = firsts.map(
          (visit, i): Visit => ({
            ...visit,
            at: (count + i) * gap + 24 * 60 * minute,
            presented: visit.issued,
            sessionId: `sid_${i}_back`,
          }),
        )
        return { count, place, apart, firsts, returns }
      }),
    ),
  )
}
