import type { preValidationHookHandler } from 'fastify'
import { type FieldIssue, filledError } from '../errors/errors.ts'
import type { ParameterSet } from './checked-fields.ts'

/**
 * For a route that takes no body: 422 for anything but none or `{}`, naming each member, or `body` where it is not an
 * object. What is ignored the caller would expect to have an effect.
 */
export function refuseBody(parameterSet: ParameterSet): preValidationHookHandler {
  return ({ body, routeOptions }, _reply, done) => {
    const fields = membersOf(body)
    const [first] = fields
    if (!first) return done()
    const values = { field: first.name, issue: first.issue }
    const code = routeOptions.config.bodyCode ?? 'request.validation_failed'
    done(filledError(code, values, { details: { fields, parameter_set: parameterSet } }))
  }
}

function membersOf(body: unknown): FieldIssue[] {
  if (body === undefined) return []
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return [{ name: 'body', issue: 'invalid_type', expected: 'no body or {}' }]
  }
  return Object.keys(body).map((name) => ({ name, issue: 'not_allowed' }))
}
