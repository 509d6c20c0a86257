import { CollectError } from '../../../infra/wire/collect/client-transport.ts'

export interface Errors {
  report(error: unknown): void
  listen(listener: (error: Error) => void): () => void
  /** Returns the promise with a coded rejection, which is also reported. */
  watch<T>(promise: Promise<T>): Promise<T>
}

type ClientErrorCode =
  | 'client.destroyed'
  | 'client.no_consent'
  | 'client.invalid_options'
  | 'client.no_page'
  | 'client.failed'

/** A client-side failure. Server and network failures are CollectErrors. */
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

/** Returns true if the document is over and a new session is needed. */
export function endsDocument(error: unknown): boolean {
  if (!(error instanceof CollectError)) return false
  // Out of sequence: the server accepted a body, but its response, with the next nonce, was lost.
  return (
    error.nextAction === 'new_session' ||
    error.status === 410 ||
    error.code === 'session.sequence_mismatch'
  )
}

/** Reports failures to the page's listeners, and never throws into the page. */
export function createErrors(): Errors {
  const listeners = new Set<(error: Error) => void>()

  function report(error: unknown): void {
    const coded = withCode(error)
    for (const listener of listeners) {
      try {
        listener(coded)
      } catch (bug) {
        // An exception in a listener goes to the page's console, not to the other listeners.
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
