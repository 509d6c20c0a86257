import type { Command } from 'commander'
import { ApiError } from '../../../infra/errors/errors.ts'
import { createLinkExplainer, type LinkExplanation } from '../../scoring/visitors/explain.ts'
import { components } from '../../scoring/visitors/profile.ts'
import { jsonFlag } from '../arguments.ts'
import { type Cell, textTable } from '../tables.ts'
import { withStores } from './core.ts'
import { type OperatorOptions, printOutcome } from './run.ts'

export function defineVisitors(visitors: Command): void {
  visitors
    .command('explain')
    .description(
      'Explain a match: which components agreed, how common they are, and the next best visitor',
    )
    .argument('<session>', 'session id (sid_...)')
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

const deciderTexts: Record<LinkExplanation['decided_by'], string> = {
  kept_id: 'id stored in the browser',
  install_id: 'install id of the app',
  look: 'device fingerprint',
  correction: 'correction (a split or a merge)',
  doubt: 'no confident match: new visitor',
  nobody_before: 'no candidate: new visitor',
}

const reasonTexts: Record<NonNullable<LinkExplanation['next']>['lost_because'], string> = {
  kept_id_decides: 'a stored id outranks the fingerprint',
  less_likely: 'less likely than the chosen visitor',
  too_little_evidence: 'not enough evidence',
  present_elsewhere: 'seen within the past hour, so its storage was not lost',
  known_too_briefly: 'known for less than a day',
  look_of_several: 'several visitors share this fingerprint',
  no_clear_lead: 'another visitor is as likely',
  other_model: 'install id copied to another device model',
  corrected: 'session moved away by a correction',
  known_since: 'would match now; unknown at the time',
}

export function explanationText(explanation: LinkExplanation): string {
  const { session_id, decided_by, bits_needed, chosen, next } = explanation
  const facts = [
    `Session:    ${session_id}`,
    `Visitor:    ${chosen?.visitor_id ?? 'new'}`,
    `Decided by: ${deciderTexts[decided_by]}`,
    `Bits:       ${bits_needed === null ? 'not matched by fingerprint' : `${bits_needed} needed`}`,
  ]
  if (!chosen && !next) return facts.join('\n')
  const tables = chosen?.components || next?.components ? [componentTable(explanation)] : []
  return [facts.join('\n'), candidateTable(explanation), ...tables].join('\n\n')
}

function candidateTable({ chosen, next }: LinkExplanation): string {
  const candidates = [
    ...(chosen ? [{ ...chosen, outcome: 'chosen' }] : []),
    ...(next ? [{ ...next, outcome: `rejected: ${reasonTexts[next.lost_because]}` }] : []),
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
    const [first, second] = [chosen, next].map((candidate) => comparisonOf(name, candidate))
    const visitors = first?.visitors ?? second?.visitors ?? null
    const frequency = visitors === null ? null : `${visitors} of ${of_visitors}`
    return first || second ? [[name, frequency, first?.result ?? null, second?.result ?? null]] : []
  })
  return textTable(['component', 'visitors with this value', 'chosen', 'next'], rows)
}

function comparisonOf(name: string, candidate: LinkExplanation['chosen']) {
  for (const [result, group] of Object.entries(candidate?.components ?? {})) {
    const component = group.find((entry) => entry.name === name)
    if (component) return { result, visitors: component.visitors_with_it }
  }
  return undefined
}
