import { z } from 'zod'
import { eventTopics } from '../../../schemas/events.ts'

const points = z.number().describe('Points, rounded to hundredths.')

const step = z
  .strictObject({
    kind: z
      .enum([
        'signal',
        'weak_limit',
        'habits_limit',
        'trust_limit',
        'least',
        'unconfirmed_cap',
        'no_snapshot_floor',
        'signal_floor',
        'rounding',
      ])
      .describe(
        '`signal`: a signal that fired. `weak_limit`, `habits_limit`, `trust_limit`: signals of this kind together count at most `bound`. `least`: a negative total was raised to 0. `unconfirmed_cap`: the signals come from a single source. `no_snapshot_floor`: there is no readable snapshot. `signal_floor`: required evidence is missing, see `signal`. `rounding`: rounded to a whole number.',
      ),
    signal: z.string().nullable(),
    bound: z.number().nullable().describe('Value of the limit, cap or floor; otherwise null.'),
    change: points.describe('Change from the previous total; negative if it lowers the score.'),
    total: points.describe('Score after this step.'),
  })
  .meta({ id: 'ScoreStep' })

const firedSignal = z
  .strictObject({
    signal: z.string(),
    name: z.string(),
    looks_at: z.string(),
    false_positives: z.string().describe('Situations in which the signal also fires for people.'),
  })
  .meta({ id: 'ScoreSignal' })

export const scoreExplanationSchema = z
  .strictObject({
    steps: z
      .array(step)
      .nullable()
      .describe(
        'Steps from 0 to `decision.risk_score`, in order. Null if the scoring model of the decision is unknown, as for decisions of earlier releases.',
      ),
    without_effect: z
      .array(z.string())
      .describe(
        'Signals that fired but were not counted, because another signal set the score by itself.',
      ),
    signals: z
      .array(firedSignal)
      .describe('Descriptions of the signals that fired, from the current release.'),
  })
  .meta({ id: 'ScoreExplanation', description: 'Score breakdown of the newest decision.' })

export type ScoreExplanation = z.output<typeof scoreExplanationSchema>

export const logPositionSchema = z
  .strictObject({
    topic: z.literal(eventTopics.SessionScored),
    partition: z.int().min(0),
    offset: z.int().min(0),
  })
  .meta({ id: 'LogPlace', description: 'Position of the newest decision on the log.' })
