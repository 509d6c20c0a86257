import type { Snapshot } from '../../../../schemas/observations.ts'
import { attempt, member } from '../support.ts'

type Engine = Snapshot['engine']

/** The JavaScript engine by what it does, which the user agent string cannot change. */
export function collectEngine(): Engine {
  const message = nullPropertyMessage()
  return {
    eval_length: attempt(() => String(member(globalThis, 'eval')).length),
    null_property_message: message,
    name: message && engineName(message),
  }
}

function nullPropertyMessage(): string | null {
  try {
    const nothing: { x?: unknown } = JSON.parse('null')
    return String(nothing.x)
  } catch (error) {
    return error instanceof Error ? error.message : null
  }
}

function engineName(message: string): string | null {
  if (message.startsWith('Cannot read propert')) return 'V8'
  if (message.includes("can't access property") || message.endsWith('is null')) return 'SpiderMonkey'
  return message.includes('is not an object') ? 'JavaScriptCore' : null
}
