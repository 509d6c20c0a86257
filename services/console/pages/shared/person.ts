import { signal } from '@preact/signals'
import type { LoggedInPerson } from '../../schemas.ts'

/** Who is logged in: undefined before that is known, null where nobody is. */
export const person = signal<LoggedInPerson | null | undefined>(undefined)

/** Whether the server lets the person do what needs the scope. */
export const may = (scope: string): boolean =>
  person.value?.scopes.some((one) => one === scope || one === '*') ?? false

/** Of the person's organization, in the API. */
export const organizationPath = (): string =>
  `/v1/organizations/${person.value?.organization.id ?? ''}`
