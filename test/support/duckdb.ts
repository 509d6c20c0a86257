import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { pythonPrograms } from './python-packages.ts'

const run = promisify(execFile)

export const pythonWithDuckDb = async (): Promise<string> =>
  path.join(await pythonPrograms('python-duckdb', ['duckdb==1.4.2']), 'python')

// Disables the progress bar, which slow queries print to standard output.
const program = `import duckdb, json, sys
duckdb.sql('set enable_progress_bar = false')
print(json.dumps(duckdb.sql(sys.argv[1]).fetchall(), default=str))`

/** Runs a query and returns its rows as arrays. */
export async function duckDb<Row extends unknown[]>(sql: string): Promise<Row[]> {
  const { stdout } = await run(await pythonWithDuckDb(), ['-c', program, sql], { maxBuffer: 1e9 })
  return JSON.parse(stdout)
}
