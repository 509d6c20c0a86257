/** Whether the long runs are wanted, too: `make test-all`. */
export const isLong = process.env.TEST_ALL === '1'

/** How many runs, events or seconds: few in `make test`, many in `make test-all`. */
export const amount = ({ few, many }: { few: number; many: number }): number => (isLong ? many : few)
