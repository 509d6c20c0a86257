import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { programCommand } from '../support/program.ts'

const run = promisify(execFile)

interface Options {
  /** Commands run in it, and its `bin` is first in their PATH. */
  folder: string
  env: Record<string, string>
  /** `tidegate` commands that only note that they were called, as they are after `tidegate`. */
  notRun: string[]
}

export interface PrintedShell {
  /** Runs a script as somebody who pastes it. Rejects with what it printed, where it ends with another code than 0. */
  bash(script: string): Promise<string>
  /** The same, but that `tidegate` has to get the arguments that it had in bash, and prints what it printed there. */
  zsh(script: string): Promise<string>
  /** The commands that were not run. */
  skipped(): Promise<string[]>
}

/**
 * Shells in which docker, kubectl and npm run the `tidegate` command in them, and helm and docker's other commands
 * only note that they were called. Commands that never end are interrupted once they have printed a line.
 */
export async function openPrintedShell({ folder, env, notRun }: Options): Promise<PrintedShell> {
  const bin = path.join(folder, 'bin')
  const skippedFile = path.join(folder, 'skipped')
  await mkdir(path.join(folder, 'records'), { recursive: true })
  await mkdir(bin, { recursive: true })
  await writeFile(path.join(folder, 'not-run'), `${notRun.join('\n')}\n`)
  await writeFile(skippedFile, '')
  const [node, main] = programCommand(env)
  const shims = { tidegate: tidegate(`'${node}' -- '${main}'`), npm, curl, ...wrappers }
  for (const [name, text] of Object.entries(shims))
    await writeFile(path.join(bin, name), `#!/bin/bash\n${text}`, { mode: 0o755 })

  async function shell(name: 'bash' | 'zsh', script: string): Promise<string> {
    const flags = name === 'zsh' ? ['-f'] : ['--norc']
    const { PATH = '' } = process.env
    const own = {
      ...process.env,
      ...env,
      PATH: `${bin}:${PATH}`,
      HOME: folder,
      PRINTED_FOLDER: folder,
    }
    try {
      const { stdout } = await run(name, [...flags, '-euo', 'pipefail', '-c', script], {
        cwd: folder,
        timeout: 120_000,
        maxBuffer: 64 * 1024 * 1024,
        env: { ...own, PRINTED_SHELL: name, npm_lifecycle_event: 'tidegate' },
      })
      return stdout
    } catch (error) {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
      throw new Error(`${name}: ${script}\n${stdout.slice(-2000)}${stderr.slice(-2000)}`)
    }
  }

  return {
    bash: (script) => shell('bash', script),
    zsh: (script) => shell('zsh', script),
    skipped: async () => (await readFile(skippedFile, 'utf8')).split('\n').filter(Boolean),
  }
}

const note = (name: string) => `printf '%s\\n' "${name} $*" >> "$PRINTED_FOLDER/skipped"`

const tidegate = (program: string) => `
if grep -Fxq -- "$*" "$PRINTED_FOLDER/not-run"; then ${note('tidegate')}; exit 0; fi
record=$PRINTED_FOLDER/records/$(printf '%s\\0' "$@" | cksum | tr ' ' -)
if [ "$PRINTED_SHELL" = zsh ]; then
  [ -f "$record" ] || { echo "zsh gave other arguments than bash: $*" >&2; exit 1; }
  exec cat "$record"
fi
case " $* " in
  *' --help ') ${program} "$@" > "$record" ;;
  ' learn '* | *' --follow ')
    ${program} "$@" > "$record" &
    until [ -s "$record" ]; do kill -0 $! || exit 1; sleep 0.1; done
    kill -INT $!
    wait $! || [ $? = 130 ] ;;
  *) ${program} "$@" > "$record" ;;
esac
code=$?
cat "$record"
exit $code
`

const npm = `
while [ "$1" != -- ]; do shift; done
shift
exec tidegate "$@"
`

const curl = `
case "$*" in
  # The answer is an error, which the docs want to see.
  *v1/nothing*) ;;
  *) set -- --fail-with-body "$@" ;;
esac
exec "$(PATH=\${PATH#*:} command -v curl)" "$@"
`

// `exec <container> tidegate ...`, `run --rm tidegate ...` and `exec deploy/<name> -- tidegate ...`.
const inner = (name: string) => `
all="$*"
case "$all" in
  'exec tidegate tidegate '*) shift 2 ;;
  'run --rm tidegate '*) shift 2 ;;
  'compose '*' exec api tidegate '*) while [ "$1" != api ]; do shift; done; shift ;;
  *' -- tidegate '*) while [ "$1" != -- ]; do shift; done; shift ;;
  *) ${note(name)}; exit 0 ;;
esac
exec "$@"
`

const wrappers = {
  make: note('make'),
  docker: inner('docker'),
  kubectl: inner('kubectl'),
  helm: inner('helm'),
}
