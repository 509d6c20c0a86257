import { describe, expect, it, test } from 'vitest'
import { answersOf } from '../../../bench/recorded-answers.ts'
import { bankNumberOf, bankNumbersOf } from '../../../infra/challenges/bank.ts'
import { questionsOf, recordedAnswer } from '../../../infra/challenges/challenges.ts'
import { questionBank } from '../../../infra/challenges/questions.ts'
import { answerMac } from '../../../infra/wire/collect/client-crypto.ts'
import { type LearnedAnswers, noLearnedAnswers } from '../../../projections/answers/learned.ts'
import { highlightsOf } from '../../../services/scoring/explain/highlights.ts'
import type { SessionEvent } from '../../../services/scoring/session/state.ts'
import {
  batch,
  documentOpened,
  handOff,
  opened,
  startedAt,
  testSession,
  visitOf,
} from './support/events.ts'
import { naturalInput } from './support/natural-input.ts'
import {
  decisionAbout,
  evaluateClient,
  evaluateState,
  signalsOf,
  stateAfter,
} from './support/sessions.ts'
import * as clients from './support/snapshots.ts'
import { ownIdsOf, rightAnswers, rightTo, taught } from './support/taught.ts'

const { agentOf, answers, desktopChrome, desktopFirefox, desktopSafari, proofsOf, withParts } =
  clients
const echo = { ...answers, canvas_challenge_hash: null, engine_answers: [], answer_mac: null }
const agent = agentOf(desktopChrome)
const invented = {
  navigator: { user_agent: agent, language: 'en-US' },
  environment: { screen_width: 1920, screen_height: 1080, timezone: 'Europe/Berlin' },
}

const chromeWith = (proofs: Partial<ReturnType<typeof proofsOf>>) =>
  withParts(desktopChrome, { proofs })

/** Returns the best answers of a script without a browser: V8's own, otherwise guesses, correctly keyed. */
function answersOfNode() {
  const { challenge, timing_nonce: timingNonce } = answers
  const isLanguage = (id: number) => questionBank.language.some((one) => one.id === id)
  const engine = questionsOf(challenge).map(({ id }) => ({
    id,
    answer:
      (isLanguage(id) ? recordedAnswer({ family: 'blink', major: 140 }, id) : undefined) ??
      'boolean true',
  }))
  const answer_mac = answerMac({ challenge, timingNonce }, { canvas: 'abc', engine })
  return { canvas_challenge_hash: 'abc', engine_answers: engine, answer_mac }
}

describe('a forgery is not human', () => {
  it.each([
    ['four invented values and no proofs', { snapshot: invented }],
    ['four invented values and echoed proofs', { snapshot: { ...invented, proofs: echo } }],
    [
      'four invented values and correct proofs',
      { snapshot: { ...invented, proofs: proofsOf(agent) } },
    ],
    [
      'a complete invented Chrome without proofs',
      chromeWith({ ...proofsOf(agent), answer_mac: null }),
    ],
    ['a complete invented Chrome with echoed proofs', chromeWith(echo)],
    ['a complete invented Chrome with answers of another engine', chromeWith(answersOfNode())],
    ['a Firefox that answers as Chrome', withParts(desktopFirefox, { proofs: proofsOf(agent) })],
    ['a Chrome that answers as Firefox', chromeWith(proofsOf(agentOf(desktopFirefox)))],
    [
      'an unknown engine',
      withParts(desktopChrome, { navigator: { user_agent: 'Mozilla/5.0 Mine/1.0' } }),
    ],
  ])('%s', (_, client) => {
    expect(evaluateClient(client).score.verdict).not.toBe('human')
  })

  it('empty native observations in a web session', () => {
    const session = testSession('native', { client: { snapshot: { native: {} } } })
    expect(decisionAbout(session).verdict).toBe('bot')
  })

  it.each([
    ['unchanged', {}],
    ['with changed values', { canvas: { hash: 'edited' }, environment: { screen_width: 1001 } }],
  ])('a replayed snapshot of a person, %s', (_, parts) => {
    const document = { challenge: 'other', timing_nonce: 'other' }
    const client = withParts(desktopChrome, parts)
    const decision = decisionAbout(testSession('replay', { client, document }))
    expect(decision.verdict).not.toBe('human')
    expect(signalsOf(decision)).toContain('stale_snapshot')
  })
})

test('evidence names missing members and impossible values', () => {
  const client = withParts(desktopChrome, {
    environment: { timezone: null, timezone_offset_min: 9999 },
    storage: { cookies: null },
  })
  const { evidence, verdict } = decisionAbout(testSession('named', { client }))
  expect(evidence).toMatchObject({
    missing: ['environment.timezone', 'storage.cookies'],
    impossible: ['environment.timezone_offset_min'],
  })
  expect(verdict).toBe('inconclusive')
})

test('an older SDK that echoes the challenge has answered it, and is inconclusive', () => {
  const { score, facts } = evaluateClient(withParts(desktopChrome, { proofs: echo }))
  expect(facts.answers.proof).toBe('echoed')
  expect(score.verdict).toBe('inconclusive')
})

test('a drawing that differs from its class is suspicious, and one with noise is not judged', () => {
  const drawn = { ...proofsOf(agent), canvas_challenge_hash: 'mine' }
  const learned = { ...noLearnedAnswers, answersTo: () => new Set(['others']) }
  const judged = (client: clients.Client) =>
    evaluateClient(client, { learned }).facts.answers.canvas
  expect(judged(keyed(drawn))).toBe('differs')
  expect(judged(keyed({ ...drawn, canvas_challenge_hash: 'others' }))).toBe('matches_others')
  const noisy = withParts(keyed(drawn), { canvas: { noise_detected: true } })
  expect(judged(noisy)).toBe('unknown')
})

/** A deployment that has learned nothing. */
const untaught: LearnedAnswers = {
  ...taught,
  progress: () => ({ isLearned: false, visitors: 3, needed: 20 }),
  answersTo: () => undefined,
}

/** The questions of the document, including bank questions. */
const asked = {
  challenge: answers.challenge,
  timingNonce: answers.timing_nonce,
  engineQuestions: [
    ...questionsOf(answers.challenge),
    ...bankNumbersOf(answers.challenge, startedAt).flatMap((number) =>
      taught.bankQuestions(number),
    ),
  ],
}

describe('Safari, whose answers are not recorded', () => {
  const plausible = withParts(desktopSafari, {
    proofs: answersOf(agentOf(desktopSafari), asked),
  })

  it('is inconclusive with plausible answers, because a script may have invented them', () => {
    const { facts, score, fired } = evaluateClient(plausible, { learned: untaught })
    const judged = [facts.answers.engine, score.verdict, score.risk]
    expect(judged).toEqual(['unrecorded', 'inconclusive', 40])
    expect(fired.map(({ slug }) => slug)).toContain('engine_not_learned')
  })

  it('is human with natural input', () => {
    const { score } = evaluateClient(plausible, { learned: untaught, behavior: naturalInput })
    expect(score.verdict).toBe('human')
  })

  it('reports the learning progress of the engine', () => {
    const highlights = highlightsOf(evaluateClient(plausible, { learned: untaught }))
    expect(highlights.find(({ key }) => key === 'engine_not_learned')?.evidence).toEqual([
      { signal: 'engine_not_learned', name: 'Engine not learned yet: WebKit, 3 of 20 visitors' },
    ])
  })

  it.each([
    ['x', () => 'x'],
    ['nothing', () => ''],
    ['the same error', () => 'TypeError: undefined is not a function'],
    ['true', () => 'boolean true'],
    ['false', () => 'boolean false'],
    ['a number', (id: number) => `number ${id}`],
    ['invented hashes', (id: number) => `#${id.toString(16).padStart(16, '0')}`],
    ['invented texts', (id: number) => `string ${id}`],
  ])('is not human with the answer %s to every question', (_, answer) => {
    const engine = asked.engineQuestions.map(({ id }) => ({ id, answer: answer(id) }))
    const answer_mac = answerMac(asked, { canvas: 'abc', engine })
    const proofs = { canvas_challenge_hash: 'abc', engine_answers: engine, answer_mac }
    const { facts, score } = evaluateClient(withParts(desktopSafari, { proofs }), {
      learned: untaught,
      behavior: naturalInput,
    })
    expect(facts.answers.engine).toBe('contradicted')
    expect(score.verdict).not.toBe('human')
  })

  it.each([
    ['Chromium', proofsOf(agent)],
    ['an earlier Chromium', proofsOf(agent.replace(/Chrome\/\d+/, 'Chrome/121'))],
    ['Firefox', proofsOf(agentOf(desktopFirefox))],
    ['Node', answersOfNode()],
  ])('is not human with the answers of %s', (_, proofs) => {
    const { facts, score } = evaluateClient(withParts(desktopSafari, { proofs }))
    expect(facts.answers.engine).toBe('contradicted')
    expect(score.verdict).not.toBe('human')
  })
})

describe('with learned answers to bank questions', () => {
  const learned: LearnedAnswers = {
    ...taught,
    progress: ({ class: of }) => ({ isLearned: of === 'blink', visitors: 0, needed: 20 }),
  }
  const recorded = proofsOf(agent)
  const ofRepository = recorded.engine_answers.filter(({ id }) => bankNumberOf(id) === undefined)
  const withBank = (
    answer: (id: number, place: number) => string | undefined,
    challenge = answers.challenge,
  ) => {
    const ofBank = ownIdsOf(challenge).flatMap((id, place) => {
      const given = answer(id, place)
      return given === undefined ? [] : [{ id, answer: given }]
    })
    return keyed({ ...recorded, engine_answers: [...ofRepository, ...ofBank] })
  }
  const judged = (client: clients.Client) => {
    const { facts, score } = evaluateClient(client, { learned })
    return [facts.answers.engine, facts.answers.judgedBy, score.verdict]
  }

  it('a browser is human with the right answers, even if a new version changes three of twelve', () => {
    expect(judged(withBank(rightTo))).toEqual(['as_claimed', 'learned', 'human'])
    const newer = withBank((id, place) => (place < 3 ? 'as the next version does' : rightTo(id)))
    expect(judged(newer)).toEqual(['as_claimed', 'learned', 'human'])
  })

  it('recorded answers alone are not enough', () => {
    expect(judged(keyed({ ...recorded, engine_answers: ofRepository }))).toEqual([
      'unanswered',
      'learned',
      'inconclusive',
    ])
    const guessed = judged(withBank(() => 'boolean false'))
    expect(guessed.slice(0, 2)).toEqual(['contradicted', 'learned'])
    expect(guessed[2]).not.toBe('human')
  })

  it('a forger who knows a few answers cannot choose which ones count', () => {
    const ofNobody = (id: number) => id + 2 ** 40
    const ids = ownIdsOf(answers.challenge)
    const chosen = ids.map((id, place) =>
      place < 4 ? { id, answer: rightTo(id) } : { id: ofNobody(id), answer: 'anything' },
    )
    const client = keyed({ ...recorded, engine_answers: [...ofRepository, ...chosen] })
    expect(judged(client)).toEqual(['unanswered', 'learned', 'inconclusive'])
    const { answers: facts } = evaluateClient(client, { learned }).facts
    expect(facts.questionAnswers.map(({ id }) => id)).not.toContain(ofNobody(ids[7] ?? 0))
  })

  it('leaving out the recorded questions counts as unanswered', () => {
    const bankOnly =
      withBank(rightTo).snapshot.proofs?.engine_answers?.slice(ofRepository.length) ?? []
    expect(judged(keyed({ ...recorded, engine_answers: bankOnly }))[0]).toBe('unanswered')
  })

  it('an SDK that lacks a kind of question is unproven, but not contradicted', () => {
    const before = withBank((id, place) => (place % 2 === 0 ? 'object null' : rightTo(id)))
    expect(judged(before)).toEqual(['unanswered', 'learned', 'inconclusive'])
    expect(
      JSON.stringify(evaluateClient(before, { learned }).facts.answers.questionAnswers),
    ).not.toContain('null')
  })

  it('answers collected in one visit do not answer another document', () => {
    const collected = withBank(rightTo, 'the challenge of another document')
    expect(judged(collected)).toEqual(['unanswered', 'learned', 'inconclusive'])
    const half = withBank((id, place) => (place < 7 ? rightTo(id) : 'unknown'))
    expect(judged(half)[2]).not.toBe('human')
  })

  describe('that follow the snapshot', () => {
    const client = keyed({ ...recorded, engine_answers: ofRepository })
    const session = testSession('asked later', { client })
    const elsewhere = { challenge: 'another document', timingNonce: answers.timing_nonce }
    const engineQuestions = questionsOf(elsewhere.challenge)
    const proofs = answersOf(agent, { ...elsewhere, engineQuestions })
    const next = {
      ...session,
      client: withParts(desktopChrome, { proofs }),
      documentHash: 'f'.repeat(64),
      document: { challenge: elsewhere.challenge },
    }
    const answering = (challenge: string) => ({ engine_answers: rightAnswers(challenge) })
    const right = answering(answers.challenge)
    const first = visitOf(session)
    const second = [documentOpened(next), batch(next)]
    const judgedAfter = (...events: SessionEvent[]) => {
      const { facts, score } = evaluateState(stateAfter(events), { learned })
      return [facts.answers.engine, score.verdict]
    }

    it('a session is inconclusive until they arrive, and human if they are right', () => {
      expect(judgedAfter(...first)).toEqual(['pending', 'inconclusive'])
      expect(judgedAfter(...first, handOff(session, { seq: 2, observations: right }))).toEqual([
        'as_claimed',
        'human',
      ])
    })

    it('a next body without them, or an immediate hand-off, counts as unanswered', () => {
      const unanswered = ['unanswered', 'inconclusive']
      const next = batch(session, { seq: 2, observations: {} })
      expect(judgedAfter(...first, next)).toEqual(unanswered)
      const atOnce = handOff(session, { observations: { snapshot: client.snapshot } })
      expect(judgedAfter(...opened(session), atOnce)).toEqual(unanswered)
    })

    it("the session's next page counts as proven until its own answers are due", () => {
      const proven = [...first, batch(session, { seq: 2, observations: right })]
      expect(judgedAfter(...proven, ...second)).toEqual(['as_claimed', 'human'])
      const due = batch(next, { seq: 2, observations: {} })
      expect(judgedAfter(...proven, ...second, due)).toEqual(['unanswered', 'inconclusive'])
      const answered = batch(next, { seq: 2, observations: answering(elsewhere.challenge) })
      expect(judgedAfter(...proven, ...second, answered)).toEqual(['as_claimed', 'human'])
      const late = batch(session, { seq: 3, observations: { ...right, engine_answers: [] } })
      expect(judgedAfter(...proven, ...second, answered, late)).toEqual(['as_claimed', 'human'])
    })
  })

  it('an engine that is not learned is judged by recorded answers', () => {
    const proofs = answersOf(agentOf(desktopFirefox), asked)
    const { engine, judgedBy } = evaluateClient(withParts(desktopFirefox, { proofs }), { learned })
      .facts.answers
    expect([engine, judgedBy]).toEqual(['as_claimed', 'recorded'])
  })
})

function keyed(proofs: ReturnType<typeof proofsOf>): clients.Client {
  const { challenge, timing_nonce: timingNonce } = answers
  const { canvas_challenge_hash: canvas, engine_answers: engine } = proofs
  const answer_mac = answerMac({ challenge, timingNonce }, { canvas, engine })
  return chromeWith({ ...proofs, answer_mac })
}
