/** Nothing in it means anything to a shell. */
const plain = /^[\w./:@%+=,-]+$/

/** A command as it can be typed in this folder: `npm run -s tidegate -- signup list`. */
export function typed(...args: string[]): string {
  const words = args.map((arg) => (plain.test(arg) ? arg : `'${arg.replaceAll("'", `'\\''`)}'`))
  return ['npm run -s tidegate --', ...words].join(' ')
}
