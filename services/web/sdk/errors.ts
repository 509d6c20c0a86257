import { CollectError } from '../../../infra/wire/collect/client-transport.ts'

export interface Errors {
  report(error: unknown): void
  listen(listener: (error: Error) => void): () => void
  /** The same promise, whose rejection has a code and is reported as well. */
  watch<T>(promise: Promise<T>): Promise<T>
}

type ClientErrorCode =
  | 'client.destroyed'
  | 'client.no_consent'
  | 'client.invalid_options'
  | 'client.no_page'
  | 'client.failed'

/** A failure on this side; those of the server and the network are CollectErrors. */
export class ClientError extends Error {
  readonly code: ClientErrorCode

  constructor(code: ClientErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ClientError'
    this.code = code
  }
}

export function destroyedError(): ClientError {
  return new ClientError('client.destroyed', 'The Tidegate client was destroyed.')
}

export function noConsentError(): ClientError {
  return new ClientError('client.no_consent', 'There is no consent: consent(true) comes first.')
}

/** Whether the document can be used no more, so that a new session is needed. */
export function endsDocument(error: unknown): boolean {
  if (!(error instanceof CollectError)) return false
  // Out of sequence: the server has accepted a body whose answer never came, and the next nonce was in that answer.
  return (
    error.nextAction === 'new_session' ||
    error.status === 410 ||
    error.code === 'session.sequence_mismatch'
  )
}

/** Tells the page of failures without ever throwing into it. */
export function createErrors(): Errors {
  const listeners = new Set<(error: Error) => void>()

  function report(error: unknown): void {
    const coded = withCode(error)
    for (const listener of listeners) {
      try {
        listener(coded)
      } catch (bug) {
        // The listener's own mistake goes to the page's console, and not to the other listeners.
        setTimeout(() => {
          throw bug
        })
      }
    }
  }

  return {
    report,
    listen(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    watch(promise) {
      const watched = promise.catch((error: unknown) => {
        throw withCode(error)
      })
      watched.catch(report)
      return watched
    },
  }
}

function withCode(error: unknown): Error {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error
  const message = error instanceof Error ? error.message : String(error)
  return new ClientError('client.failed', message, { cause: error })
}
