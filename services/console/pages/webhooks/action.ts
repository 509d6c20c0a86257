interface ActionRequest {
  /** Path below the list of endpoints. */
  path: string
  method: 'POST' | 'PATCH'
  body?: object
}

/** Sends a change and shows `text` on success. Returns true on success. */
export type RunAction = (request: ActionRequest, text: string) => Promise<boolean>
