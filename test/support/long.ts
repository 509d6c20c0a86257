/** True in long files and in `make test-all`. */
export const isLong = process.env.TEST_ALL === '1'

/** Returns `few` in `make test`, and `many` in long files and `make test-all`. */
export const amount = ({ few, many }: { few: number; many: number }): number =>
  isLong ? many : few
