import { connection } from 'next/server'
import { SignUpForm } from './sign-up-form'

export default async function Page() {
  // The settings are those of the server that runs, and not of the one that built it.
  await connection()
  const { TIDEGATE_URL: endpoint = '', TIDEGATE_PUBLISHABLE_KEY: publishableKey = '' } = process.env
  return <SignUpForm options={{ endpoint, publishableKey }} />
}
