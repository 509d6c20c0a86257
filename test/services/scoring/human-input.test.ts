import { describe, expect, it } from 'vitest'
import { highlightsOf } from '../../../services/scoring/explain/highlights.ts'
import { testSession } from './support/events.ts'
import { evaluateState, evaluationOf, judgedSignals, slugs, stateOf } from './support/sessions.ts'
import { androidChrome, type Client, desktopChrome, desktopFirefox } from './support/snapshots.ts'

const evaluated = (behavior: object, client: Client = desktopChrome) =>
  evaluateState(stateOf(testSession('hands', { client }), behavior))

const keys = (count: number) => ({ events: count, keys: count })
const typed = { ...keys(60), letters: 50, hold_mean: 95, hold_std: 24, interval_mean: 210 }
const pressed = { clicks: 5, presses: 5 }
const filledByProgram = {
  events: 8,
  focuses: 2,
  uncaused_focuses: 2,
  silent_changes: 2,
  unfocused_inputs: 2,
  submits: 1,
}

/** Legitimate ways to use a page that resemble a program in some measurements. */
const people: [string, behavior: object, client?: Client][] = [
  [
    'a remote desktop with few pointer events',
    {
      mouse: { events: 80, moves: 75, single: 75, ...pressed, jumps: 5 },
      keyboard: { ...typed, interval_std: 90 },
    },
  ],
  [
    'a remote desktop used from a touch screen',
    { mouse: { events: 10, moves: 5, ...pressed, jumps: 4 } },
  ],
  [
    'voice control that clicks and dictates',
    {
      mouse: { events: 10, moves: 5, ...pressed, instant_presses: 5, jumps: 3, activations: 5 },
      form: { events: 9, focuses: 3, silent_changes: 3, submits: 1 },
    },
  ],
  [
    'voice control that clicks once',
    { mouse: { events: 2, moves: 1, clicks: 1, presses: 1, instant_presses: 1, activations: 1 } },
  ],
  [
    'eye control with an on-screen keyboard',
    {
      mouse: { events: 90, moves: 85, single: 85, ...pressed, jumps: 4 },
      keyboard: { ...keys(30), letters: 25, hold_mean: 50, hold_std: 2, interval_mean: 1400 },
    },
  ],
  [
    'a keyboard only',
    {
      keyboard: { ...typed, rollovers: 9, interval_std: 80 },
      form: { events: 40, focuses: 6, submits: 1 },
      mouse: { activations: 2 },
    },
  ],
  [
    'a password manager that fills without focus',
    {
      form: filledByProgram,
      mouse: { events: 40, moves: 39, clicks: 1, presses: 1, coalesced: 9 },
    },
  ],
  ['a password manager that submits the form', { form: filledByProgram }],
  [
    'autofill by the browser',
    {
      form: { events: 12, focuses: 1, autofills: 6, submits: 1 },
      mouse: { events: 40, moves: 38, clicks: 2, presses: 2, coalesced: 9 },
    },
  ],
  [
    'a touchpad whose driver sets the duration of taps',
    { mouse: { events: 90, moves: 80, single: 80, ...pressed, instant_presses: 5 } },
  ],
  [
    'a stylus on a phone',
    {
      mouse: { events: 60, moves: 60 },
      touch: { events: 10, touches: 5, radius_std: 0, interval_std: 200, plain: 5 },
    },
    androidChrome,
  ],
  [
    'a phone in a dock',
    { mouse: { events: 65, moves: 60, ...pressed }, keyboard: { ...typed, rollovers: 9 } },
    androidChrome,
  ],
  [
    'one hand on the mouse and one on the keyboard',
    {
      mouse: { events: 95, moves: 90, ...pressed },
      keyboard: { ...typed, rollovers: 9, hasty: 3, interval_std: 80 },
    },
    desktopFirefox,
  ],
]

it.each(people)('is human with %s', (_, behavior, client) => {
  const evaluation = evaluated(behavior, client)
  expect([evaluation.score.verdict, slugs(evaluation)]).toEqual(['human', slugs(evaluation)])
})

it('signals about pointer paths are weak', () => {
  const way = { pointer_jumps: true, movement_never_coalesced: true }
  const signals = judgedSignals.filter(({ slug }) => slug in way)
  expect(signals.map(({ strength }) => strength)).toEqual(['weak', 'weak'])
})

describe('highlights of input', () => {
  const behavioral = judgedSignals.filter(
    ({ category, role }) => category === 'behavioral' && role !== 'context',
  )
  const busy = evaluated({
    mouse: {
      events: 30,
      moves: 20,
      clicks: 9,
      presses: 9,
      instant_presses: 9,
      clicks_exact_center: 9,
    },
    keyboard: { ...keys(40), hold_mean: 3, interval_mean: 8 },
    touch: { events: 9, touches: 4, radius_std: 2 },
    form: { events: 5, silent_changes: 3, time_to_submit_ms: 90 },
  })

  it.each(behavioral.map((signal) => [signal.slug, signal] as const))(
    'show the numbers of %s',
    (_, signal) => {
      const shown = highlightsOf(evaluationOf([signal], busy.facts))
      expect(shown.flatMap(({ evidence }) => evidence?.map(({ name }) => name))).toEqual([
        expect.stringMatching(new RegExp(`^${signal.name}: .*\\d`)),
      ])
    },
  )

  it('show no numbers for signals without any', () => {
    const other = judgedSignals.filter(({ slug }) => slug === 'bot_like_user_agent')
    const [shown] = highlightsOf(evaluationOf(other, busy.facts))
    expect(shown?.evidence).toEqual([{ signal: 'bot_like_user_agent', name: other[0]?.name }])
  })
})
