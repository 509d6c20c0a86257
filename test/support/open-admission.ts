import { randomBytes } from 'node:crypto'
import {
  type Admission,
  type AdmissionOptions,
  createSessionAdmission,
} from '../../services/collect/admission.ts'

/** Creates an admission control without backlog, by default. */
export function openAdmission(options: Partial<AdmissionOptions> = {}): Admission {
  const limits = { maxBacklogMs: 1000, maxInFlight: 1000 }
  return createSessionAdmission({
    ...limits,
    readAges: () => [],
    random: randomBytes,
    onShed: () => {},
    ...options,
  })
}
