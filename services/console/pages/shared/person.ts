import { signal } from '@preact/signals'
import type { LoggedInPerson } from '../../schemas.ts'

/** The logged-in person; undefined during startup, null if nobody is logged in. */
export const person = signal<LoggedInPerson | null | undefined>(undefined)

/** Returns true if the person has the scope. */
export const hasScope = (scope: string): boolean =>
  person.value?.scopes.some((one) => one === scope || one === '*') ?? false

/** Returns the API path of the person's organization. */
export const organizationPath = (): string =>
  `/v1/organizations/${person.value?.organization.id ?? ''}`
