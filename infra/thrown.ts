/** Returns the message of a thrown value, which need not be an Error. */
export const errorMessage = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)

/** Returns the code of a Node or Postgres error, such as `ENOENT` or `40P01`; undefined if it has none. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined
}
