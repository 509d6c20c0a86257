// Characters that mean nothing to a shell.
const plain = /^[\w./:@%+=,-]+$/

/** How this program was called: by the script of a clone, by npx, or as an installed command. */
export function programName({ npm_lifecycle_event: by } = process.env): string {
  if (by === 'tidegate') return 'npm run -s tidegate --'
  return by === 'npx' ? 'npx tidegate' : 'tidegate'
}

/** A command as it can be typed in this folder: `npx tidegate signup list`. */
export function typed(...args: string[]): string {
  const words = args.map((arg) => (plain.test(arg) ? arg : `'${arg.replaceAll("'", `'\\''`)}'`))
  return [programName(), ...words].join(' ')
}
