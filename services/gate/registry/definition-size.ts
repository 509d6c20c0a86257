import type { GateServiceDefinition } from '../../../schemas/events.ts'
import { bounds } from './fields/bounds.ts'
import { type FieldRules, refused } from './fields/refused.ts'

const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

/** 422 for more than the registry shows of a service; names the member that takes the most. */
export function refuseLarge(
  definition: GateServiceDefinition,
  { parameterSet }: Pick<FieldRules, 'parameterSet'>,
): void {
  if (sizeOf(definition) <= bounds.definitionBytes) return
  const members = Object.entries(definition).map(([field, value]) => ({ field, size: sizeOf(value) }))
  const [largest] = members.toSorted((a, b) => b.size - a.size)
  const expected = `less of it: a service has at most ${bounds.definitionBytes} bytes of JSON in all`
  throw refused({ field: largest?.field ?? 'body', parameterSet }, { issue: 'too_large', expected })
}
