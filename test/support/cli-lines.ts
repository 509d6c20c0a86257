import { createInterface } from 'node:readline'
import { startCli } from './cli.ts'
import { eventually } from './eventually.ts'

/** Starts a long-running command. Waits for lines on standard output, or with `errorLine` on standard error. */
export function followCli(args: string[], env: Record<string, string>) {
  const child = startCli(args, env)
  const [lines, errorLines]: [string[], string[]] = [[], []]
  if (child.stdout) createInterface(child.stdout).on('line', (line) => lines.push(line))
  if (child.stderr) createInterface(child.stderr).on('line', (line) => errorLines.push(line))
  const lineIn = (lines: string[]) => (pattern: RegExp) =>
    eventually(
      async () => {
        const found = lines.find((one) => pattern.test(one))
        if (found !== undefined) return found
        if (child.exitCode !== null) throw Object.assign(new Error('ended'), await child.result)
        throw new Error(`no line ${pattern} in ${lines.join('\n')}`)
      },
      { timeoutMs: 30_000 },
    )
  const [line, errorLine] = [lineIn(lines), lineIn(errorLines)]
  return { lines, line, errorLine, result: child.result, end: () => void child.kill('SIGINT') }
}
