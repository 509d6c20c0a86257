import { signal } from '@preact/signals'
import type { LoggedInPerson } from '../../schemas.ts'

/** The logged-in person; undefined during startup, null if nobody is logged in. */
export const person = signal<LoggedInPerson | null | undefined>(undefined)

export const hasScope = (scope: string): boolean =>
  person.value?.scopes.some((granted) => granted === scope || granted === '*') ?? false

export const organizationPath = (): string =>
  `/v1/organizations/${person.value?.organization.id ?? ''}`
