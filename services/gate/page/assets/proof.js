/**
 * Observes how this page is used, from now on, and makes proofs of it.
 * @param {string} publishableKey
 */
export function createProver(publishableKey) {
  let tries = 0
  /** @type {Promise<{ getSession(): Promise<{ sealedToken: string }> }> | undefined} */
  let client

  async function load() {
    // A browser may remember that an address failed.
    const { start } = await import(tries++ === 0 ? '/t.js' : `/t.js?try=${tries}`)
    return start({ publishableKey })
  }

  function observe() {
    client ??= load()
    client.catch(() => {
      client = undefined
    })
    return client
  }

  return {
    observe,
    /** @returns {Promise<string>} a sealed token of this moment; rejects when the SDK cannot be loaded or not hand over */
    async prove() {
      const { sealedToken } = await (await observe()).getSession()
      return sealedToken
    },
  }
}
