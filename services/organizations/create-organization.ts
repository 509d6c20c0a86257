import type { Decision } from '../../infra/decide.ts'
import { ApiError, invalidField } from '../../infra/http/errors.ts'
import { derivedId, type OrganizationId } from '../../infra/ids.ts'

export interface CreateOrganization {
  organizationId: OrganizationId
  name: string
  slug: string
  /** Epoch milliseconds. */
  now: number
}

/** What has the slug already. */
export interface SlugState {
  takenBy: string | undefined
}

/** A new, active organization; 409 when the slug is taken, 422 for a bad name or slug. */
export function createOrganization({ takenBy }: SlugState, command: CreateOrganization): Decision[] {
  const { organizationId, slug, now } = command
  const name = checkedName(command.name, { max: 120, parameterSet: 'organization_create' })
  if (!/^[a-z0-9-]{1,63}$/.test(slug)) {
    throw invalidField(
      {
        name: 'slug',
        issue: 'invalid',
        expected: '1-63 lower-case letters, digits and hyphens',
        received: slug,
      },
      { parameter_set: 'organization_create' },
    )
  }
  if (takenBy) {
    throw new ApiError('request.conflict', {
      message: `The slug ${slug} is taken.`,
      details: { fields: [{ name: 'slug', issue: 'taken', received: slug }] },
    })
  }
  const data = { organization_id: organizationId, name, slug, created_at: now }
  const eventId = derivedId('evt', organizationId, 'created')
  return [
    {
      event: { type: 'OrganizationCreated', data },
      meta: { eventId, time: now, organizationId, environment: null },
    },
  ]
}

/** The name without outer spaces; 422 when nothing is left, it is too long, or it has control characters. */
export function checkedName(
  name: string,
  { max, parameterSet }: { max: number; parameterSet: string },
): string {
  const trimmed = name.trim()
  if (trimmed.length >= 1 && trimmed.length <= max && !/\p{Cc}|\p{Cs}/u.test(trimmed)) return trimmed
  throw invalidField(
    { name: 'name', issue: 'invalid', expected: `1-${max} characters, no control characters` },
    { parameter_set: parameterSet },
  )
}
