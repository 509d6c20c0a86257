/** Of an operator who decided to leave no record out. */
export const noSkips = { has: async () => false }
