// Words that need no quoting in a shell.
const plainWord = /^[\w./:@%+=,-]+$/

/** Returns how this program was started: by the script of a clone, by npx, or as an installed command. */
export function programName({ npm_lifecycle_event: script } = process.env): string {
  if (script === 'tidegate') return 'npm run -s tidegate --'
  return script === 'npx' ? 'npx tidegate' : 'tidegate'
}

/** Returns a command line that works in this folder, such as `npx tidegate signup list`. */
export function commandLine(...args: string[]): string {
  const words = args.map((arg) => (plainWord.test(arg) ? arg : `'${arg.replaceAll("'", `'\\''`)}'`))
  return [programName(), ...words].join(' ')
}
