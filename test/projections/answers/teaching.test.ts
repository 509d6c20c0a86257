import { expect, test } from 'vitest'
import { answersOf } from '../../../bench/recorded-answers.ts'
import { bankNumberOf } from '../../../infra/challenges/bank.ts'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { decideEngineAnswers, teachingQuestions } from '../../../projections/answers/teaching.ts'
import {
  desktopChrome,
  desktopFirefox,
  desktopSafari,
} from '../../services/scoring/support/snapshots.ts'

const now = Date.UTC(2026, 10, 24)
const { all: keys } = createKeyring(Buffer.alloc(32, 7).toString('base64'))
const questions = teachingQuestions(keys, now)
const agentOf = (client: typeof desktopChrome) => client.snapshot.navigator?.user_agent ?? ''
const answersBy = (userAgent: string) =>
  answersOf(userAgent, { challenge: 'x', timingNonce: 'y', engineQuestions: questions })
    .engine_answers

const chrome = agentOf(desktopChrome)

function taughtBy(userAgent: string, answers = answersBy(userAgent)) {
  const given = { questions, answers, userAgent }
  return decideEngineAnswers({ organizationId: 'org_1', ...given, by: 'robin', now })
}

test.each([
  ['blink', chrome],
  ['gecko', agentOf(desktopFirefox)],
  ['webkit', agentOf(desktopSafari)],
])(
  'a taught %s engine has the hashes of the answers to private questions only',
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
    'a browser that omits an answer',
    chrome,
    answersBy(chrome).slice(1),
    /^The browser answered only \d+ of \d+ questions/,
  ],
  [
    'a browser with the answers of another engine',
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
    'a browser with junk answers to private questions',
    chrome,
    answersBy(chrome).map((one) =>
      bankNumberOf(one.id) === undefined ? one : { ...one, answer: 'x' },
    ),
    /gave \d{4} answers that no engine can give/,
  ],
])('nothing is learned from %s', (_, userAgent, answers, reason) => {
  expect(taughtBy(userAgent, answers)).toMatch(reason)
})
