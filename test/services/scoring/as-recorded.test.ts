import fc from 'fast-check'
import { expect, test } from 'vitest'
import { noNetwork } from '../../../infra/ip/network.ts'
import type { Repeats } from '../../../schemas/events.ts'
import { standardModel } from '../../../services/scoring/model/model.ts'
import type { LearnedAnswers } from '../../../services/scoring/session/answers.ts'
import { signalCatalogue } from '../../../services/scoring/signals/catalogue.ts'
import { evaluate, evaluateAsRecorded, withHistory } from '../../../services/scoring/signals/evaluate.ts'
import { givenSessions, key } from '../cli/rescore/given-sessions.ts'
import { batch, opened, testSession } from './support/events.ts'
import { slugs, stateAfter } from './support/sessions.ts'
import { desktopChrome, desktopFirefox, headlessChrome } from './support/snapshots.ts'

const clients = [desktopChrome, desktopFirefox, headlessChrome].map((client) => ({ client }))
const throughGo = { client: desktopChrome, ja4: 't13d1312h2_f57a46bbacb6_ab7e3b40a677' }
const browsers = [...clients, throughGo].map((some, i) => {
  const session = testSession(`recorded-${i}`, some)
  return [...opened(session), batch(session)]
})
const generated = givenSessions(200, 'recorded').map(({ events }) => events)
const states = [...browsers, ...generated].map(stateAfter)
const network = noNetwork.lookup('', 0)

const answer = fc.constantFrom(true, false, undefined)
const learned = fc.record({ engine: answer, canvas: answer, knowsBank: fc.boolean() }).map(
  ({ engine, canvas, knowsBank }): LearnedAnswers => ({
    ownIds: (number) => [number],
    knowsBank: () => knowsBank,
    right({ question }) {
      const isRight = question.startsWith('canvas') ? canvas : engine
      return isRight === undefined ? undefined : { has: () => isRight }
    },
  }),
)

const count = fc.integer({ min: 0, max: 100 })
const windows = fc.record({ five_minutes: count, hour: count, day: count })
const repeats: fc.Arbitrary<Repeats> = fc.record({
  ...{ address_sessions: windows, network_sessions: windows, visitor_sessions: windows },
  ...{ snapshot_sessions: windows, behavior_sessions: windows, address_visitors: windows },
  ...{ visitor_addresses: windows, visitor_users: windows, user_visitors: windows },
})
const near = fc.record({
  ...{ sessions: count, on_machine: count, at_address: count, pace_visitors: count },
  ...{ gap_seconds: fc.option(count), gap_deviation: fc.option(count) },
})
const history = fc.record({
  ...{ visitorSessions: fc.integer({ min: 0, max: 3 }), isCopied: fc.boolean() },
  ...{ repeats: fc.option(repeats), near: fc.option(near) },
})

// A signal that looks at anything else that no event has needs `unrecorded`, or this fails.
test('what a decision recorded is all that is needed of others to find the same signals again', () => {
  const given = fc.record({
    state: fc.oneof(fc.constantFrom(...states), fc.constantFrom(...states.slice(0, browsers.length))),
    // A client of an app that sends what a page would has answers, too.
    isApp: fc.boolean(),
    header: fc.constantFrom('Mozilla/5.0 (another)', undefined),
    ...{ learned, history, simulationKey: fc.constantFrom(key, undefined) },
  })
  const seen = new Set<string>()
  fc.assert(
    fc.property(given, ({ state: web, isApp, header, learned, history, simulationKey }) => {
      const of = { platform: isApp ? ('ios' as const) : web.platform, user_agent: header ?? web.user_agent }
      const state = { ...web, ...of }
      const live = withHistory(evaluate({ state, network, learned, simulationKey }), history)
      const fired = new Set(slugs(live))
      const again = evaluateAsRecorded({ state, network }, standardModel, {
        fired,
        repeats: history.repeats,
        agent: live.facts.identity,
        attestation: live.facts.attestation,
      })
      expect({ fired: slugs(again), score: again.score }).toEqual({ fired: slugs(live), score: live.score })
      for (const slug of fired) seen.add(slug)
    }),
    { numRuns: 5000 },
  )
  const rested = signalCatalogue.flatMap(({ slug, unrecorded }) => (unrecorded === undefined ? [] : slug))
  expect(rested.length).toBeGreaterThan(5)
  for (const slug of [...rested, 'user_agent_header_mismatch', 'user_agent_rewritten_on_the_way'])
    expect(seen).toContain(slug)
}, 60_000)
