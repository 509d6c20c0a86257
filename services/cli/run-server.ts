import { createRandom } from '../../infra/random.ts'
import { type ServerOptions, startServer, stopWithinMs } from '../server/server.ts'
import { hostedPackages } from './package/hosted.ts'
import { createServerLogger } from './server-log.ts'
import { readServerSettings } from './server-settings.ts'
import { logStartFailure } from './start-failure.ts'
import { runUntilSignal } from './stop-signals.ts'

/** Runs a server with these comma-separated roles until a signal, then exits the process. */
export async function runServer(
  roles: string,
  {
    takeOverLog: takeOver = false,
    ...options
  }: Pick<ServerOptions, 'lookupOptions'> & { takeOverLog?: boolean } = {},
): Promise<never> {
  const onFailure = (error: unknown) => logStartFailure(error, 'the server did not start')
  const input = { env: process.env, roles }
  const { config, warnings, ...settings } = await readServerSettings(input).catch((error) => {
    onFailure(error)
    return process.exit(1)
  })
  const logger = await createServerLogger(config.LOG_LEVEL)
  for (const warning of warnings) logger.warn(warning)
  const parts = { ...settings, config, logger, clock: Date.now, random: createRandom(), ...options }
  const onLost = (error: Error) => {
    logStartFailure(error, 'the server is stopping')
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
