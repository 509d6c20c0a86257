import type { OpenedSession } from '../../../infra/wire/collect/client.ts'
import { answerMac } from '../../../infra/wire/collect/client-crypto.ts'
import type { DocType } from '../../../schemas/lenient.ts'
import {
  behaviorSchema,
  observationsSchema,
  type SentObservations,
  snapshotSchema,
} from '../../../schemas/observations.ts'
import type { Marks } from './marks.ts'

type Json = string | number | boolean | Json[] | { [member: string]: Json }

/** Returns a value of the type with a mark wherever one fits, so that new observations are marked, too. */
function marked(docType: DocType, member: string, marks: Marks): Json {
  if (typeof docType !== 'string')
    return Object.fromEntries(
      Object.entries(docType).map(([name, inner]) => [
        name,
        marked(inner, `${member}.${name}`, marks),
      ]),
    )
  if (/^(text|hash)\b/.test(docType)) return marks.text(member)
  if (docType.endsWith('counts by name')) return { [marks.text(member)]: 3 }
  if (/^up to \d+: text/.test(docType)) return [marks.text(member)]
  if (/^up to \d+: (count|integer)/.test(docType)) return [3]
  if (/^up to \d+: \{ brand, version \}/.test(docType))
    return [{ brand: marks.text(`${member}.brand`), version: marks.text(`${member}.version`) }]
  // Answers are filled below, and reasons are enumerated.
  if (/^up to \d+: \{ (id, answer|group, reason) \}/.test(docType)) return []
  if (docType === '{ bias, noise }, each 3 numbers') {
    const axes = (name: string) =>
      ['x', 'y', 'z'].map((axis) => marks.number(`${member}.${name}.${axis}`))
    return { bias: axes('bias'), noise: axes('noise') }
  }
  if (docType === 'number' || docType === 'size') return marks.number(member)
  if (docType === 'integer' || docType === 'count') return 3
  if (docType === 'boolean') return true
  throw new Error(`${member} has a type that is not marked: ${docType}`)
}

/** Returns observations with marks in all members, and answers to the document's questions. */
export function markedObservations(
  marks: Marks,
  { asked, userAgent }: { asked: OpenedSession; userAgent: string },
): SentObservations {
  const snapshot = { ...snapshotSchema.parse(marked(snapshotSchema.docType, 'snapshot', marks)) }
  const canvas = marks.text('snapshot.proofs.canvas_challenge_hash')
  const engine = [
    ...asked.engineQuestions.map(({ id }) => ({
      id,
      answer: marks.text('snapshot.proofs.engine_answers'),
    })),
    { id: marks.number('snapshot.proofs.engine_answers.id'), answer: 'boolean true' },
  ]
  // Answers with a wrong MAC would be ignored.
  const answer_mac = answerMac(asked, { canvas, engine })
  const answered = { canvas_challenge_hash: canvas, engine_answers: engine, answer_mac }
  const user_agent = `${userAgent} ${snapshot.navigator.user_agent}/1`
  return {
    version: 1,
    elapsed_ms: marks.number('elapsed_ms'),
    snapshot: {
      ...snapshot,
      navigator: { ...snapshot.navigator, user_agent },
      proofs: { ...snapshot.proofs, ...answered },
    },
    behavior: behaviorSchema.parse(marked(behaviorSchema.docType, 'behavior', marks)),
    engine_answers: [
      { id: marks.number('engine_answers.id'), answer: marks.text('engine_answers') },
    ],
  }
}

/** Returns top-level members without marks. New members must be marked here. */
export const unmarkedMembers = (): string[] => {
  const known = ['version', 'elapsed_ms', 'snapshot', 'behavior', 'engine_answers']
  return Object.keys(Object(observationsSchema.docType)).filter((name) => !known.includes(name))
}
