/** How much a service can say about itself. Texts in characters (code points); all of it in bytes of JSON. */
export const bounds = {
  definitionBytes: 16 * 1024,
  name: 100,
  description: 1000,
  descriptionLines: 50,
  url: 2048,
  envVars: 50,
  envVarName: 100,
  sdks: 20,
  sdkLabel: 100,
  sdkInstall: 1000,
  sdkInstallLines: 50,
  asciiArt: 4000,
  asciiArtLines: 60,
} as const
