import { signal } from '@preact/signals'
import { inWords } from './format.ts'

/** Display names by slug. Empty until the shell has loaded them. */
export const signalNames = signal<Record<string, string>>({})

/** Returns the signal's display name; without one, its slug in words. */
export const signalName = (slug: string): string => signalNames.value[slug] ?? inWords(slug)
