import { expect, test } from 'vitest'
import { answersOf } from '../../../bench/recorded-answers.ts'
import { bankNumberOf } from '../../../infra/challenges/bank.ts'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { decideLesson, lessonQuestions } from '../../../projections/answers/teaching.ts'
import {
  desktopChrome,
  desktopFirefox,
  desktopSafari,
} from '../../services/scoring/support/snapshots.ts'

const now = Date.UTC(2026, 10, 24)
const { all: keys } = createKeyring(Buffer.alloc(32, 7).toString('base64'))
const questions = lessonQuestions(keys, now)
const agentOf = (client: typeof desktopChrome) => client.snapshot.navigator?.user_agent ?? ''
const answersBy = (userAgent: string) =>
  answersOf(userAgent, { challenge: 'x', timingNonce: 'y', engineQuestions: questions })
    .engine_answers

const chrome = agentOf(desktopChrome)

function taughtBy(userAgent: string, answers = answersBy(userAgent)) {
  return decideLesson({ organizationId: 'org_1', questions, answers, userAgent, by: 'robin', now })
}

test.each([
  ['blink', chrome],
  ['gecko', agentOf(desktopFirefox)],
  ['webkit', agentOf(desktopSafari)],
])(
  'a lesson of %s has hashes of the answers to the own questions alone',
  (engine_family, userAgent) => {
    const learned = taughtBy(userAgent)
    if (typeof learned === 'string') throw new Error(learned)
    const { answers, ...about } = learned
    expect(about).toEqual({
      organization_id: 'org_1',
      engine_family,
      browser: userAgent,
      learned_by: 'robin',
      learned_at: now,
    })
    const own = questions.filter(({ id }) => bankNumberOf(id) !== undefined)
    expect(own.length).toBeGreaterThan(3000)
    expect(new Set(Object.keys(answers))).toEqual(new Set(own.map(({ id }) => String(id))))
    expect(Object.values(answers).every((digest) => /^[\w-]{12}$/.test(digest))).toBe(true)
  },
)

test.each([
  ['an unknown browser', 'Mozilla/5.0 Mine/1.0', answersBy(chrome), /^Unknown browser engine/],
  [
    'answers left out',
    chrome,
    answersBy(chrome).slice(1),
    /^The browser answered only \d+ of \d+ questions/,
  ],
  [
    'answers of another engine',
    chrome,
    answersBy(agentOf(desktopFirefox)),
    /answers do not match the user agent/,
  ],
  [
    'a Chrome that poses as Safari',
    agentOf(desktopSafari),
    answersBy(chrome),
    /answers do not match the user/,
  ],
  [
    'junk to the own questions',
    chrome,
    answersBy(chrome).map((one) =>
      bankNumberOf(one.id) === undefined ? one : { ...one, answer: 'x' },
    ),
    /gave \d{4} answers that no engine can give/,
  ],
])('nothing is learned of %s', (_, userAgent, answers, reason) => {
  expect(taughtBy(userAgent, answers)).toMatch(reason)
})
