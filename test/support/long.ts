/** True in a long file and in `make test-all`. */
export const isLong = process.env.TEST_ALL === '1'

/** Returns how many runs, events or seconds: few in `make test`, many in long files and in `make test-all`. */
export const amount = ({ few, many }: { few: number; many: number }): number =>
  isLong ? many : few
