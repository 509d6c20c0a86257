import { type ErrorDetails, type FieldIssue, invalidField } from '../errors/errors.ts'
import { characterCount, isPlainText } from '../text.ts'

export type ParameterSet =
  | 'organization_create'
  | 'organization_update'
  | 'organization_limits'
  | 'organization_data_policy'
  | 'organization_capability'
  | 'agent_directory_add'
  | 'agent_directory_remove'
  | 'api_key_create'
  | 'api_key_update'
  | 'api_key_rotate'
  | 'api_key_revoke'
  | 'webhook_endpoint_create'
  | 'webhook_endpoint_update'
  | 'webhook_endpoint_disable'
  | 'webhook_endpoint_rotate'
  | 'webhook_endpoint_test'
  | 'webhook_endpoint_resend'
  | 'webhook_delivery_retry'
  | 'session_mark_delete'
  | 'view_delete'
  | 'alert_delete'
  | 'gate_service_disable'
  | 'gate_service_domain_verify'
  | 'gate_agent_token_revoke'

/** 422 that names one field. It never repeats what was sent, which may be a key pasted into the wrong field. */
export function invalid(
  field: Omit<FieldIssue, 'received'>,
  parameterSet: ParameterSet,
  details: ErrorDetails = {},
) {
  return invalidField(field, { ...details, parameter_set: parameterSet })
}

interface NameRule {
  max: number
  parameterSet: ParameterSet
}

/** Returns the name without outer spaces. 422 when nothing is left, it is too long, or it has control characters. */
export function checkedName(name: string, { max, parameterSet }: NameRule): string {
  const trimmed = name.trim()
  if (trimmed !== '' && characterCount(trimmed) <= max && isPlainText(trimmed)) return trimmed
  const expected = `1-${max} characters, no control characters`
  throw invalid({ name: 'name', issue: 'invalid', expected }, parameterSet)
}
