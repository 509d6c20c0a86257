import type { Core } from '../../server/dependencies.ts'
import { withCore } from '../with-core.ts'
import { errorJson, errorText } from './failure.ts'

export interface OperatorOptions {
  /** One JSON document instead of text for people. */
  json: boolean
}

/** What a command has done or found. */
export interface Outcome {
  /** A resource or a list of them, in the shapes of the API. */
  data: object
  /** The same for people. */
  text: string
}

export type Work = (core: Core) => Promise<Outcome>

/** Runs one operator command against the database and the log of the settings and prints what came of it. */
export function operate(options: OperatorOptions, work: Work): Promise<void> {
  return printOutcome(options, () => withCore(work))
}

/**
 * Prints what came of the work: `text`, or `{ "data": ... }`. A failure is a message on standard error, or
 * `{ "error": ... }` on standard output; the exit code is then 1.
 */
export async function printOutcome({ json }: OperatorOptions, work: () => Promise<Outcome>): Promise<void> {
  try {
    const { data, text } = await work()
    console.log(json ? JSON.stringify({ data }, null, 2) : text)
  } catch (error) {
    process.exitCode = 1
    if (json) console.log(JSON.stringify({ error: errorJson(error) }, null, 2))
    else console.error(errorText(error))
  }
}
