import { z } from 'zod'
import { eventTopics } from '../../../schemas/events.ts'

const points = z.number().describe('Points, to a hundredth.')

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
        'signal: one that fired. weak_limit, habits_limit, trust_limit: all of this kind together count as at most `bound`. least: no score is below 0. unconfirmed_cap: nothing of another channel confirms what fired. no_snapshot_floor: there is no readable snapshot. signal_floor: required evidence is missing, as `signal` says. rounding: scores are whole numbers.',
      ),
    signal: z.string().nullable(),
    bound: z.number().nullable().describe('Of a limit, cap or floor.'),
    change: points.describe(
      'What it adds to the total of the step before; negative where it takes away.',
    ),
    total: points.describe('The score from then on.'),
  })
  .meta({ id: 'ScoreStep' })

const meaning = z
  .strictObject({
    signal: z.string(),
    name: z.string(),
    looks_at: z.string(),
    false_positives: z.string().describe('When people have it.'),
  })
  .meta({ id: 'ScoreSignal' })

/** How the newest decision's score came about. */
export const scoreExplanationSchema = z
  .strictObject({
    steps: z
      .array(step)
      .nullable()
      .describe(
        'In their order from 0; the last total is `decision.risk_score`. Null where the points of the model that decided are not known: a decision of an earlier release.',
      ),
    without_effect: z
      .array(z.string())
      .describe('Signals that fired and changed nothing, because another one decides alone.'),
    signals: z
      .array(meaning)
      .describe('What the signals that fired mean, as this release has them.'),
  })
  .meta({ id: 'ScoreExplanation', description: 'How the score of the newest decision came about.' })

export type ScoreExplanation = z.output<typeof scoreExplanationSchema>

/** Where the newest decision is on the log. */
export const logPlaceSchema = z
  .strictObject({
    topic: z.literal(eventTopics.SessionScored),
    partition: z.int().min(0),
    offset: z.int().min(0),
  })
  .meta({ id: 'LogPlace', description: 'Where the event of the newest decision is on the log.' })
