import { CollectError } from '../../../infra/wire/collect/client-transport.ts'

export interface Errors {
  report(error: unknown): void
  listen(listener: (error: Error) => void): () => void
  /** Reports a rejection of the promise. The returned promise rejects with an error that has a `code`. */
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
  return new ClientError('client.no_consent', 'There is no consent: call consent(true) first.')
}

/** Returns true if the server accepts no more requests in this document, so that a new session is needed. */
export function requiresNewSession(error: unknown): boolean {
  if (!(error instanceof CollectError)) return false
  // `sequence_mismatch`: the server accepted a body, but the response with the next nonce was lost.
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
        // An exception in a listener goes to the page's console, and the other listeners still run.
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
      const coded = promise.catch((error: unknown) => {
        throw withCode(error)
      })
      coded.catch(report)
      return coded
    },
  }
}

function withCode(error: unknown): Error {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error
  const message = error instanceof Error ? error.message : String(error)
  return new ClientError('client.failed', message, { cause: error })
}
