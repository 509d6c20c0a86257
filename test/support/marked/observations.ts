import type { OpenedSession } from '../../../infra/wire/collect/client.ts'
import { answerMac } from '../../../infra/wire/collect/client-crypto.ts'
import type { Form } from '../../../schemas/lenient.ts'
import {
  behaviorSchema,
  observationsSchema,
  type SentObservations,
  snapshotSchema,
} from '../../../schemas/observations.ts'
import type { Marks } from './marks.ts'

type Json = string | number | boolean | Json[] | { [member: string]: Json }

/** A value of this form, with a mark wherever one fits: what is added to observations later is marked by itself. */
function marked(form: Form, member: string, marks: Marks): Json {
  if (typeof form !== 'string')
    return Object.fromEntries(
      Object.entries(form).map(([name, inner]) => [
        name,
        marked(inner, `${member}.${name}`, marks),
      ]),
    )
  if (/^(text|hash)\b/.test(form)) return marks.text(member)
  if (form.endsWith('counts by name')) return { [marks.text(member)]: 3 }
  if (/^up to \d+: text/.test(form)) return [marks.text(member)]
  if (/^up to \d+: (count|integer)/.test(form)) return [3]
  if (/^up to \d+: \{ brand, version \}/.test(form))
    return [{ brand: marks.text(`${member}.brand`), version: marks.text(`${member}.version`) }]
  // Answers are filled below, and reasons are of a list.
  if (/^up to \d+: \{ (id, answer|group, reason) \}/.test(form)) return []
  if (form === '{ bias, noise }, each 3 numbers') {
    const axes = (name: string) =>
      ['x', 'y', 'z'].map((axis) => marks.number(`${member}.${name}.${axis}`))
    return { bias: axes('bias'), noise: axes('noise') }
  }
  if (form === 'number' || form === 'size') return marks.number(member)
  if (form === 'integer' || form === 'count') return 3
  if (form === 'boolean') return true
  throw new Error(`${member} has a form that is not marked: ${form}`)
}

/** All that a client can observe, marked, and answering the document that asks for it. */
export function markedObservations(
  marks: Marks,
  { asked, userAgent }: { asked: OpenedSession; userAgent: string },
): SentObservations {
  const snapshot = { ...snapshotSchema.parse(marked(snapshotSchema.form, 'snapshot', marks)) }
  const canvas = marks.text('snapshot.proofs.canvas_challenge_hash')
  const engine = [
    ...asked.engineQuestions.map(({ id }) => ({
      id,
      answer: marks.text('snapshot.proofs.engine_answers'),
    })),
    { id: marks.number('snapshot.proofs.engine_answers.id'), answer: 'boolean true' },
  ]
  // Without a right one nobody would learn of the answers.
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
    behavior: behaviorSchema.parse(marked(behaviorSchema.form, 'behavior', marks)),
    engine_answers: [
      { id: marks.number('engine_answers.id'), answer: marks.text('engine_answers') },
    ],
  }
}

/** Members at the top that nothing here marks: a new one has to be. */
export const unmarkedMembers = (): string[] => {
  const known = ['version', 'elapsed_ms', 'snapshot', 'behavior', 'engine_answers']
  return Object.keys(Object(observationsSchema.form)).filter((name) => !known.includes(name))
}
