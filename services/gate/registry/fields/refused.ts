import { type ApiError, type FieldIssue, invalidField } from '../../../../infra/errors/errors.ts'
import type { Environment } from '../../../../schemas/events.ts'

/** What members of a service are checked against. */
export interface FieldRules {
  environment: Environment
  /** As details.parameter_set names it. */
  parameterSet: 'gate_service_create' | 'gate_service_update'
}

/** A member of a request, as `env_vars.0.key`, and what it is checked against. */
export interface Member extends FieldRules {
  field: string
}

/** The member below another, as `key` of `env_vars.0`. */
export const below = (member: Member, name: string | number): Member => ({
  ...member,
  field: `${member.field}.${name}`,
})

/** 422 that names the member, never with what was sent. */
export function refused(
  { field: name, parameterSet }: Pick<Member, 'field' | 'parameterSet'>,
  problem: Omit<FieldIssue, 'name' | 'received'>,
): ApiError {
  return invalidField({ name, ...problem }, { parameter_set: parameterSet }, 'gate.validation_failed')
}
