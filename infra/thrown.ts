/** What a thrown value says, whatever it is. */
export const errorMessage = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)

/** The code of an error of Node or of Postgres, as `ENOENT`; undefined for what has none. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined
}
