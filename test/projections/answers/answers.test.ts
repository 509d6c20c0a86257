import { createSecretKey, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { answerDigest, classDigest, visitorDigests } from '../../../projections/answers/digests.ts'
import { createLearnedAnswers } from '../../../projections/answers/learned.ts'
import { answersProjection, estimateVisitors } from '../../../projections/answers/projection.ts'
import { readAnswers } from '../../../projections/answers/queries.ts'
import { openTestLogs } from '../../support/logs.ts'
import { sessionScored } from '../../support/session-scored.ts'
import { openFollowedLog } from '../followed-log.ts'

const noBank = { now: 0, keys: [] }
const engine = 'blink 156'
const handshake = 'f57a46bbacb6_ab7e3b40a677'
const key = createSecretKey(randomBytes(32))
const plain = sessionScored()
const organizationId = plain.organization_id

interface Answering {
  visitor?: number
  answer?: string
  isConsistent?: boolean
}

/** Returns the decision of session `n`, by default with its own visitor and network. */
function decision(
  n: number,
  { visitor = n, answer = 'right', isConsistent = true }: Answering = {},
): DomainEvent {
  const ipAddress = `10.${visitor >> 8}.${visitor & 255}.7`
  const visitorId = `vid_${visitor}`
  const digests = visitorDigests(key, { organization_id: 'org_1', visitorId, ipAddress })
  if (!digests || !plain.visitor) throw new Error('it has a network and a visitor')
  const data = sessionScored({
    event_id: `evt_${n}`,
    session_id: `sid_${n}`,
    visitor: { ...plain.visitor, id: visitorId },
    evaluated_at: n * 60 * 60 * 1000,
    network: { ...plain.network, ip_address: ipAddress },
    given_answers: {
      ...digests,
      canvas_seed: '3.46',
      is_consistent: isConsistent,
      engine: classDigest(engine),
      engine_family: 'blink',
      handshake: classDigest(handshake),
      canvas_class: classDigest('a card | linux | Chrome | 156'),
      canvas_answer: answerDigest(answer),
      engine_answers: { 1: answerDigest(answer), 2: answerDigest('the same') },
    },
  })
  return { type: 'SessionScored', data }
}

const decisions = (count: number, make: (n: number) => DomainEvent) =>
  Array.from({ length: count }, (_, n) => make(n))

test.each(openTestLogs())(
  '$name: answers of many visitors are learned, repeated answers of few are not, and a rebuild is equal',
  async (testLog) => {
    const world = await openFollowedLog(testLog, [answersProjection])
    const all = [
      ...decisions(120, (n) => decision(n)),
      ...decisions(60, (n) =>
        decision(1001 + 2 * n, { visitor: 5000 + (n % 3), answer: 'poison' }),
      ),
      ...decisions(60, (n) => decision(2000 + n, { answer: 'forged', isConsistent: false })),
    ]
    for (let from = 0; from < all.length; from += 20)
      await world.append(answersProjection, all.slice(from, from + 20))
    const given = await readAnswers(world.pool, { minVisitors: 20, includedIds: [] })
    const first = given.filter(({ question }) => question === '1')
    const [right, poison] = [answerDigest('right'), answerDigest('poison')]
    expect(first.map(({ answer }) => answer).toSorted()).toEqual([right, poison].toSorted())
    expect(estimateVisitors(first.find(({ answer }) => answer === poison)?.visitors ?? [])).toBe(3)

    const asked = { environment: 'live', organizationId, class: engine, question: '1' } as const
    const honest = given.filter(({ answer }) => answer !== poison)
    const learned = createLearnedAnswers(honest, noBank).answersTo(asked)
    expect([learned?.has('right'), learned?.has('poison')]).toEqual([true, false])
    expect(createLearnedAnswers(given, noBank).answersTo(asked)?.has('poison') ?? false).toBe(false)
    const about = { ...asked, class: handshake, question: 'handshake' } as const
    const spoken = createLearnedAnswers(given, noBank).answersTo(about)
    expect([spoken?.has('blink'), spoken?.has('gecko')]).toEqual([true, false])
    expect((await world.rebuild(answersProjection)).records).toBe(all.length)
    await world.close()
  },
)
