import { describe, expect, test } from 'vitest'
import { goalsOf } from '../../bench/detection/goals.ts'
import {
  areaUnderCurve,
  caughtByPeersOnly,
  changesSince,
  countVerdicts,
  type JudgedRow,
  rocOf,
} from '../../bench/detection/measures.ts'
import { hurtsPeople, sharesOf } from '../../bench/detection/traces/gate.ts'
import { readTrace } from '../../bench/detection/traces/load.ts'

const nobody: JudgedRow = {
  name: 'a/load',
  case: 'a',
  kind: 'loading',
  family: 'Chromium',
  framework: 'f',
  version: '1',
  acts: false,
  seed: 's',
  verdict: 'human',
  score: 0,
  signals_fired: [],
  botd: null,
  fpscanner: null,
  error: null,
}
const risk = (signal: string) => ({
  signal,
  role: 'risk',
  category: '',
  strength: '',
  signal_score: 1,
})

describe('measures', () => {
  const bot: JudgedRow = {
    ...nobody,
    name: 'b/load',
    verdict: 'bot',
    score: 90,
    signals_fired: [risk('x')],
  }
  const person: JudgedRow = { ...nobody, name: 'p/load', kind: 'person', score: 20 }

  test('verdicts are counted by what a row is', () => {
    expect(countVerdicts([bot, nobody, person], ({ kind }) => kind)).toEqual([
      { name: 'loading', rows: 2, bot: 1, inconclusive: 0, human: 1 },
      { name: 'person', rows: 1, bot: 0, inconclusive: 0, human: 1 },
    ])
  })

  test('the curve counts everything but people as positive', () => {
    const rows = [bot, nobody, person]
    const at = (threshold: number) => rocOf(rows).find((point) => point.threshold === threshold)
    expect(at(20)).toMatchObject({ truePositives: 0.5, falsePositives: 1 })
    expect(at(30)).toMatchObject({ truePositives: 0.5, falsePositives: 0 })
    expect(areaUnderCurve(rows)).toBe(0.5)
    expect(areaUnderCurve([{ ...bot, score: 20 }, person])).toBe(0.5)
  })

  test('a change is a verdict, a score, or a case that came or went', () => {
    const failed = { ...nobody, name: 'c/load', verdict: null, score: null, error: 'no browser' }
    expect(changesSince([bot, nobody], [{ ...bot, score: 91 }, nobody, failed])).toEqual([
      { name: 'b/load', before: 'bot 90', after: 'bot 91' },
      { name: 'c/load', before: 'absent', after: 'failed' },
    ])
  })

  test('a peer is right only with what it finds on no person', () => {
    const says = (...why: string[]) => ({ fpscanner: { bot: true, why } })
    const rows = [
      { ...nobody, ...says('gpu', 'cdp') },
      { ...bot, ...says('cdp') },
      { ...person, ...says('gpu') },
    ]
    expect(caughtByPeersOnly(rows)).toEqual([
      { name: 'a/load', verdict: 'human', score: 0, found: ['fpscanner cdp'] },
    ])
  })
})

describe('goals', () => {
  const of = (goal: RegExp, rows: JudgedRow[]) => goalsOf(rows).find((one) => goal.test(one.goal))
  const attack = {
    class: 'repository',
    claim: 'chrome',
    isTaught: true,
    hasInput: true,
    isPlausible: true,
  } as const
  type Attack = NonNullable<JudgedRow['attack']>
  const forger = (some: Partial<Attack> = {}, more: Partial<JudgedRow> = {}): JudgedRow => ({
    ...nobody,
    kind: 'forger',
    attack: { ...attack, ...some },
    ...more,
  })
  const doubted = { verdict: 'inconclusive' } as const

  test('60 forgers that claim a taught engine are needed, none of them human', () => {
    const caught = Array.from({ length: 60 }, () => forger({}, doubted))
    expect(of(/was taught/, caught)).toMatchObject({ measured: '0 of 60 human', isMet: true })
    expect(of(/was taught/, caught.slice(1))?.isMet).toBe(false)
    const missed = { measured: '1 of 61 human', isMet: false }
    expect(of(/was taught/, [...caught, forger()])).toMatchObject(missed)
    const oracle = forger({ class: 'oracle' })
    expect(of(/was taught/, [...caught, oracle])?.isMet).toBe(true)
    expect(of(/live oracle/, [oracle])).toMatchObject({ measured: '1 of 1 human', isMet: null })
  })

  test('where the engine was not taught, copied input with plausible answers is only counted', () => {
    const untaught = { isTaught: false }
    const junk = forger({ ...untaught, isPlausible: false }, doubted)
    const rows = [forger(untaught), junk]
    expect(of(/or without input/, rows)?.isMet).toBe(true)
    expect(of(/copied input/, rows)).toMatchObject({ measured: '1 of 1 human', isMet: null })
    for (const lacking of [{ hasInput: false }, { isPlausible: false }])
      expect(of(/or without input/, [forger({ ...untaught, ...lacking })])?.isMet).toBe(false)
  })

  test('of a mass run only the sessions from the tenth on count', () => {
    const run = (nth: number) => [forger({ class: 'mass' }, { nth })]
    expect([9, 10].map((nth) => of(/tenth/, run(nth))?.isMet)).toEqual([null, false])
  })

  test('hand-like automation and extensions that lie are left out, a phone that passes is not', () => {
    const acts: JudgedRow = { ...nobody, kind: 'acting', acts: true, verdict: 'bot' }
    const hand: JudgedRow = { ...acts, framework: 'xdotool', verdict: 'human' }
    expect(of(/90 %/, [acts, hand])).toMatchObject({ measured: '1 of 1 bot, 0 human', isMet: true })
    expect(of(/phone/, [{ ...acts, case: 'cdp-phone', verdict: 'human' }])?.isMet).toBe(false)
    const switcher = 'person-chromium-user-agent-switcher'
    const liar: JudgedRow = { ...nobody, kind: 'person', case: switcher, verdict: 'inconclusive' }
    expect(of(/1 person in 40/, [liar, { ...nobody, kind: 'person' }])?.isMet).toBe(true)
  })

  test('on a fresh deployment a person may be inconclusive without input, and for no other reason', () => {
    const person = (...signals: string[]): JudgedRow => ({
      ...nobody,
      kind: 'person',
      isFresh: true,
      verdict: 'inconclusive',
      signals_fired: signals.map(risk),
    })
    expect(of(/fresh/, [person('engine_not_learned')])?.isMet).toBe(true)
    expect(of(/fresh/, [person('engine_not_learned', 'natural_typing')])?.isMet).toBe(false)
    expect(of(/fresh/, [person('platform_mismatch')])?.isMet).toBe(false)
  })
})

describe('traces', () => {
  test('of Balabit are in seconds, without the places that its recorder did not know', () => {
    const text = [
      'record timestamp,client timestamp,button,state,x,y',
      '0.0,0.25,NoButton,Move,10,20',
      '0.1,0.5,Left,Pressed,11,21',
      '0.2,0.6,NoButton,Move,65535,65535',
      '0.3,0.75,Left,Released,11,21',
      '0.4,0.8,Scroll,Down,11,21',
    ].join('\r\n')
    expect(readTrace(text, 'balabit')).toEqual([
      { type: 'move', at: 250, x: 10, y: 20 },
      { type: 'press', at: 500, x: 11, y: 21 },
      { type: 'release', at: 750, x: 11, y: 21 },
      { type: 'wheel', at: 800, x: 11, y: 21 },
    ])
  })

  test('of DELBOT are in milliseconds, with or without a resolution', () => {
    const lines = '12.5,Pressed,717,361\n20.5,Move,718,361\n'
    for (const text of [lines, `resolution:1536,864\n${lines}`])
      expect(readTrace(text, 'delbot')).toEqual([
        { type: 'press', at: 12.5, x: 717, y: 361 },
        { type: 'move', at: 20.5, x: 718, y: 361 },
      ])
  })

  test('a risk signal may fire on one person in a hundred', () => {
    const fired = [{ signal: 'straight', role: 'risk' }]
    const by = 'person' as const
    const people = (hits: number) =>
      Array.from({ length: 200 }, (_, i) => ({ by, fired: i < hits ? fired : [] }))
    const shares = sharesOf([...people(2), { by: 'bot', fired }])
    expect(shares).toEqual([{ signal: 'straight', role: 'risk', people: 0.01, bots: 1 }])
    expect(sharesOf(people(2)).some(hurtsPeople)).toBe(false)
    expect(sharesOf(people(3)).some(hurtsPeople)).toBe(true)
  })
})
