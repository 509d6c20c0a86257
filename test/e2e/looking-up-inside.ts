import { createAddressRules } from '../../infra/safe-http/addresses.ts'
import { runServer } from '../../services/cli/run-server.ts'
import { allRoles } from '../../services/server/roles.ts'

// `tidegate serve` that looks up agents on this machine: by the servers of DNS and the authority in LOOKING_UP.
const { dnsServers, ca } = JSON.parse(process.env.LOOKING_UP ?? '')
const rules = createAddressRules(['127.0.0.0/8'])
// The test says when an answer comes.
await runServer(allRoles.join(), { lookupOptions: { rules, dnsServers, ca, timeoutMs: 60_000 } })
