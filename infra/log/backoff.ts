/** Milliseconds to wait after this many failures in a row: 100, 200, 400 ... 5000. */
export const backoffMs = (failures: number): number => Math.min(100 * 2 ** (failures - 1), 5000)
