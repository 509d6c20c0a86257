import { createRandom } from '../../infra/random.ts'
import { type ServerOptions, startServer, stopWithinMs } from '../server/server.ts'
import { runUntilSignal } from './lifetime.ts'
import { hostedPackages } from './package/hosted.ts'
import { createServerLogger } from './server-log.ts'
import { readServerSettings } from './server-settings.ts'
import { logStartFailure } from './start-failure.ts'

/** Runs the roles, comma-separated, until a signal ends the process. */
export async function runServer(
  roles: string,
  {
    takeOverLog: takeOver = false,
    ...more
  }: Pick<ServerOptions, 'lookupOptions'> & { takeOverLog?: boolean } = {},
): Promise<never> {
  const onFailure = (error: unknown) => logStartFailure('the server did not start', error)
  const read = await readServerSettings({ env: process.env, roles }).catch((error: unknown) => {
    onFailure(error)
    return process.exit(1)
  })
  const { config, warnings, ...settings } = read
  const logger = await createServerLogger(config.LOG_LEVEL)
  for (const warning of warnings) logger.warn(warning)
  const parts = { ...settings, config, logger, clock: Date.now, random: createRandom(), ...more }
  const onLost = (error: Error) => {
    logStartFailure('the server is stopping', error)
    process.exitCode = 1
    process.kill(process.pid, 'SIGTERM')
  }
  const start = async (undo: AsyncDisposableStack) => {
    const logClaim = { takeOver, onLost }
    const server = await startServer({ ...parts, logClaim, packages: hostedPackages() })
    undo.defer(() => server.stop())
    console.log(`Tidegate is ready: ${server.url}`)
  }
  return runUntilSignal({ start, stopWithinMs: stopWithinMs(config), logger, onFailure })
}
