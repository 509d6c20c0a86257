declare global {
  interface Window {
    /** Trusted Types: wrapper objects that the DOM accepts in place of strings. */
    trustedTypes?: {
      createPolicy(name: string, rules: Policy): Policy
    }
  }
}

interface Policy {
  createHTML(text: string): string
  createScriptURL(url: string): string
}

/** Trusted Types policy for the SDK's few constant strings. */
export const trusted = createPolicy()

function createPolicy(): Policy {
  const rules: Policy = { createHTML: (text) => text, createScriptURL: (url) => url }
  try {
    return window.trustedTypes?.createPolicy('tidegate', rules) ?? rules
  } catch {
    // The page's CSP forbids the policy's name, or another copy of the SDK uses it. Each string is then a violation.
    return rules
  }
}
