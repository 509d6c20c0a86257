/** Formats epoch milliseconds for the API: ISO 8601 in UTC, with milliseconds. */
export function iso(time: number): string {
  return new Date(time).toISOString()
}

export const isoOrNull = (time: number | null) => (time === null ? null : iso(time))
