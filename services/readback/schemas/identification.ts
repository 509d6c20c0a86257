import { z } from 'zod'
import { sessionId, visitorId } from '../../../projections/sessions/decision-schemas.ts'

const component = z
  .strictObject({
    name: z.string(),
    visitors_with_it: z
      .int()
      .min(0)
      .nullable()
      .describe(
        "Number of visitors, out of `of_visitors`, with the same value as the session. Null if the session's value is unknown.",
      ),
  })
  .meta({ id: 'IdentificationComponent' })

const candidate = z
  .strictObject({
    visitor_id: visitorId,
    bits: z
      .number()
      .nullable()
      .describe(
        'Bits of evidence that session and candidate are the same device. Null if no key traits match, or if a trait differs that never changes on one device.',
      ),
    same_network: z.boolean().nullable(),
    components: z
      .strictObject({
        agreed: z.array(component),
        changed: z.array(component),
        unknown: z.array(component).describe('Unknown for the session, the candidate or both.'),
      })
      .nullable()
      .describe(
        'Null if the device of the session or the candidate is unknown, if the candidate has more than 5,000 sessions, or if both appeared at the same time.',
      ),
  })
  .meta({ id: 'IdentificationCandidate' })

const decidedBy = z
  .enum(['kept_id', 'install_id', 'look', 'correction', 'doubt', 'nobody_before'])
  .describe(
    '`kept_id`: id stored by the browser. `install_id`: install id of the app. `look`: traits of the device. `correction`: split or merge. `doubt`: new visitor, because no candidate was a confident match. `nobody_before`: new visitor, because there was no candidate.',
  )

const lostBecause = z
  .enum([
    'kept_id_decides',
    'less_likely',
    'too_little_evidence',
    'present_elsewhere',
    'known_too_briefly',
    'look_of_several',
    'no_clear_lead',
    'other_model',
    'corrected',
    'known_since',
  ])
  .describe(
    '`kept_id_decides`: an id takes precedence over traits. `less_likely`: the chosen visitor has more bits. `too_little_evidence`: fewer than `bits_needed`. `present_elsewhere`: seen within the hour before the session, so its storage is not lost. `known_too_briefly`: less than a day old, so other devices may have the same traits. `look_of_several`: two visitors with these traits were seen within a day of each other. `no_clear_lead`: a different visitor is about as likely. `other_model`: same install id, but another device model. `corrected`: a correction moved the session away. `known_since`: would win now, but was not known at the time.',
  )

export const identificationSchema = z
  .strictObject({
    session_id: sessionId,
    decided_by: decidedBy,
    bits_needed: z
      .number()
      .nullable()
      .describe('Minimum bits for a match. Null if the session is not matched by traits.'),
    of_visitors: z
      .int()
      .min(0)
      .describe(
        'Number of visitors compared for `visitors_with_it`: the most recently seen, at most 1,000. Up to a minute old.',
      ),
    chosen: candidate
      .nullable()
      .describe(
        'Visitor that the session was matched to; null if the session began a new visitor.',
      ),
    next: candidate
      .extend({ lost_because: lostBecause })
      .meta({ id: 'IdentificationNext' })
      .nullable()
      .describe('Most likely other candidate.'),
  })
  .meta({
    id: 'VisitorIdentification',
    description:
      'Explanation of the match between session and visitor. Computed for each request from what is now known about earlier sessions. Null if the session has no visitor.',
  })

export type Identification = z.output<typeof identificationSchema>
