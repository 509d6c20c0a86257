import { openBothLogs } from '../../support/logs.ts'
import { describeLog } from './contract.ts'

for (const testLog of openBothLogs()) describeLog(`the ${testLog.name} log`, testLog)
