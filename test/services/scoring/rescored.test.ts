import fc from 'fast-check'
import { expect, it } from 'vitest'
import { modelId, type ScoringModel, standardModel } from '../../../services/scoring/model/model.ts'
import { scoreOf } from '../../../services/scoring/model/score.ts'
import { plainRisk, plainScore } from '../../support/plain-score.ts'
import { batch, opened, platformOf, testSession } from './support/events.ts'
import { decisionAbout, evaluateState, signalsOf, slugs, stateAfter } from './support/sessions.ts'
import * as clients from './support/snapshots.ts'

const flag = fc.constantFrom(true, false, null)
const count = fc.integer({ min: 0, max: 60 })
// Half of them as the browser is, so that people are among them.
const parts = fc.oneof(
  fc.constant({}),
  fc.record({
    automation: fc.record({
      globals: fc.subarray(['emit', 'callPhantom', '__pwInitScripts', 'spawn']),
      cdp_runtime: flag,
      electron: flag,
    }),
    tamper: fc.record({
      iframe_srcdoc_proxy: flag,
      chrome_runtime_faked: flag,
      patched_functions: fc.subarray([
        'permissions.query',
        'canvas.toDataURL',
        'navigator.webdriver',
      ]),
    }),
    canvas: fc.record({ noise_detected: flag }),
  }),
)
const behavior = fc.record({
  mouse: fc.record({
    events: count,
    moves: count,
    clicks: count,
    presses: count,
    clicks_exact_center: count,
  }),
  keyboard: fc.record({
    events: count,
    keys: count,
    rollovers: count,
    shiftless: fc.constantFrom(0, 0, 3),
  }),
  form: fc.record({ events: count, silent_changes: count, submits: fc.constantFrom(0, 1) }),
})
const base = fc.constantFrom(
  clients.desktopChrome,
  clients.desktopFirefox,
  clients.desktopSafari,
  clients.androidChrome,
  clients.headlessChrome,
  clients.bareChromium,
)
const generated = fc
  .record({ base, parts, behavior, hasInput: fc.boolean(), hasSnapshot: fc.boolean() })
  .map(({ base, parts, behavior, hasInput, hasSnapshot }) => {
    const client = clients.withParts(base, parts)
    const session = testSession('rescored', { client, platform: platformOf(client) })
    const observations = {
      ...(hasSnapshot && { snapshot: client.snapshot }),
      ...(hasInput && { behavior }),
    }
    return stateAfter([...opened(session), batch(session, { observations })])
  })
const runs = { numRuns: 500 }

it('a recorded score follows from the signals that fired and the model that the decision names', () => {
  const verdicts = new Set<string>()
  fc.assert(
    fc.property(generated, (state) => {
      const decision = decisionAbout(state)
      const { has_snapshot, risk_score: risk, verdict, score_breakdown: breakdown } = decision
      const signals = signalsOf(decision)
      const score = scoreOf(standardModel, { signals, hasSnapshot: has_snapshot === true })
      expect(decision.model).toBe(modelId(standardModel))
      expect(score).toMatchObject({ risk, verdict, breakdown })
      verdicts.add(verdict)
    }),
    runs,
  )
  expect([...verdicts].toSorted()).toEqual(['bot', 'human', 'inconclusive'])
})

it('another model decides as it says of the signals that fired by this one', () => {
  const caps = { weak: 70, habits: 90, trust: 2, unconfirmed: 65 }
  const other: ScoringModel = { ...standardModel, name: 'other', caps }
  fc.assert(
    fc.property(generated, (state) => {
      const { fired, facts } = evaluateState(state)
      const hasSnapshot = facts.snapshot !== null
      const rehearsed = scoreOf(other, { signals: slugs({ fired }), hasSnapshot })
      expect(evaluateState(state, {}, other).score).toEqual(rehearsed)
    }),
    runs,
  )
})

it('whoever computes a score from the document alone gets the same', () => {
  const row = fc.record({
    signals: fc.subarray(Object.keys(standardModel.signals), { maxLength: 12 }),
    has_snapshot: fc.boolean(),
  })
  fc.assert(
    fc.property(row, (row) => {
      // Half a point is rounded up or down by the order in which one has multiplied.
      fc.pre(Math.abs((plainRisk(standardModel, row) % 1) - 0.5) > 1e-6)
      const { risk, verdict } = scoreOf(standardModel, {
        signals: row.signals,
        hasSnapshot: row.has_snapshot,
      })
      expect(plainScore(standardModel, row)).toEqual({ risk_score: risk, verdict })
    }),
    { numRuns: 2000 },
  )
})
