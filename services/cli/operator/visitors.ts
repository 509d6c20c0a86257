import type { Command } from 'commander'
import { ApiError } from '../../../infra/errors/errors.ts'
import { createLinkExplainer, type LinkExplanation } from '../../scoring/visitors/explain.ts'
import { components } from '../../scoring/visitors/profile.ts'
import { jsonFlag } from '../arguments.ts'
import { type Cell, textTable } from '../tables.ts'
import { withStores } from './core.ts'
import { type OperatorOptions, printOutcome } from './operate.ts'

export function defineVisitors(visitors: Command): void {
  visitors
    .command('explain')
    .description(
      'Say why a session is of its visitor: what agreed, how common it is, and who else it may be',
    )
    .argument('<session>', 'its id (sid_...)')
    .option(...jsonFlag)
    .action((session: string, options: OperatorOptions) =>
      printOutcome(options, async () => {
        const data = await withStores(({ pool }) =>
          createLinkExplainer(pool)(session.toLowerCase()),
        )
        if (data) return { data, text: explanationText(data) }
        throw new ApiError('request.not_found', {
          message: 'No session with this id has a visitor.',
        })
      }),
    )
}

const deciders: Record<LinkExplanation['decided_by'], string> = {
  kept_id: 'an id that the browser kept',
  install_id: 'the install id of the app',
  look: 'how the machine looks',
  correction: 'a correction: a split or a merger',
  doubt: 'doubt: there was a candidate, and a new visitor began',
  nobody_before: 'nobody before: a new visitor began',
}

const reasons: Record<NonNullable<LinkExplanation['next']>['lost_because'], string> = {
  kept_id_decides: 'an id decides before any look',
  less_likely: 'the chosen one is likelier',
  too_little_evidence: 'too few bits',
  present_elsewhere: 'it was there within the hour',
  known_too_briefly: 'it is known for less than a day',
  look_of_several: 'several machines have this look',
  no_clear_lead: 'another one is as likely',
  other_model: 'its install id was copied to another model',
  corrected: 'a correction took the session from it',
  known_since: 'what speaks for it was not known then',
}

export function explanationText(explanation: LinkExplanation): string {
  const { session_id, decided_by, bits_needed, chosen, next } = explanation
  const facts = [
    `Session:    ${session_id}`,
    `Visitor:    ${chosen?.visitor_id ?? 'a new one'}`,
    `Decided by: ${deciders[decided_by]}`,
    `Bits:       ${bits_needed === null ? 'nobody is looked for by its look' : `${bits_needed} needed`}`,
  ]
  if (!chosen && !next) return facts.join('\n')
  const compared = chosen?.components || next?.components ? [componentTable(explanation)] : []
  return [facts.join('\n'), candidateTable(explanation), ...compared].join('\n\n')
}

function candidateTable({ chosen, next }: LinkExplanation): string {
  const candidates = [
    ...(chosen ? [{ ...chosen, outcome: 'chosen' }] : []),
    ...(next ? [{ ...next, outcome: `lost: ${reasons[next.lost_because]}` }] : []),
  ]
  return textTable(
    ['candidate', 'bits', 'network', 'outcome'],
    candidates.map(({ visitor_id, bits, same_network, outcome }) => {
      const network = same_network === null ? null : same_network ? 'same' : 'another'
      return [visitor_id, bits, network, outcome]
    }),
  )
}

function componentTable({ of_visitors, chosen, next }: LinkExplanation): string {
  const rows = components.flatMap((name): Cell[][] => {
    const [one, other] = [chosen, next].map((candidate) => comparisonOf(name, candidate))
    const withIt = one?.withIt ?? other?.withIt ?? null
    const common = withIt === null ? null : `${withIt} of ${of_visitors}`
    return one || other ? [[name, common, one?.found ?? null, other?.found ?? null]] : []
  })
  return textTable(['component', 'visitors with it', 'chosen', 'next'], rows)
}

function comparisonOf(name: string, candidate: LinkExplanation['chosen']) {
  for (const [found, some] of Object.entries(candidate?.components ?? {})) {
    const component = some.find((one) => one.name === name)
    if (component) return { found, withIt: component.visitors_with_it }
  }
  return undefined
}
