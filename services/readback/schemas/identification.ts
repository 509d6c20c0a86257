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
        "How many of of_visitors look like this session in it. Null where the session's is unknown.",
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
        'Bits of evidence that both are one device. Null where they have no look in common, or where something changed that no device changes.',
      ),
    same_network: z.boolean().nullable(),
    components: z
      .strictObject({
        agreed: z.array(component),
        changed: z.array(component),
        unknown: z.array(component).describe('On one side or both.'),
      })
      .nullable()
      .describe(
        'Null where the session or the visitor told nothing of its machine, where the visitor has more than 5,000 sessions, and where both came at once.',
      ),
  })
  .meta({ id: 'IdentificationCandidate' })

const decidedBy = z
  .enum(['kept_id', 'install_id', 'look', 'correction', 'doubt', 'nobody_before'])
  .describe(
    'kept_id: the browser kept an id. install_id: the app did. look: the machine looks as before. correction: a split or a merger gave the session its visitor. doubt: there was a candidate, and nobody was sure. nobody_before: nobody looked like it.',
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
    'kept_id_decides: an id goes before any look. less_likely: the chosen one has more bits. too_little_evidence: fewer than bits_needed. present_elsewhere: it was there within the hour, so its storage was not lost. known_too_briefly: it began less than a day before, so nothing tells whether only one machine looks so. look_of_several: two visitors with this look were there within a day of each other, so it tells nobody. no_clear_lead: another candidate is as likely, and they are two. other_model: an install id was copied to another model. corrected: a correction took the session from it. known_since: it would be chosen now, and was not known then.',
  )

/** Why a session is of its visitor. */
export const identificationSchema = z
  .strictObject({
    session_id: sessionId,
    decided_by: decidedBy,
    bits_needed: z
      .number()
      .nullable()
      .describe('Null where nobody is looked for by how the session looks.'),
    of_visitors: z
      .int()
      .min(0)
      .describe(
        'How many visitors were counted: those that were seen last, at most 1,000, within the last minute.',
      ),
    chosen: candidate.nullable().describe('Null where the session began a visitor.'),
    next: candidate
      .extend({ lost_because: lostBecause })
      .meta({ id: 'IdentificationNext' })
      .nullable()
      .describe('The likeliest of all other candidates.'),
  })
  .meta({
    id: 'VisitorIdentification',
    description:
      'Computed at the time of the answer, from what is known today of the sessions before. Null without a visitor.',
  })

export type Identification = z.output<typeof identificationSchema>
