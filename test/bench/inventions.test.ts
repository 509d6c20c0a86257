import { expect, test } from 'vitest'
import { inventions } from '../../bench/detection/inventions.ts'
import { type LearnedAnswers, noLearnedAnswers } from '../../projections/answers/learned.ts'
import { snapshotSchema } from '../../schemas/observations.ts'
import { testSession } from '../services/scoring/support/events.ts'
import { evaluateState, stateOf } from '../services/scoring/support/sessions.ts'
import { proofsOf } from '../services/scoring/support/snapshots.ts'

// The deployment knows what engines answer to its own questions, which nobody can look up.
const taught: LearnedAnswers = {
  answersTo: () => undefined,
  bankQuestions: () => [],
  progress: () => ({ isLearned: true, visitors: 20, needed: 20 }),
}

type Invention = (typeof inventions)[number]

function verdictOf({ name, platform, body }: Invention, learned: LearnedAnswers): string {
  const snapshot = snapshotSchema.parse(body(`seed of ${name}`).snapshot)
  const proofs = proofsOf(snapshot.navigator.user_agent ?? '')
  const client = { snapshot: platform === 'web' ? { ...snapshot, proofs } : snapshot }
  const state = stateOf(testSession(name, { client, platform }))
  return evaluateState(state, { learned }).score.verdict
}

test('there are more than 40, of pages and of apps', () => {
  expect(inventions.length).toBeGreaterThan(40)
  expect(new Set(inventions.map(({ platform }) => platform))).toEqual(
    new Set(['web', 'ios', 'android']),
  )
})

test.each(inventions.map((one) => [one.name, one] as const))(
  '%s is not human on a taught server',
  (_, one) => {
    expect(verdictOf(one, taught)).not.toBe('human')
  },
)

test.each(inventions.filter(({ isFresh }) => isFresh).map((one) => [one.name, one] as const))(
  '%s leaves something out, and is human nowhere',
  (_, one) => {
    expect(verdictOf(one, noLearnedAnswers)).not.toBe('human')
  },
)
