/** Skips without any record. */
export const noSkips = { has: async () => false }
