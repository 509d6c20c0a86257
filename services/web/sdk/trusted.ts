declare global {
  interface Window {
    /** Its values are objects that stand for a text where the DOM takes one. */
    trustedTypes?: {
      createPolicy(name: string, rules: Policy): Policy
    }
  }
}

interface Policy {
  createHTML(text: string): string
  createScriptURL(url: string): string
}

/** The policy for the few constant texts that are given to the DOM; returns them as they are without Trusted Types. */
export const trusted = createPolicy()

function createPolicy(): Policy {
  const rules: Policy = { createHTML: (text) => text, createScriptURL: (url) => url }
  try {
    return window.trustedTypes?.createPolicy('tidegate', rules) ?? rules
  } catch {
    // The page does not allow the name, or another copy of the SDK has it. The page then reports each text.
    return rules
  }
}
