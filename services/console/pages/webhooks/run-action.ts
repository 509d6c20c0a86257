interface ActionRequest {
  /** Path below the list of endpoints. */
  path: string
  method: 'POST' | 'PATCH'
  body?: object
}

/** Sends a request and shows the outcome: `successText`, or the error. Returns true on success. */
export type RunAction = (request: ActionRequest, successText: string) => Promise<boolean>
