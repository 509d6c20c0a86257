interface ActionRequest {
  /** Path below that of the list of endpoints. */
  path: string
  method: 'POST' | 'PATCH'
  body?: object
}

/** Sends a change and shows `text` once it is made. Returns whether it was made. */
export type RunAction = (request: ActionRequest, text: string) => Promise<boolean>
