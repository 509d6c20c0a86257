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

const rules: Policy = { createHTML: (text) => text, createScriptURL: (url) => url }

// One for each page: a page that enforces Trusted Types may allow a name once.
let policy: Policy | undefined

/** The policy for the few constant texts that are given to the DOM; plain texts where there are no Trusted Types. */
export function trusted(): Policy {
  policy ??= createPolicy()
  return policy
}

function createPolicy(): Policy {
  try {
    return window.trustedTypes?.createPolicy('tidegate', rules) ?? rules
  } catch {
    // The page does not allow the name, and reports what follows.
    return rules
  }
}
