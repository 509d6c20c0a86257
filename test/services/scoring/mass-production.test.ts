import { describe, expect, it } from 'vitest'
import { noNetwork } from '../../../infra/ip/network.ts'
import { noLearnedAnswers } from '../../../projections/answers/learned.ts'
import { countRepeats } from '../../../projections/repeats/queries.ts'
import type { Behavior } from '../../../schemas/observations.ts'
import { highlightsOf } from '../../../services/scoring/explain/highlights.ts'
import { type Evaluation, withHistory } from '../../../services/scoring/signals/evaluate.ts'
import { hashesOf } from '../../../services/scoring/signals/repeats.ts'
import { useReadModel } from '../../projections/read-model.ts'
import {
  type About,
  askedAbout,
  opened as decided,
  recorded,
  repeatsProjection,
  start,
} from '../../projections/repeats/events.ts'
import { createNumbers } from '../../support/hand.ts'
import { peoplesHands, withNoise } from '../../support/hands.ts'
import { testSession } from './support/events.ts'
import { evaluateState, slugs, stateOf } from './support/sessions.ts'
import { desktopChrome, withParts } from './support/snapshots.ts'

const world = await useReadModel(repeatsProjection, (event) => recorded(event))
const seed = Math.floor(Math.random() * 2 ** 31)

interface Came {
  hands: Behavior
  /** Milliseconds after the first session. */
  at: number
  ip?: string
  client?: typeof desktopChrome
}

/** Evaluates sessions of new visitors one after another, by default from one address with equal machines. */
async function judged(sessions: Came[]): Promise<Evaluation[]> {
  const evaluations: Evaluation[] = []
  for (const [session, came] of sessions.entries()) {
    const { hands, at, ip = '203.0.113.9', client = desktopChrome } = came
    const test = testSession(`session ${session}`, { client })
    const network = noNetwork.lookup(ip, start)
    const own = evaluateState(stateOf(test, hands), { network, learned: noLearnedAnswers })
    const { snapshot_hash: snapshot, behavior_hash: behavior } = hashesOf(own.facts)
    const about: About = { session, visitor: session, snapshot, behavior, ip, at: start + at }
    const [counted] = await countRepeats(world.database.pool, [askedAbout(about)])
    if (!counted) throw new Error('nothing was counted')
    evaluations.push(withHistory(own, { visitorSessions: 1, ...counted }))
    await world.given(decided(about))
  }
  return evaluations
}

const ofMasses = ['replayed', 'mass_produced', 'steady'].flatMap((word) => [word, `nearly_${word}`])
const raised = (evaluations: Evaluation[]) =>
  evaluations
    .flatMap((one) => slugs(one))
    .filter(
      (slug) => slug !== 'replayed_snapshot' && ofMasses.some((word) => slug.startsWith(word)),
    )

const minute = 60_000

describe(`visitors from one address (seed ${seed})`, () => {
  it('forty people in one office with equal machines fire no signal', async () => {
    const next = createNumbers(seed)
    let at = 0
    const people = peoplesHands(`office ${seed}`, 40).map((hands) => {
      at -= Math.log(1 - next()) * minute
      return { hands, at: Math.round(at) }
    })
    const evaluations = await judged(people)
    expect(raised(evaluations)).toEqual([])
    expect(evaluations.map(({ score }) => score.verdict)).not.toContain('bot')
  })

  it('a recording replayed with noise is detected at any address and rate', async () => {
    const next = createNumbers(seed)
    const [hands] = peoplesHands(`one ${seed}`, 1)
    if (!hands) throw new Error('nobody')
    const copies = Array.from({ length: 10 }, (_, n) => ({
      hands: n === 0 ? hands : withNoise(hands, 0.02, next),
      at: n * n * minute,
      ip: `198.51.${n}.7`,
      client: withParts(desktopChrome, { navigator: { device_memory: n % 2 === 0 ? 8 : 4 } }),
    }))
    const [original, ...others] = await judged(copies)
    if (!original) throw new Error('nothing')
    expect(raised([original])).toEqual([])
    const missed = others.filter((one) => !slugs(one).includes('nearly_replayed_session'))
    expect(missed.length).toBeLessThanOrEqual(1)
    const last = others.at(-1)
    if (!last) throw new Error('nothing')
    expect(last.score.verdict).toBe('inconclusive')
    const highlights = highlightsOf(last)
    expect(highlights.find(({ key }) => key === 'mass_production')?.evidence?.[0]?.name).toMatch(
      /: \d+ sessions within a day$/,
    )
  })

  it('a program that creates a visitor a minute is a bot from the 13th on', async () => {
    const next = createNumbers(seed)
    const [hands] = peoplesHands(`program ${seed}`, 1)
    if (!hands) throw new Error('nobody')
    const sessions = Array.from({ length: 30 }, (_, n) => ({
      hands: withNoise(hands, 0.03, next),
      at: Math.round(n * minute + next() * 5000),
    }))
    const evaluations = await judged(sessions)
    expect(evaluations.slice(29).flatMap(slugs)).toEqual(
      expect.arrayContaining([
        'nearly_replayed_session',
        'mass_produced_visitors',
        'steady_arrivals',
      ]),
    )
    expect(evaluations.slice(12).filter(({ score }) => score.verdict !== 'bot')).toEqual([])
  })

  it('visitors with one typing pace are mass-produced, although their sessions differ', async () => {
    const next = createNumbers(seed)
    const people = peoplesHands(`paced ${seed}`, 24)
    const evaluations = await judged(
      people.map((own, n) => ({ hands: ofOnePace(own, next), at: n * n * minute })),
    )
    expect(evaluations.slice(23).flatMap(slugs)).toContain('mass_produced_visitors')
  })
})

/** Returns input with key intervals and hold times drawn from one range, and everything else the person's own. */
function ofOnePace(own: Behavior, next: () => number): Behavior {
  const around = (value: number) => value * (0.97 + 0.06 * next())
  const keys = 20 + Math.round(next() * 40)
  const empty = { events: 0, interval_mean: null, interval_std: null }
  return {
    ...own,
    mouse: { ...own.mouse, ...empty, moves: 0, speed_std: null },
    touch: { ...own.touch, ...empty, radius_std: null },
    scroll: { ...own.scroll, interval_mean: null, interval_std: null },
    keyboard: {
      ...own.keyboard,
      events: 2 * keys,
      keys,
      duration_ms: 100 * keys,
      interval_mean: around(104),
      interval_std: around(43),
      hold_mean: around(61),
      hold_std: around(17),
    },
  }
}
